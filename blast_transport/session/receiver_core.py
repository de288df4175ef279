"""Decisions of a receiver in one session. No sockets, no files, no clock; it reads the store and does not change it.

Theory of operation. Blocks arrive by the transports of the phases, and as repairs. An optical path does not reorder, so
a jump in the segment numbers is a loss. The receiver requests lost segments with a credit about a window later, several
at a time: a message costs both ends as much as a block. At the end of an optical phase, and of the data, no jump shows
a loss: the receiver waits until nothing new has come for a moment and requests the rest. It repeats unanswered
requests, and treats a block with a wrong digest as lost. It requests nothing that a pipeline may still bring, until the
data has ended. When every block is held and verified, the caller completes the target and reports the outcome, which is
sent as Fin.

Messages to send collect in `outbox`. A Credit reports the receiver's progress, on which the sender's window and
timeouts depend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from blast_transport.base.errors import LocalProtocolError
from blast_transport.blocks.block_map import Range
from blast_transport.store.blocks.block_assembly import BlockAssembly
from blast_transport.transports.receiving import SegmentsArrived
from blast_transport.wire.codec import RANGES_PER_NACK
from blast_transport.wire.messages import Credit, EndOfData, Fin, Hello, Message, Nack, Phase, PhaseReady

_CREDITS_PER_JUMP = 8
"""Maximum credits that a sender that waits for them is ahead; datagrams further ahead are forged."""

_CREDITS_PER_QUESTION = 3
"""Equals the credits of a window, for which a sender collects requests of several receivers."""

_MAX_REPEATS = 8
"""Maximum of the time before it asks again, in multiples of `repeat`."""


@dataclass(frozen=True, slots=True)
class ReceiverTimings:
    """Timeouts in seconds.

    `gather`: wait for more losses before requesting the first, if the rate is low; `urgent`: the same where blocks are
    stored in order, and blocks behind a loss wait. `quiet`: without a new segment at an end before requesting the rest.
    `repeat`: without a repair before requesting again, doubled each time. `silence`: without any message of the sender
    before giving up; on a shared link a connection may starve for more than ten seconds. `repair_timeout`: without new
    data after the end of data although the sender lives, which may repair other receivers over the same link. `report`:
    interval of heartbeats to the sender.
    """

    # Requests for several losses in one message cost little more than one.
    gather: float = 0.04
    urgent: float = 0.02
    quiet: float = 0.01
    repeat: float = 0.3
    silence: float = 30.0
    repair_timeout: float = 60.0
    report: float = 0.2


class ReceiverState(Enum):
    """State of a receiver's session."""

    RECEIVING = auto()
    ENDING = auto()
    COMMITTING = auto()
    COMPLETE = auto()
    FAILED = auto()


class _Event(Enum):
    END_OF_DATA = auto()
    ALL_HELD = auto()
    STORED = auto()
    FAILURE = auto()


_TRANSITIONS: dict[tuple[ReceiverState, _Event], ReceiverState] = {
    (ReceiverState.RECEIVING, _Event.END_OF_DATA): ReceiverState.ENDING,
    (ReceiverState.RECEIVING, _Event.FAILURE): ReceiverState.FAILED,
    (ReceiverState.ENDING, _Event.ALL_HELD): ReceiverState.COMMITTING,
    (ReceiverState.ENDING, _Event.FAILURE): ReceiverState.FAILED,
    (ReceiverState.COMMITTING, _Event.STORED): ReceiverState.COMPLETE,
    (ReceiverState.COMMITTING, _Event.FAILURE): ReceiverState.FAILED,
}


class ReceiverCore:
    """State of one session at one receiver.

    Attributes to read: `state`, `reason` (of a failure), `digest` (of the whole, as announced), `first_datagram` (time
    of its arrival), `repaired` (bytes of repairs over the packet network), `light_end` (segments from there on cannot
    have been sent over the optical path).
    """

    def __init__(
        self, hello: Hello, assembly: BlockAssembly, now: float, timings: ReceiverTimings | None = None
    ) -> None:
        self.hello = hello
        self.assembly = assembly
        self.state = ReceiverState.RECEIVING
        self.reason = ""
        self.digest = b""
        self.first_datagram: float | None = None
        self.repaired = 0
        self.outbox: list[Message] = []
        self._store = assembly.store
        self._timings = timings or ReceiverTimings()
        self._phase: Phase | None = None
        self._credit_blocks = 1
        # Ranges that the optical path has passed: every segment in each (first, stop) is here or was requested.
        self._passed: list[list[int]] = []
        # Losses in these ranges that were not requested yet, and until when more may join them.
        self._gaps: list[Range] = []
        self._gaps_at = now
        # Where the last of these will end, once nothing more comes of it.
        self._tail, self._tail_at, self._all_asked = 0, now, False
        # Segment before which the sender has announced that all have left.
        self._announced = 0
        # Whether the sender waits for credits, and the farthest credit.
        self._waited_for = True
        self._farthest = self._store.position
        self.light_end = 0
        # Lights that are over: when what may still be on its way has come, which they are, and where they ended.
        self._ended: list[tuple[float, list[int], int]] = []
        self._credited = 0
        # Doubles, because a receiver that is repaired late need not repeat its requests frequently.
        self._repeat, self._repeat_at = self._timings.repeat, now
        self._alive_at = now + self._timings.report
        self._last_received = self._last_new = now

    @property
    def over(self) -> bool:
        """Return whether the session has ended, successfully or not."""
        return self.state in (ReceiverState.COMPLETE, ReceiverState.FAILED)

    @property
    def receiving(self) -> bool:
        """Return whether blocks are still expected."""
        return self.state in (ReceiverState.RECEIVING, ReceiverState.ENDING)

    @property
    def due(self) -> bool:
        """Return whether messages are queued, or the target is to be completed."""
        return bool(self.outbox) or self.state is ReceiverState.COMMITTING

    @property
    def until_credit(self) -> int:
        """Return the number of segments that may arrive over the optical path before a credit is due.

        If it is 0 or less, a credit is due with the next segment.
        """
        if not self._lit:
            return 0
        passed, count, due = self._passed[-1][1], self.hello.block_segments, self._credited + self._credit_blocks
        # Blocks held before do not arrive, and no credit is due within them: a hole may be larger than the window.
        first, number = next(self._store.held.missing(passed // count, due), (due, 0))
        return (first + number) * count - max(passed, first * count)

    @property
    def phase_number(self) -> int:
        """Return the number of the present phase; 0 before the first."""
        return 0 if self._phase is None else self._phase.number

    def phase(self, phase: Phase, now: float, reason: str = "") -> None:
        """Handle the next phase: the caller listens, or cannot for this `reason`."""
        self._last_received = self._last_new = now
        first = phase.first * self.hello.block_segments
        if self._lit:
            self._ended.append((now + self._timings.quiet, self._passed[-1], first))
        if phase.traits.windowed:
            self._passed.append([first, first])
        if phase.traits.repairs_itself:
            # The chain brings everything from there on, including earlier losses.
            for passed in self._passed:
                passed[1] = max(passed[0], min(passed[1], first))
            self._gaps = [(lost, min(count, first - lost)) for lost, count in self._gaps if lost < first]
        self._ask_gaps(now)
        self._phase, self._credit_blocks, self._tail = phase, phase.credit, 0
        self._announced = max(self._announced, first) if phase.traits.windowed else self._announced
        self.outbox.append(PhaseReady(self.hello.session, phase.number, reason))
        # Blocks before the new phase must not block the window.
        self._credit(now)

    def demoted(self, now: float) -> None:
        """Handle a demotion: the sender no longer waits for credits."""
        self._waited_for = False
        self.heartbeat(0, now)

    def promoted(self, now: float) -> None:
        """Handle a readmission: the sender waits for credits again."""
        self._waited_for = True
        self.heartbeat(0, now)

    def cut_off(self) -> None:
        """Handle the loss of the sender's connection: it does not wait for credits until it reconnects."""
        self.light_end = self._max_segments()

    def come_again(self, now: float) -> None:
        """Handle the reconnection of the sender, which waits for a credit."""
        self._last_received = now
        self._credit(now)

    def arrived(self, arrived_now: SegmentsArrived, now: float) -> None:
        """Handle segments that arrived over the optical path and are stored."""
        if not (arrived_now.runs and self.receiving):
            return
        if self.first_datagram is None:
            self.first_datagram = arrived_now.began
        # Only new segments count as a heartbeat: replayed datagrams must not keep a dead session alive.
        if arrived_now.new:
            self._last_received = self._last_new = now
        for first, stop in arrived_now.runs if self._passed else ():
            passed = self._passed[-1]
            if passed[1] < stop <= self._max_segments():
                self._pass(passed, max(first, passed[1]), stop, now)
        self.stored(now)

    def repaired_by(self, size: int, now: float) -> None:
        """Handle repairs that are stored; `size` counts the bytes that were new."""
        self._last_received = now
        if not self.receiving:
            return
        if size:
            self._repeat = self._timings.repeat
            self._repeat_at = now + self._repeat
            self._last_new = now
            self.repaired += size
        self.stored(now)

    def stored(self, now: float) -> None:
        """Report progress after blocks may have been written, and check whether all are held."""
        store = self._store
        if self._handled >= self._credited + self._credit_blocks:
            self._credit(now)
        if self.state is ReceiverState.ENDING and store.complete:
            self._credit(now)
            self._move(_Event.ALL_HELD)

    def wrong(self, blocks: Sequence[Range], now: float) -> None:
        """Handle blocks that arrived with a wrong digest, and are not held."""
        count = self.hello.block_segments
        for first, number in blocks if self.receiving else ():
            self._ask(first * count, (first + number) * count, now)

    def progressed(self, now: float) -> None:
        """Handle data that one of the caller's transports has stored."""
        self._last_received = self._last_new = now
        self.stored(now)

    def heartbeat(self, sent: int, now: float) -> None:
        """Handle a heartbeat of the sender: all blocks before `sent` have left."""
        self._last_received = now
        tail = sent * self.hello.block_segments
        self._announced = max(self._announced, tail)
        self._renew_light_end()
        if self._lit and tail > max(self._tail, self._passed[-1][1]):
            # The data may be slower than the heartbeat.
            self._tail, self._tail_at = tail, now
        elif sent > self._credited and self._handled >= sent:
            # The sender may wait for this at an end, which need not be where a credit is due.
            self._credit(now)

    def end_of_data(self, end: EndOfData, now: float) -> None:
        """Handle the end of the data, which settles its size. Raise LocalProtocolError if it was already announced."""
        self._last_received = self._last_new = now
        self._move(_Event.END_OF_DATA)
        self.digest = end.digest
        self._repeat = self._timings.repeat
        self._repeat_at = min(self._repeat_at, now + self._repeat)
        self._ask_gaps(now)
        self.stored(now)

    def committed(self) -> None:
        """Handle the completion of the target, with the right digest of the whole."""
        self._move(_Event.STORED)
        self._finish()

    def fail(self, reason: str) -> None:
        """Give up. No effect when the session is over."""
        if self.over:
            return
        self._move(_Event.FAILURE)
        self.reason = reason
        self._finish()

    def deadline(self) -> float | None:
        """Return the latest time for the next `tick`; None if none is due."""
        if self.over:
            return None
        waits = [self._give_up_at(), self._alive_at]
        if self._gaps:
            waits.append(self._gaps_at)
        if self._passed:
            waits.append(self._repeat_at)
        if self._open_end:
            waits.append(max(self._last_new, self._tail_at) + self._timings.quiet)
        waits += [due for due, _, _ in self._ended]
        return min(waits)

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if self.over:
            return
        if now >= self._give_up_at():
            self.fail(self._silence(now))
            return
        if now >= self._alive_at:
            self._credit(now)
        if self._gaps and now >= self._gaps_at:
            self._ask_gaps(now)
        if self._passed and now >= self._repeat_at:
            self._ask_once_more(now)
        while self._ended and now >= self._ended[0][0]:
            _, passed, stop = self._ended.pop(0)
            self._ask(passed[1], stop, now)
            passed[1] = max(passed[1], stop)
        if self._open_end and now >= max(self._last_new, self._tail_at) + self._timings.quiet:
            self._ask_end(now)

    @property
    def _lit(self) -> bool:
        return self._phase is not None and self._phase.traits.windowed

    @property
    def _gathered(self) -> int:
        """Return the number of segments whose losses one request covers."""
        return _CREDITS_PER_QUESTION * self._credit_blocks * self.hello.block_segments

    @property
    def _handled(self) -> int:
        """Return the block before which the receiver needs nothing more for now."""
        position = self._store.position
        if self._store.target.in_order or not self._lit:
            return position
        # The optical transport omits blocks held before, so that a loss before a hole must not delay the sender.
        passed = self._passed[-1][1] // self.hello.block_segments
        return max(position, self._store.held.first_missing(passed))

    @property
    def _open_end(self) -> bool:
        """Return whether segments may be missing at an end, where no gap shows it."""
        if self.state is ReceiverState.ENDING:
            return not self._all_asked
        return bool(self._tail)

    def _ask_end(self, now: float) -> None:
        """Ask for what no gap has shown of the last light, or for whatever is missing when the data has ended."""
        if self.state is ReceiverState.ENDING:
            # All repairs preceded EndOfData; retransmissions over the optical path may be lost again.
            self._passed, self._all_asked = [[0, self._max_segments()]], True
            self._ask(0, self._max_segments(), now)
            self._gaps.clear()
            self._ended.clear()
        else:
            passed = self._passed[-1]
            self._ask(passed[1], self._tail, now)
            passed[1] = max(passed[1], self._tail)
            self._credit(now)
        self._tail = 0

    def _pass(self, passed: list[int], segment: int, stop: int, now: float) -> None:
        """Handle segments from `segment` to before `stop` on the optical path.

        The segments skipped before them are lost.
        """
        if segment > passed[1]:
            gap = (passed[1], segment - passed[1])
            # A receiver that was left behind resumes at the position that the sender announced.
            announced = max(passed[1], self._announced)
            max_jump = _CREDITS_PER_JUMP * (self._credit_blocks + 1) * self.hello.block_segments
            # The sender waits for receivers that keep up: this is forged, or this receiver is so late that it is
            # repaired at the end.
            if (
                segment - announced > max_jump
                and sum(count for _, count in self.assembly.missing(announced, segment)) > max_jump
            ):
                return
            if not self._gaps:
                self._gaps_at = now + (self._timings.urgent if self._store.target.in_order else self._timings.gather)
            self._gaps.append(gap)
            self._repeat_at = now + self._repeat
        passed[1] = stop

    def _ask_gaps(self, now: float) -> None:
        """Ask for what light has left out, but for what has come since."""
        gaps, self._gaps = self._gaps, []
        missing = [lost for first, count in gaps for lost in self.assembly.missing(first, first + count)]
        self._nack(missing)

    def _ask_once_more(self, now: float) -> None:
        """Ask for all that light has left out and nothing has brought since."""
        self._repeat_at = now + self._repeat
        missing = [lost for first, stop in self._passed for lost in self.assembly.missing(first, stop)]
        if missing:
            self._nack(missing)
            self._repeat = min(2 * self._repeat, _MAX_REPEATS * self._timings.repeat)

    def _renew_light_end(self) -> None:
        """Update the limit of segments that can have been sent over the optical path.

        The sender stays within a window of the receivers that it waits for. It may have announced more while it waited
        for none.
        """
        if self._waited_for:
            window = 1 if self._phase is None else self._phase.window
            count = self.hello.block_segments
            self.light_end = max(self._farthest * count, self._announced) + window * count
        else:
            self.light_end = self._max_segments()

    def _max_segments(self) -> int:
        return self._store.layout.blocks * self.hello.block_segments

    def _ask(self, start: int, stop: int, now: float) -> None:
        if start < stop:
            self._repeat_at = now + self._repeat
            self._nack(self.assembly.missing(start, stop))

    def _nack(self, ranges: list[Range]) -> None:
        for first in range(0, len(ranges), RANGES_PER_NACK):
            self.outbox.append(Nack(self.hello.session, tuple(ranges[first : first + RANGES_PER_NACK])))

    def _credit(self, now: float) -> None:
        if self._gaps and self._passed[-1][1] >= self._gaps[0][0] + self._gathered:
            self._ask_gaps(now)
        self._alive_at = now + self._timings.report
        self._credited, store = self._handled, self._store
        self._farthest = max(self._farthest, self._credited)
        self._renew_light_end()
        self.outbox.append(Credit(self.hello.session, self._credited, store.position, store.held.held))

    def _give_up_at(self) -> float:
        silent = self._last_received + self._timings.silence
        return (
            min(silent, self._last_new + self._timings.repair_timeout) if self.state is ReceiverState.ENDING else silent
        )

    def _silence(self, now: float) -> str:
        silent = f"no message from the sender for {self._timings.silence:g} s"
        if self.state is not ReceiverState.ENDING:
            return silent
        missing = self._store.layout.blocks - self._store.held.held
        if now >= self._last_received + self._timings.silence:
            return f"{missing} blocks were not repaired: {silent}"
        return f"{missing} blocks were not repaired: nothing new for {self._timings.repair_timeout:g} s"

    def _finish(self) -> None:
        self.outbox.append(
            Fin(
                session=self.hello.session,
                digest=b"" if self.reason else self.digest,
                reason=self.reason,
                first_datagram=self.first_datagram,
                repaired=self.repaired,
                duplicates=self.assembly.duplicates,
                refused=self.assembly.refused + self._store.corrupt,
                durable=None if self.reason else self._store.durable,
                engine="" if self.reason else self._store.engine,
            )
        )

    def _move(self, event: _Event) -> None:
        try:
            self.state = _TRANSITIONS[self.state, event]
        except KeyError:
            raise LocalProtocolError(f"{event.name} is not possible in state {self.state.name}") from None

"""What a receiver decides in one session. No sockets, no files, no clock: what is held is looked at, not changed.

Theory of operation. Blocks come by whatever transports the phases name, and as repairs. One light path does not
reorder, so a jump in the segment numbers is a loss. It is asked for with a credit about a window later, together with
others: every message costs both sides as much as a block does. The end of a phase by light, and of the data, has no
such jump: then the receiver waits until nothing new came for a moment and asks for the rest. What was asked for and
does not come is asked for again; a block with a wrong digest is asked for like a lost one. What a pipeline brings is
never asked for while the pipeline may still bring it: until the data has ended. When every block is held and proven
the caller completes the target and tells the outcome, which goes out as Fin.

Messages to send collect in `outbox`. Credit is how far the receiver has dealt with the data; the sender's window hangs
on it, and its patience.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from blast_transport.base.errors import LocalProtocolError
from blast_transport.blocks.block_map import Range
from blast_transport.store.block_assembly import BlockAssembly
from blast_transport.transports.receiving import Arrived
from blast_transport.wire.codec import RANGES_PER_NACK
from blast_transport.wire.messages import Credit, EndOfData, Fin, Hello, Message, Nack, Phase, PhaseReady

_CREDITS_PER_JUMP = 8
"""No sender who waits for our credits is further ahead than this many of them; who jumps so far is not our sender."""

_CREDITS_PER_QUESTION = 3
"""As many as a window has, over which a sender gathers what several miss."""

_MAX_REPEATS = 8
"""Times `repeat` after which it asks again at the latest."""


@dataclass(frozen=True, slots=True)
class ReceiverTimings:
    """Seconds that a receiver waits.

    `gather`: for more losses before it asks for the first, if light is slow; `urgent`: the same where blocks are taken
    in order, and those behind a loss wait for it. `quiet`: without a new segment at an end before it asks for the rest.
    `repeat`: without any repair before it asks again, twice as long the next time. `silence`: without anything from the
    sender before it gives up; over a link that many share a connection may starve for more than ten. `patience`:
    without anything new after the end of data, though the sender lives, for that may have others to serve over the
    same link. `report`: between two signs of life to the sender.
    """

    # What is asked for in one message costs both sides little more than one loss does.
    gather: float = 0.04
    urgent: float = 0.02
    quiet: float = 0.01
    repeat: float = 0.3
    silence: float = 30.0
    patience: float = 60.0
    report: float = 0.2


class ReceiverState(Enum):
    """Where a receiver's session stands."""

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
    """One session at one receiver.

    Attributes to read: `state`, `reason` (of a failure), `digest` (of the whole, as the sender announced it),
    `first_datagram` (when the first one came), `repaired` (bytes that came as repairs over the packet network),
    `light_end` (no segment from there on can have been sent by light).
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
        # What light has passed over: in each (first, stop) every segment is here or has been asked for.
        self._passed: list[list[int]] = []
        # What of that is lost and was not asked for yet, and until when more may join it.
        self._gaps: list[Range] = []
        self._gaps_at = now
        # Where the last of these will end, once nothing more comes of it.
        self._tail, self._tail_at, self._all_asked = 0, now, False
        # What the sender says that it has sent.
        self._told = 0
        # The sender waits for our credits, of which this is the farthest.
        self._waited_for = True
        self._farthest = self._store.position
        self.light_end = 0
        # Lights that are over: when what may still be on its way has come, which they are, and where they ended.
        self._ended: list[tuple[float, list[int], int]] = []
        self._credited = 0
        # Who is served in the end need not ask all the time.
        self._repeat, self._repeat_at = self._timings.repeat, now
        self._alive_at = now + self._timings.report
        self._heard = self._last_new = now

    @property
    def over(self) -> bool:
        """The session has ended, well or badly."""
        return self.state in (ReceiverState.COMPLETE, ReceiverState.FAILED)

    @property
    def receiving(self) -> bool:
        """Blocks are still wanted."""
        return self.state in (ReceiverState.RECEIVING, ReceiverState.ENDING)

    @property
    def due(self) -> bool:
        """There is something to send or to complete."""
        return bool(self.outbox) or self.state is ReceiverState.COMMITTING

    @property
    def until_credit(self) -> int:
        """Segments that may come by light before a credit is due; at most 0 if one is as soon as anything comes."""
        if not self._lit:
            return 0
        passed, count, due = self._passed[-1][1], self.hello.block_segments, self._credited + self._credit_blocks
        # What we held before does not come, and before it a credit is due: a hole may be larger than the window.
        first, number = next(self._store.held.missing(passed // count, due), (due, 0))
        return (first + number) * count - max(passed, first * count)

    @property
    def phase_number(self) -> int:
        """Of the phase at which it is; 0 before the first."""
        return 0 if self._phase is None else self._phase.number

    def phase(self, phase: Phase, now: float, reason: str = "") -> None:
        """The data goes on by another transport, and the caller listens, or cannot for this `reason`."""
        self._heard = self._last_new = now
        first = phase.first * self.hello.block_segments
        if self._lit:
            self._ended.append((now + self._timings.quiet, self._passed[-1], first))
        if phase.traits.windowed:
            self._passed.append([first, first])
        if phase.traits.repairs_itself:
            # The chain brings it all from there on, also what the light lost.
            for passed in self._passed:
                passed[1] = max(passed[0], min(passed[1], first))
            self._gaps = [(lost, min(count, first - lost)) for lost, count in self._gaps if lost < first]
        self._ask_gaps(now)
        self._phase, self._credit_blocks, self._tail = phase, phase.credit, 0
        self._told = max(self._told, first) if phase.traits.windowed else self._told
        self.outbox.append(PhaseReady(self.hello.session, phase.number, reason))
        # What lies before the new light keeps nobody waiting.
        self._credit(now)

    def demoted(self, now: float) -> None:
        """The sender does not wait for our credits any more."""
        self._waited_for = False
        self.heard(0, now)

    def promoted(self, now: float) -> None:
        """The sender waits for our credits again."""
        self._waited_for = True
        self.heard(0, now)

    def cut_off(self) -> None:
        """The connection to the sender is lost, which goes on without our credits until it comes again."""
        self.light_end = self._max_segments()

    def come_again(self, now: float) -> None:
        """The sender has come again, and waits to hear how far we are."""
        self._heard = now
        self._credit(now)

    def arrived(self, came: Arrived, now: float) -> None:
        """Segments came by light, and are stored."""
        if not (came.runs and self.receiving):
            return
        if self.first_datagram is None:
            self.first_datagram = came.began
        # Only what is new counts as a sign of life: replayed datagrams must not keep a dead session alive.
        if came.new:
            self._heard = self._last_new = now
        for first, stop in came.runs if self._passed else ():
            passed = self._passed[-1]
            if passed[1] < stop <= self._max_segments():
                self._pass(passed, max(first, passed[1]), stop, now)
        self.stored(now)

    def repaired_by(self, size: int, now: float) -> None:
        """Rows of segments came over the control connection, and are stored; those that brought anything had `size`."""
        self._heard = now
        if not self.receiving:
            return
        if size:
            self._repeat = self._timings.repeat
            self._repeat_at = now + self._repeat
            self._last_new = now
            self.repaired += size
        self.stored(now)

    def stored(self, now: float) -> None:
        """Blocks may have been written, by whatever transport: tell how far it is, and see whether it is the whole."""
        store = self._store
        if self._handled >= self._credited + self._credit_blocks:
            self._credit(now)
        if self.state is ReceiverState.ENDING and store.complete:
            self._credit(now)
            self._move(_Event.ALL_HELD)

    def wrong(self, blocks: Sequence[Range], now: float) -> None:
        """These came with a wrong digest, and are not held."""
        count = self.hello.block_segments
        for first, number in blocks if self.receiving else ():
            self._ask(first * count, (first + number) * count, now)

    def progressed(self, now: float) -> None:
        """Something new was stored by a transport of the caller's."""
        self._heard = self._last_new = now
        self.stored(now)

    def heard(self, sent: int, now: float) -> None:
        """The sender lives, and all blocks before `sent` have left."""
        self._heard = now
        tail = sent * self.hello.block_segments
        self._told = max(self._told, tail)
        self._renew_light_end()
        if self._lit and tail > max(self._tail, self._passed[-1][1]):
            # Light may be slower than the word of it.
            self._tail, self._tail_at = tail, now

    def end_of_data(self, end: EndOfData, now: float) -> None:
        """The sender has sent everything once; the size is settled. Raises LocalProtocolError if it said so before."""
        self._heard = self._last_new = now
        self._move(_Event.END_OF_DATA)
        self.digest = end.digest
        self._repeat = self._timings.repeat
        self._repeat_at = min(self._repeat_at, now + self._repeat)
        self._ask_gaps(now)
        self.stored(now)

    def committed(self) -> None:
        """The digest of the whole was right and the target is complete."""
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
        """When `tick` has something to do at the latest; None if never."""
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
        """Segments of light for whose losses one question is enough."""
        return _CREDITS_PER_QUESTION * self._credit_blocks * self.hello.block_segments

    @property
    def _handled(self) -> int:
        """Blocks before this one need nothing more of the sender for now."""
        position = self._store.position
        if self._store.target.in_order or not self._lit:
            return position
        # Light leaves out what we held before, so that a loss before a hole must not hold the sender up for a window.
        passed = self._passed[-1][1] // self.hello.block_segments
        return max(position, self._store.held.first_missing(passed))

    @property
    def _open_end(self) -> bool:
        """Something may be missing at an end, where no gap shows it."""
        if self.state is ReceiverState.ENDING:
            return not self._all_asked
        return bool(self._tail)

    def _ask_end(self, now: float) -> None:
        """Ask for what no gap has shown of the last light, or for whatever is missing when the data has ended."""
        if self.state is ReceiverState.ENDING:
            # What was owed has come before the word of the end; what went by light for several may be lost again.
            self._passed, self._all_asked = [[0, self._max_segments()]], True
            self._ask(0, self._max_segments(), now)
            self._gaps.clear()
            self._ended.clear()
        else:
            passed = self._passed[-1]
            self._ask(passed[1], self._tail, now)
            passed[1] = max(passed[1], self._tail)
        self._tail = 0

    def _pass(self, passed: list[int], segment: int, stop: int, now: float) -> None:
        """Light has come from `segment` to before `stop`: what it left out is lost."""
        if segment > passed[1]:
            gap = (passed[1], segment - passed[1])
            # Who was left behind begins again where the sender says that it is.
            told = max(passed[1], self._told)
            most = _CREDITS_PER_JUMP * (self._credit_blocks + 1) * self.hello.block_segments
            # The sender waits for whoever keeps up: this is forged, or we are so late that we are served in the end.
            if segment - told > most and sum(count for _, count in self.assembly.missing(told, segment)) > most:
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
        """No segment from there on can have been sent by light: the sender keeps within a window of whom it waits for.

        What it has said that it sent may be more: it waited for nobody then.
        """
        if self._waited_for:
            window = 1 if self._phase is None else self._phase.window
            count = self.hello.block_segments
            self.light_end = max(self._farthest * count, self._told) + window * count
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
        silent = self._heard + self._timings.silence
        return min(silent, self._last_new + self._timings.patience) if self.state is ReceiverState.ENDING else silent

    def _silence(self, now: float) -> str:
        silent = f"nothing heard from the sender for {self._timings.silence:g} s"
        if self.state is not ReceiverState.ENDING:
            return silent
        missing = self._store.layout.blocks - self._store.held.held
        if now >= self._heard + self._timings.silence:
            return f"{missing} blocks were not repaired: {silent}"
        return f"{missing} blocks were not repaired: nothing new for {self._timings.patience:g} s"

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

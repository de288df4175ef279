"""What a receiver decides in one session. No sockets, no files, no clock.

Theory of operation. Segments arrive by light or as repairs. One light path does not reorder, so a jump in the
segment numbers is a loss and is asked for at once; the light may be dark for a while and go on at another group. The
end of the data has no such jump: after EndOfData the receiver waits until nothing new came for a moment and asks for
the rest. What was asked for and does not come is asked for again. When every segment is held the caller checks the
digest and tells the outcome, which goes out as Fin.

`segment` answers whether the caller has to store the bytes; messages to send collect in `outbox`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from blast_transport.bitmap import Bitmap
from blast_transport.control import DIGEST_BYTES, RANGES_PER_NACK, EndOfData, Fin, Hello, Message, Nack, Progress, Ready
from blast_transport.errors import LocalProtocolError


@dataclass(frozen=True, slots=True)
class ReceiverTimings:
    """Seconds that a receiver waits.

    `quiet`: without a new segment after EndOfData before it asks for the rest. `repeat`: without any repair before it
    asks again. `silence`: without a word from the sender, or without a new segment after EndOfData, before it gives up.
    `report`: between two signs of life to the sender while new segments come.
    """

    quiet: float = 0.02
    repeat: float = 0.5
    silence: float = 10.0
    report: float = 1.0


class ReceiverState(Enum):
    """Where a receiver's session stands."""

    RECEIVING = auto()
    ENDING = auto()
    VERIFYING = auto()
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
    (ReceiverState.ENDING, _Event.ALL_HELD): ReceiverState.VERIFYING,
    (ReceiverState.ENDING, _Event.FAILURE): ReceiverState.FAILED,
    (ReceiverState.VERIFYING, _Event.STORED): ReceiverState.COMPLETE,
    (ReceiverState.VERIFYING, _Event.FAILURE): ReceiverState.FAILED,
}


class ReceiverCore:
    """One session at one receiver.

    Attributes to read: `state`, `reason` (of a failure), `digest` (what the sender announced), `held` (Bitmap),
    `contiguous` (segments held from the start without a gap), `first_datagram` (`now` of the first one that was new),
    `repaired_bytes`, `duplicates`, `malformed`.
    """

    def __init__(self, hello: Hello, now: float, timings: ReceiverTimings | None = None) -> None:
        self.hello = hello
        self.state = ReceiverState.RECEIVING
        self.reason = ""
        self.digest = bytes(DIGEST_BYTES)
        self.held = Bitmap(hello.segments)
        self.contiguous = 0
        self.first_datagram: float | None = None
        self.repaired_bytes = 0
        self.duplicates = 0
        self.malformed = 0
        self.outbox: list[Message] = [Ready(hello.session)]
        self._timings = timings or ReceiverTimings()
        # Below `_asked` every segment is held or has been asked for.
        self._asked = 0
        self._repeat_at = now
        self._report_at: float | None = None
        self._heard = now
        self._last_new = now

    @property
    def over(self) -> bool:
        """The session has ended, well or badly."""
        return self.state in (ReceiverState.COMPLETE, ReceiverState.FAILED)

    def datagram(self, segment: int, length: int, now: float) -> bool:
        """A datagram of this session with `length` payload bytes came by light; True: store it."""
        new = self._segment(segment, length, now)
        if new and self.first_datagram is None:
            self.first_datagram = now
        return new

    def repair(self, segment: int, length: int, now: float) -> bool:
        """A segment came over the control connection; True: store it."""
        self._repeat_at = now + self._timings.repeat
        new = self._segment(segment, length, now)
        if new and self.hello.group:
            self.repaired_bytes += length
        return new

    def progress(self, now: float) -> None:
        """The sender said that it lives."""
        self._heard = now

    def tuned(self, now: float) -> None:
        """The caller listens to the group where the data goes on."""
        self._heard = now
        self.outbox.append(Ready(self.hello.session))

    def end_of_data(self, end: EndOfData, now: float) -> None:
        """The sender has sent every segment once. Raises LocalProtocolError if it said so before."""
        self._heard = self._last_new = now
        self._move(_Event.END_OF_DATA)
        self.digest = end.digest
        self.check_complete()

    def check_complete(self) -> None:
        """Call after the bytes of the last segment were stored: moves to VERIFYING if nothing is missing."""
        if self.state is ReceiverState.ENDING and self.held.held == self.held.size:
            self._move(_Event.ALL_HELD)

    def stored(self) -> None:
        """The digest was right and the file is in place."""
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
        waits = [self._give_up_at()]
        if self._report_at is not None:
            waits.append(self._report_at)
        if self.held.held < self._asked:
            waits.append(self._repeat_at)
        if self._tail_open():
            waits.append(self._last_new + self._timings.quiet)
        return min(waits)

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if self.over:
            return
        if now >= self._give_up_at():
            self.fail(self._silence())
            return
        if self._report_at is not None and now >= self._report_at:
            self.outbox.append(Progress(self.hello.session, self.contiguous))
            self._report_at = None
        if self.held.held < self._asked and now >= self._repeat_at:
            self._ask(0, self._asked, now)
        if self._tail_open() and now >= self._last_new + self._timings.quiet:
            self._ask(self._asked, self.held.size, now)
            self._asked = self.held.size

    def _segment(self, segment: int, length: int, now: float) -> bool:
        if self.state not in (ReceiverState.RECEIVING, ReceiverState.ENDING):
            self.duplicates += 1
            return False
        if segment >= self.held.size or length != self.hello.length(segment):
            self.malformed += 1
            return False
        if not self.held.add(segment):
            self.duplicates += 1
            return False
        # Only what is new counts as a sign of life: replayed datagrams must not keep a dead session alive.
        self._heard = self._last_new = now
        if self._report_at is None:
            self._report_at = now + self._timings.report
        if segment >= self._asked:
            if segment > self._asked:
                self._ask(self._asked, segment, now)
            self._asked = segment + 1
        if segment == self.contiguous:
            self.contiguous = self.held.first_missing(segment)
        return True

    def _ask(self, start: int, stop: int, now: float) -> None:
        ranges = tuple(self.held.missing(start, stop))
        for first in range(0, len(ranges), RANGES_PER_NACK):
            self.outbox.append(Nack(self.hello.session, ranges[first : first + RANGES_PER_NACK]))
        self._repeat_at = now + self._timings.repeat

    def _tail_open(self) -> bool:
        return self.state is ReceiverState.ENDING and self._asked < self.held.size

    def _give_up_at(self) -> float:
        since = self._last_new if self.state is ReceiverState.ENDING else self._heard
        return since + self._timings.silence

    def _silence(self) -> str:
        if self.state is ReceiverState.ENDING:
            missing = self.held.size - self.held.held
            return f"{missing} segments were not repaired: no new one for {self._timings.silence:g} s"
        return f"nothing heard from the sender for {self._timings.silence:g} s"

    def _finish(self) -> None:
        digest = bytes(DIGEST_BYTES) if self.reason else self.digest
        session, first = self.hello.session, self.first_datagram
        self.outbox.append(Fin(session, digest, self.reason, first, self.repaired_bytes, self.duplicates))

    def _move(self, event: _Event) -> None:
        try:
            self.state = _TRANSITIONS[self.state, event]
        except KeyError:
            raise LocalProtocolError(f"{event.name} is not possible in state {self.state.name}") from None

"""Probe of a group: which receivers its datagrams reach, before the data leaves. No sockets, no clock.

The first segment of the data is the probe, so that a group that works costs one round trip and no further datagram. A
receiver answers with its first report, over the control connection; it reports nothing before a segment has arrived.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

_REPEAT_SECONDS = 0.05
"""A single datagram may be lost, and a switch may learn a membership later than the sender learns of it."""
_ANSWER_SECONDS = 0.2
"""Twice the longest round trip on land, and longer than a busy receiver takes to report."""


class ProbeState(Enum):
    """State of a probe."""

    WAITING = auto()
    SENT = auto()
    REPEATED = auto()
    DECIDED = auto()


class ProbeEvent(Enum):
    """Event that changes the state of a probe."""

    SEGMENT_LEFT = auto()
    REPEAT_DUE = auto()
    ALL_ANSWERED = auto()
    ANSWERS_OVERDUE = auto()


_TRANSITIONS: dict[tuple[ProbeState, ProbeEvent], ProbeState] = {
    (ProbeState.WAITING, ProbeEvent.SEGMENT_LEFT): ProbeState.SENT,
    (ProbeState.SENT, ProbeEvent.REPEAT_DUE): ProbeState.REPEATED,
    **{
        (state, event): ProbeState.DECIDED
        for state in (ProbeState.SENT, ProbeState.REPEATED)
        for event in (ProbeEvent.ALL_ANSWERED, ProbeEvent.ANSWERS_OVERDUE)
    },
}


class GroupProbe:
    """State of the probe of one group."""

    def __init__(self) -> None:
        self.state = ProbeState.WAITING
        self._expected: set[str] = set()
        self._answered: set[str] = set()
        self._sent_at = 0.0

    @property
    def decided(self) -> bool:
        """Return whether it is known which receivers the group reaches."""
        return self.state is ProbeState.DECIDED

    @property
    def unanswered(self) -> set[str]:
        """Return the receivers that have not answered."""
        return self._expected - self._answered

    @property
    def reaches_any(self) -> bool:
        """Return whether a receiver has answered; an expected one, if any receiver is expected to answer."""
        return bool(self._answered & (self._expected or self._answered))

    def expect(self, names: Iterable[str]) -> None:
        """Expect answers of these receivers, and of no others."""
        self._expected = set(names)

    def left(self, now: float) -> None:
        """Record that the first segment has left."""
        if self.state is ProbeState.WAITING:
            self._sent_at = now
            self._move(ProbeEvent.SEGMENT_LEFT)

    def answer(self, name: str) -> None:
        """Record the answer of a receiver."""
        self._answered.add(name)

    def take_event(self, now: float) -> ProbeEvent | None:
        """Return the event that is due, and change the state by it; None if none is."""
        if self.state in (ProbeState.WAITING, ProbeState.DECIDED):
            return None
        if self._expected and not self.unanswered:
            return self._move(ProbeEvent.ALL_ANSWERED)
        if now >= self._sent_at + _ANSWER_SECONDS:
            return self._move(ProbeEvent.ANSWERS_OVERDUE)
        if self.state is ProbeState.SENT and now >= self._sent_at + _REPEAT_SECONDS:
            return self._move(ProbeEvent.REPEAT_DUE)
        return None

    def _move(self, event: ProbeEvent) -> ProbeEvent:
        self.state = _TRANSITIONS[self.state, event]
        return event

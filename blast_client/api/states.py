"""Enumerations of states and kinds of events, which the generated code has as plain numbers.

Members are integers, so that they equal those of `blast_api` and can be sent.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self, TypeVar

from blast_api import ttypes

T = TypeVar("T")

_UNKNOWN = "UNKNOWN_"


class _Growing(IntEnum):
    """An enumeration that accepts numbers of later versions as unnamed members."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f"{_UNKNOWN}{value}"
        member._value_ = value
        return member

    def __str__(self) -> str:
        return str(self.value) if self.name.startswith(_UNKNOWN) else self.name.lower()


class PartState(_Growing):
    """The state of a part, or of a whole request."""

    PENDING = ttypes.PartState.PENDING
    CONFIGURING = ttypes.PartState.CONFIGURING
    ACTIVE = ttypes.PartState.ACTIVE
    DONE = ttypes.PartState.DONE
    WITHDRAWN = ttypes.PartState.WITHDRAWN
    EXPIRED = ttypes.PartState.EXPIRED
    FAILED = ttypes.PartState.FAILED
    REJECTED = ttypes.PartState.REJECTED

    @property
    def final(self) -> bool:
        """True if the request or part has ended."""
        return self in _FINAL


class EventKind(_Growing):
    """The kind of an event of a part."""

    GRANTED = ttypes.EventKind.GRANTED
    PAUSED = ttypes.EventKind.PAUSED
    CHANGED = ttypes.EventKind.CHANGED
    REVOKED = ttypes.EventKind.REVOKED
    ENDED = ttypes.EventKind.ENDED


_FINAL = frozenset({PartState.DONE, PartState.WITHDRAWN, PartState.EXPIRED, PartState.FAILED, PartState.REJECTED})


def with_states(answer: T) -> T:
    """Replace the numbers of states and kinds in an answer by enumerations, and return the answer."""
    match answer:
        case ttypes.RequestStatus():
            answer.state = PartState(answer.state)
            for part in answer.parts:
                part.state = PartState(part.state)
        case ttypes.RequestPage():
            for request in answer.requests:
                with_states(request)
        case ttypes.Event():
            answer.kind = EventKind(answer.kind)
            if answer.state is not None:
                answer.state = PartState(answer.state)
    return answer

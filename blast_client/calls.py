"""What the synchronous and the asyncio client share: which calls may be repeated, and how a lost controller is told."""

from __future__ import annotations

from collections.abc import Sequence

from blast_api.ttypes import RequestFilter
from blast_client.address import Address

SAFE_TO_REPEAT = frozenset(
    {
        "submit",
        "awaitEvent",
        "request",
        "status",
        "listRequests",
        "explain",
        "fabric",
        "version",
        "ping",
        "drain",
        "elements",
        "quarantine",
        "releaseElement",
        "journal",
    }
)
"""Calls whose repetition changes nothing and has the same answer, so that a broken connection may be retried.

`extend` would add twice; `finish` and `withdraw` would answer that the request has ended.
"""

PAGE = 100
"""Requests asked for at a time: a page of wide groups still fits in a frame."""


class ControllerUnreachable(Exception):
    """No answer from the controller; its text is a sentence that says what to do.

    Whether the call was carried out is unknown unless the connection was refused.
    """

    def __init__(self, address: Address, reason: str) -> None:
        super().__init__(
            f"no answer from a controller at {address} ({reason}): "
            "start one with `blast controller run`, or name another address"
        )
        self.address = address


def milliseconds(seconds: float) -> int:
    """Seconds as the interface wants them; what is not nothing stays at least 1 ms."""
    return max(round(seconds * 1000), 1 if seconds > 0 else 0)


def filter_of(states: Sequence[int]) -> RequestFilter:
    """A filter on states; none means all."""
    return RequestFilter(states=list(states) or None)


class ConnectionBroken(ControllerUnreachable):
    """The connection ended under a call."""


NOT_BLAST = "what answers there does not speak Blast's protocol"
"""Reason of a `ControllerUnreachable` when the other side sends nonsense."""

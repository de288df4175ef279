"""What the synchronous and the asyncio client share: what is sent, and how a lost controller is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blast_api.ttypes import RequestFilter
from blast_client.address import Address
from blast_client.base_error import BlastError, WrongArgument

PAGE = 100
"""Requests asked for at a time: a page of wide groups still fits in a frame."""


class ControllerUnreachable(BlastError):
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
    """A filter on states; none means all. Raises WrongArgument."""
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise WrongArgument(f"states must be a list, as [PartState.PENDING], and not {states!r}")
    return RequestFilter(states=list(states) or None)


class NotReached(ControllerUnreachable):
    """No connection was made: nothing was asked."""


class ConnectionBroken(ControllerUnreachable):
    """The connection ended under a call."""


class ClientClosed(ControllerUnreachable):
    """The call came after the end of the client's `with`, or the client was closed under it."""

    def __init__(self, address: Address, when: str) -> None:
        Exception.__init__(self, f"the client of {address} was closed {when}: make a new one")
        self.address = address


class NoAnswerInTime(ControllerUnreachable):
    """A controller is there, but has not answered for `seconds`."""

    def __init__(self, address: Address, seconds: float) -> None:
        Exception.__init__(
            self,
            f"nothing came within {seconds:g} s from the controller at {address}: "
            "whether it does what was asked is unknown, `blast status` tells",
        )
        self.address = address


class BrokenAtOnce(ConnectionBroken):
    """A new connection ended under its first call: the two sides may expect different things of each other."""

    def __init__(self, address: Address, tls: bool) -> None:
        wish = "does the controller want a certificate, --cert" if tls else "does the controller want TLS, --ca"
        super().__init__(address, f"the connection broke at once; {wish}?")


class TlsFailed(ControllerUnreachable):
    """The two sides did not trust or understand each other; its text is a sentence that says what to look at."""

    def __init__(self, address: Address, reason: str) -> None:
        Exception.__init__(
            self,
            f"no TLS with the controller at {address} ({reason}): "
            "check --ca, --cert, --cert-key and --server-name, and that it speaks TLS",
        )
        self.address = address


NOT_BLAST = "what answers there does not speak Blast's protocol, or wants TLS (--ca)"
"""Reason of a `ControllerUnreachable` when the other side sends nonsense."""

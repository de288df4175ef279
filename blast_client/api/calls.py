"""Parts that both clients share: conversion of arguments, and exceptions for a controller that does not answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from blast_client.api.address import Address
from blast_client.api.base_error import BlastError, InvalidArgumentError

if TYPE_CHECKING:
    from blast_api.ttypes import RequestFilter

PAGE = 100
"""Requests per call of `list_requests`; a page of large groups fits in a frame."""


class ControllerUnreachableError(BlastError):
    """The controller did not answer.

    Unless the connection was refused, it is unknown if the controller executed the call.

    Parameters
    ----------
    address : Address
        Address of the controller, also an attribute.
    reason : str
        Cause, for the message.
    """

    def __init__(self, address: Address, reason: str) -> None:
        super().__init__(
            f"no answer from a controller at {address} ({reason}): "
            "start one with `blast controller run`, or give another address"
        )
        self.address = address


def milliseconds(seconds: float) -> int:
    """Return seconds as milliseconds, rounded; a positive time is at least 1 ms."""
    return max(round(seconds * 1000), 1 if seconds > 0 else 0)


def filter_of(states: Sequence[int]) -> RequestFilter:
    """Return a filter on states; an empty list selects all. Raises InvalidArgumentError."""
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise InvalidArgumentError(f"states must be a list such as [PartState.PENDING], not {states!r}")
    # Programs that only handle the exceptions do not load the interface.
    from blast_api.ttypes import RequestFilter

    return RequestFilter(states=list(states) or None)


class NotConnectedError(ControllerUnreachableError):
    """No connection could be made, so that the call was not sent."""


class ConnectionBrokenError(ControllerUnreachableError):
    """The connection broke during a call."""


class ClientClosedError(ControllerUnreachableError):
    """The client was closed before or during the call.

    Parameters
    ----------
    address : Address
        Address of the controller, also an attribute.
    when : str
        Time of the close relative to the call, for the message.
    """

    def __init__(self, address: Address, when: str) -> None:
        Exception.__init__(self, f"the client of {address} was closed {when}: create another client")
        self.address = address


class AnswerTimeoutError(ControllerUnreachableError):
    """A controller accepted the call but did not answer within `seconds`."""

    def __init__(self, address: Address, seconds: float) -> None:
        Exception.__init__(
            self,
            f"no answer within {seconds:g} s from the controller at {address}: "
            "it may have executed the call, check with `blast status`",
        )
        self.address = address


class ConnectionRejectedError(ConnectionBrokenError):
    """A new connection broke during its first call: client and controller may differ in their use of TLS."""

    def __init__(self, address: Address, tls: bool) -> None:
        cause = "a client certificate (--cert)" if tls else "TLS (--ca)"
        super().__init__(address, f"the connection broke at once; the controller may require {cause}")


class TlsError(ControllerUnreachableError):
    """The TLS handshake failed."""

    def __init__(self, address: Address, reason: str) -> None:
        Exception.__init__(
            self,
            f"TLS handshake with the controller at {address} failed ({reason}): "
            "check --ca, --cert, --cert-key and --server-name, and that the controller uses TLS",
        )
        self.address = address


NOT_BLAST = "the server there is not a Blast controller, or requires TLS (--ca)"
"""Reason of a `ControllerUnreachableError` for an answer that is not of the protocol."""

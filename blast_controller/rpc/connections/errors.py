"""Errors between the socket and the handler, by cause.

`ClientError`: the input violates the protocol or a limit. `HandlerError`: Blast's own code answered in a way that the
interface does not allow. Neither ever reaches a handler.
"""

from __future__ import annotations


class ClientError(Exception):
    """The other side broke the protocol or a limit."""


class FrameLengthError(ClientError):
    """A frame announced a length of zero or less: this is no framed Thrift client."""

    def __init__(self, length: int) -> None:
        super().__init__(f"frame length {length} is not positive")


class FrameTooLargeError(ClientError):
    """A frame announced more than the cap. `beginning` is what had already arrived of its body."""

    def __init__(self, length: int, cap: int, beginning: bytes) -> None:
        super().__init__(f"frame of {length} bytes exceeds the cap of {cap} bytes")
        self.beginning = beginning


class MalformedMessageError(ClientError):
    """A frame's body is no Thrift call: it cannot be answered, and the connection is closed."""


class CallRefusedError(ClientError):
    """A readable call that cannot be carried out; `kind` is a type of `TApplicationException`."""

    def __init__(self, kind: int, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


class HandlerError(Exception):
    """A handler returned what its method's declaration does not allow."""

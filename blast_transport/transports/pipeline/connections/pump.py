"""Interfaces of the destination and the origin of a link's data.

`take` and `give` transfer single pieces. With the compiled engine, and without encryption, one call parses and writes
whole data frames, until another message arrives or is queued.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import NamedTuple, Protocol

from blast_transport.store.blocks.store_pace import StorePace


class FrameReadResult(NamedTuple):
    """Result of reading frames: `amount` bytes of data, and `payload` bytes of the last frame that are still to come.

    `broken`: error number of the link, 0 if it was closed; None without an error.
    """

    amount: int
    payload: int
    broken: int | None


class FrameWriteResult(NamedTuple):
    """Result of writing frames: `amount` bytes of data, and `promised` bytes still to be sent.

    The promised bytes follow `head` of their frame. `broken`: as in `FrameReadResult`.
    """

    amount: int
    promised: int
    head: bytes
    broken: int | None


FrameReader = Callable[[socket.socket, int], FrameReadResult]
"""Called with the bytes that precede the next frame. Raises StoreError, RemoteProtocolError."""
FrameWriter = Callable[[socket.socket, int, int, int], FrameWriteResult]
"""Called with the offset, the announced bytes from there on, and the offset to stop at.

Raises SourceChangedError, StoreError."""


class Outlet(Protocol):
    """Origin of a link's data."""

    @property
    def frames(self) -> FrameWriter | None:
        """Return the writer of whole frames, if it can be used now. Raise StoreError."""

    def check(self, offset: int) -> None:
        """Raise ForgottenError if data from this offset on is no longer held."""

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """Send up to `limit` bytes from `offset` on; return the bytes that the socket accepted, 0 if none now.

        Raise OSError of the socket, ForgottenError, SourceChangedError, StoreError.
        """


class Intake(Protocol):
    """Destination of a link's data. `position`: all bytes before it are received."""

    position: int

    @property
    def frames(self) -> FrameReader | None:
        """Return the reader of whole frames, if it can be used now."""

    @property
    def servable(self) -> int:
        """Return the offset before which all data can be forwarded."""

    @property
    def ready(self) -> bool:
        """Return whether there is room for more. Raise StoreError."""

    def take(self, sock: socket.socket, limit: int) -> int:
        """Read up to `limit` bytes from the socket; return their number, 0 at its end.

        Raise OSError of the socket (BlockingIOError: no data now), StoreError, RemoteProtocolError.
        """

    def settle(self) -> None:
        """Store the received data, because no more arrives for now. Raise StoreError."""

    def skip(self, position: int) -> None:
        """Continue at this offset, where a block begins, or the data ends: the store holds everything before."""

    def complete(self, final: bool) -> None:
        """End the data; `final`: the rest is the last block of the whole. Raise StoreError.

        Only the sender knows the size of the whole.
        """

    @property
    def drained(self) -> bool:
        """Return whether all received data is in the store. Raise StoreError."""

    @property
    def pace(self) -> StorePace | None:
        """Return the pace of the store; None: it does not matter. Raise StoreError."""

    @property
    def writing(self) -> float:
        """Return the seconds for which the store has accepted nothing while data waits. Raise StoreError."""

    def close(self) -> None:
        """Free all resources."""

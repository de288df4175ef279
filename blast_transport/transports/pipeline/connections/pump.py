"""What the data of a link goes into, and comes out of.

Piece by piece, which is `take` and `give`; or, where it is compiled and the link is not encrypted, by calls that follow
and write the frames of data themselves, for as long as nothing else comes and nothing else is to be said.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import NamedTuple, Protocol

from blast_transport.store.store_pace import StorePace


class FramesTaken(NamedTuple):
    """`amount` bytes of data came; so many of the last frame are still to come (`payload`).

    `broken`: the system's number for what is wrong with the link, 0 if it was closed; None if nothing is.
    """

    amount: int
    payload: int
    broken: int | None


class FramesGiven(NamedTuple):
    """`amount` bytes of data went; so many are `promised` and still to go, behind what is left of their frame's `head`.

    `broken` as of `FramesTaken`.
    """

    amount: int
    promised: int
    head: bytes
    broken: int | None


TakesFrames = Callable[[socket.socket, int], FramesTaken]
"""Called with the bytes that come before the next frame. Raises StoreError, RemoteProtocolError."""
GivesFrames = Callable[[socket.socket, int, int, int], FramesGiven]
"""Called with where to begin, the bytes from there on that are promised, and before where to stop.

Raises SourceChangedError, StoreError."""


class Outlet(Protocol):
    """Where data for a link comes from."""

    @property
    def frames(self) -> GivesFrames | None:
        """What gives whole frames at once, if anything does now. Raises StoreError."""

    def check(self, offset: int) -> None:
        """Raises ForgottenError if data from this offset on is not held any more."""

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """Send up to `limit` bytes from `offset` on; how many the socket took, 0 if none now.

        Raises OSError of the socket, ForgottenError, SourceChangedError, StoreError.
        """


class Intake(Protocol):
    """Where data from a link goes. `position`: all before it is taken."""

    position: int

    @property
    def frames(self) -> TakesFrames | None:
        """What takes whole frames at once, if anything does now."""

    @property
    def servable(self) -> int:
        """All before this offset can be sent on."""

    @property
    def ready(self) -> bool:
        """There is room for more. Raises StoreError."""

    def take(self, sock: socket.socket, limit: int) -> int:
        """Take up to `limit` bytes that the socket has; how many, 0 at its end.

        Raises OSError of the socket (BlockingIOError: it has none now), StoreError, RemoteProtocolError.
        """

    def settle(self) -> None:
        """Nothing more comes for now. Raises StoreError."""

    def skip(self, position: int) -> None:
        """The store holds all before this offset, where a block begins, or the data ends: take what comes there."""

    def complete(self, final: bool) -> None:
        """Nothing more comes; `final`: what is left is the last block of the whole. Raises StoreError.

        How long the whole is says the sender alone.
        """

    @property
    def drained(self) -> bool:
        """All that came is in the store. Raises StoreError."""

    @property
    def pace(self) -> StorePace | None:
        """How the store does; None: it may be as slow as it likes. Raises StoreError."""

    @property
    def writing(self) -> float:
        """For so many seconds the store has taken nothing, though something waits for it. Raises StoreError."""

    def close(self) -> None:
        """Give back what it uses."""

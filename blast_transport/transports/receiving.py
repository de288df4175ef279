"""Receiving side of a transport: it puts blocks into the store and reports them to the session, never the bytes."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.links.dialling import Dialer
from blast_transport.store.block_assembly import BlockAssembly
from blast_transport.wire.joining import Join

GroupOpener = Callable[[str, str, int], socket.socket]
"""(interface address, group, port) -> a non-blocking socket that has joined."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Segments came that others may overtake: as runs (first, stop) in their order, of which so many were new.

    `began`: when they were read; a slow store may have taken long since.
    """

    runs: Sequence[tuple[int, int]]
    new: int
    began: float


@dataclass(frozen=True, slots=True)
class Stored:
    """Blocks were put into the store by a transport that loses nothing."""


@dataclass(frozen=True, slots=True)
class StoreLost:
    """The store takes nothing more, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Word:
    """The transport of phase `phase` tells its counterpart at the sender how it is, in few bytes, a few times a second.

    Each one takes the place of those before, which the sender may never have looked at.
    """

    phase: int
    body: bytes


TransportEvent = Arrived | Stored | StoreLost | Word


@dataclass(frozen=True, slots=True)
class ReceivingContext:
    """What a transport is given: where blocks go, and how it reaches others.

    `interface_address` is ours on the light path, None without one. `wake` tells the session, from any thread, that
    there are events. `woken` gives two descriptors: there is something to read at one of them when the session has
    something else to do.
    """

    assembly: BlockAssembly
    dial: Dialer
    interface_address: str | None
    open_group: GroupOpener
    wake: Callable[[], None]
    woken: Callable[[], tuple[int, int]]


class ReceivingTransport:
    """One phase's transport at a receiver; what most have no use for does nothing here.

    Its methods are the session's thread's, but for `join`, and wait for nobody, but for `work` as `stay` lets it.
    `descriptor` becomes readable when there is `work`; None: it works by itself.
    """

    descriptor: int | None = None

    def stay(self, until: float, segments: int) -> None:
        """The next `work` may last until then, or until so many segments have come, unless the session is woken."""

    def work(self) -> None:
        """Take what has come, and let it gather before, as long as nobody waits for that. Raises StoreError."""

    def drain(self) -> None:
        """Take what has come by now: it will be closed. Raises StoreError."""

    def events(self) -> Iterable[TransportEvent]:
        """What has happened since the last call."""
        raise NotImplementedError

    def permit(self, stop: int) -> None:
        """No segment from `stop` on can have been sent yet."""

    def join(self, sock: socket.socket, join: Join) -> None:
        """A neighbor has connected. Raises RemoteProtocolError if nobody waits for it."""
        raise RemoteProtocolError(f"nobody passes anything on by phase {join.phase} of session {join.session}")

    def close(self, reason: str) -> None:
        """End, for this reason, and give everything back; as often as you like.

        Nothing is written by its own hand any more, and nothing stays claimed of the store.
        """

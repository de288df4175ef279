"""Receiving side of a transport: it puts blocks into the store and reports them to the session, never the bytes."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.links.dialling import Dialer
from blast_transport.store.blocks.block_assembly import BlockAssembly
from blast_transport.wire.joining import Join


class GroupOpener(Protocol):
    """Function that opens a non-blocking socket that has joined a group, if given for one source only."""

    def __call__(self, interface_address: str, group: str, port: int, source: str | None = None, /) -> socket.socket:
        """Open it. Raises OSError, WrongInputError."""
        ...


@dataclass(frozen=True, slots=True)
class SegmentsArrived:
    """Segments arrived that others may overtake: as runs (first, stop) in their order, `new` of them new.

    `began`: time of the read, which a slow store may have delayed since.
    """

    runs: Sequence[tuple[int, int]]
    new: int
    began: float


@dataclass(frozen=True, slots=True)
class BlocksStored:
    """Blocks were put into the store by a transport that loses nothing."""


@dataclass(frozen=True, slots=True)
class StoreLost:
    """The store takes nothing more, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class StatusReport:
    """Report of the transport of phase `phase` to its counterpart at the sender, of few bytes, several times a second.

    Each report replaces earlier ones, which the sender may never have read.
    """

    phase: int
    body: bytes


TransportEvent = SegmentsArrived | BlocksStored | StoreLost | StatusReport


@dataclass(frozen=True, slots=True)
class ReceivingContext:
    """Resources of a transport: destination of the blocks, and connections to others.

    `interface_address`: of this host on the optical network, None without one; `own_address`: on the packet network, as
    the sender sees it. `wake` notifies the session of events,
    from any thread. `woken` returns two descriptors, one of which is readable when the session has other work.
    """

    assembly: BlockAssembly
    dial: Dialer
    interface_address: str | None
    own_address: str | None
    open_group: GroupOpener
    wake: Callable[[], None]
    woken: Callable[[], tuple[int, int]]


class ReceivingTransport:
    """Transport of one phase at a receiver; methods that most transports do not need do nothing here.

    Only the session's thread calls its methods, except for `join`; they do not wait, except for `work` within the
    limits of `stay`. `descriptor` is readable when there is `work`; None: the transport has a thread.
    """

    descriptor: int | None = None

    def stay(self, until: float, segments: int) -> None:
        """Let the next `work` last until then, or until `segments` have arrived, unless the session is woken."""

    def work(self) -> None:
        """Process available data, and let it collect before, as long as nothing waits for it. Raise StoreError."""

    def drain(self) -> None:
        """Process all available data before the transport is closed. Raise StoreError."""

    def events(self) -> Iterable[TransportEvent]:
        """Return the events since the last call."""
        raise NotImplementedError

    def permit(self, stop: int) -> None:
        """Accept only segments before `stop`; later ones cannot have been sent yet."""

    def receive_order(self, body: bytes) -> None:
        """Handle an order of the counterpart at the sender. Raise RemoteProtocolError."""
        raise RemoteProtocolError("the transport expects no orders")

    def join(self, sock: socket.socket, join: Join) -> None:
        """Take over a neighbor's connection. Raise RemoteProtocolError if none is expected."""
        raise RemoteProtocolError(f"phase {join.phase} of session {join.session} expects no connection")

    def close(self, reason: str) -> None:
        """End for this reason and free all resources; repeated calls have no effect.

        The transport then writes nothing, and holds no claims in the store.
        """

"""Transport `trees` at a receiver: a host of the trees, in a thread of its own, and its events for the session."""

from __future__ import annotations

import hmac
import queue
import socket
from collections.abc import Iterator
from contextlib import suppress

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.transports.receiving import (
    BlocksStored,
    ReceivingContext,
    ReceivingTransport,
    StatusReport,
    StoreLost,
    TransportEvent,
)
from blast_transport.transports.trees.events import Event, ReportReady, Settled, TreeStoreFailed
from blast_transport.transports.trees.node import TreeNode
from blast_transport.transports.trees.parameters import trees_phase
from blast_transport.transports.trees.protocol.fields import encode_report
from blast_transport.wire.joining import Join
from blast_transport.wire.messages import Phase


class TreesReceiver(ReceivingTransport):
    """Host of the trees at the place of its phase. Raises RemoteProtocolError, NoThreadError."""

    def __init__(self, phase: Phase, around: ReceivingContext) -> None:
        place = trees_phase(phase)
        if place.place == 0:
            raise RemoteProtocolError("Phase makes this host the sender of the trees")
        self._wake = around.wake
        self._happened: queue.SimpleQueue[TransportEvent] = queue.SimpleQueue()
        self._node = TreeNode(place, around.assembly.store, self._note, around.dial)
        self._node.start()

    def _note(self, event: Event) -> None:
        match event:
            case TreeStoreFailed(reason):
                self._happened.put(StoreLost(reason))
            case Settled():
                self._happened.put(BlocksStored())
            case ReportReady(word):
                self._happened.put(StatusReport(self._node.phase.number, encode_report(word)))
            case _:
                return
        self._wake()

    def events(self) -> Iterator[TransportEvent]:
        """Return the events of the host."""
        with suppress(queue.Empty):
            while True:
                yield self._happened.get_nowait()

    def join(self, sock: socket.socket, join: Join) -> None:
        """Take over the connection of a parent."""
        if not hmac.compare_digest(join.token, self._node.phase.token):
            raise RemoteProtocolError(f"{join.name!r} does not know the token of phase {join.phase}")
        self._node.accept(sock, join.name)

    def close(self, reason: str) -> None:
        """End the host soon; its thread gives everything back."""
        self._node.stop(reason)

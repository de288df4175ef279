"""Transport `pipeline` at a receiver: a node, in a thread of its own, and its events for the session."""

from __future__ import annotations

import hmac
import queue
import socket
from collections.abc import Iterator
from contextlib import suppress

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.transports.pipeline.node import PipelineNode
from blast_transport.transports.pipeline.parameters import pipeline_phase
from blast_transport.transports.pipeline.protocol.messages import encode_failed
from blast_transport.transports.pipeline.protocol.phase import NodeLost, PipelineEvent, StoreFailed
from blast_transport.transports.receiving import (
    BlocksStored,
    ReceivingContext,
    ReceivingTransport,
    StatusReport,
    StoreLost,
    TransportEvent,
)
from blast_transport.wire.codec import WORD_BYTES
from blast_transport.wire.joining import Join
from blast_transport.wire.messages import Phase

_REASON_LETTERS = 50
_MAX_REPORTED = WORD_BYTES // (4 * _REASON_LETTERS + 3)
"""A letter has four bytes at most, and each name three more."""


class PipelineReceiver(ReceivingTransport):
    """Node of a chain at the position of its phase. Raises RemoteProtocolError, WrongInputError, NoThreadError."""

    def __init__(self, phase: Phase, around: ReceivingContext) -> None:
        place = pipeline_phase(phase)
        if place.index == 0:
            raise RemoteProtocolError("Phase makes this host the source of the chain")
        self._wake = around.wake
        self._lost: dict[int, str] = {}
        self._happened: queue.SimpleQueue[TransportEvent] = queue.SimpleQueue()
        self._node = PipelineNode(place, around.assembly.store, self._note, around.dial)
        self._node.start()

    def _note(self, event: PipelineEvent) -> None:
        phase = self._node.phase
        match event:
            case StoreFailed(reason):
                self._happened.put(StoreLost(reason))
            case NodeLost(name, reason):
                # Of a stream what it misses would be kept until the chain's report, which cannot come before its end.
                self._happened.put(StatusReport(phase.number, self._word(phase.place(name) or 0, reason)))
            case _:
                self._happened.put(BlocksStored())
        self._wake()

    def _word(self, place: int, reason: str) -> bytes:
        """Encode all lost nodes, because only the latest report counts; the chain's report names those without room."""
        if len(self._lost) < _MAX_REPORTED:
            self._lost[place] = reason[:_REASON_LETTERS]
        return encode_failed(self._lost)

    def events(self) -> Iterator[TransportEvent]:
        """Return the events of the node."""
        with suppress(queue.Empty):
            while True:
                yield self._happened.get_nowait()

    def join(self, sock: socket.socket, join: Join) -> None:
        """Take over the connection of the predecessor, or of a node that fetches missing data."""
        if not hmac.compare_digest(join.token, self._node.phase.token):
            raise RemoteProtocolError(f"{join.name!r} does not know the token of phase {join.phase}")
        self._node.accept(sock, join.name)

    def close(self, reason: str) -> None:
        """End the node soon; its thread gives everything back."""
        self._node.stop(reason)

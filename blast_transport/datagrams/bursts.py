"""Sending of the blocks in bursts, each a block or a piece of one, when the pacer permits.

`sender.py` decides which blocks may leave. This implementation in Python works with any reader, and is the reference
for the compiled one.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from blast_transport.base.errors import ForgottenError
from blast_transport.blocks.masks import runs
from blast_transport.datagrams.burst import Burst
from blast_transport.datagrams.offload import DatagramSender
from blast_transport.datagrams.pacing import Pacer
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.transports.sending import ParityRun
from blast_transport.wire.datagram import HEADER
from blast_transport.wire.messages import Phase

Retransmission = tuple[int, int]
"""(block, mask of its segments)."""


@dataclass(frozen=True, slots=True)
class BurstLimit:
    """Limit of one step: at most `bursts` bursts from `now` on.

    An implementation may wait for the pacer, but not until `until`.
    """

    bursts: int
    now: float
    until: float


class Bursts(Protocol):
    """Sender of bursts; `segment` of `block` leaves next, and `datagrams` have left, with `wire_bytes` on the wire.

    `offload`: sent as super-packets.
    """

    block: int
    segment: int
    datagrams: int
    wire_bytes: int

    @property
    def offload(self) -> bool:
        """Return whether datagrams are sent as super-packets."""

    def go_on(self, stop: int, piece: int, pacer: Pacer, step: BurstLimit) -> int:
        """Send bursts of `piece` segments of the blocks before `stop`; return the number of bursts.

        No burst crosses the end of a block. Each leaves when `pacer` permits, and is reported to it. A block that has
        begun is sent to its end. Raises LightPathError, SourceChangedError, ForgottenError.
        """

    def again(self, retransmissions: Sequence[Retransmission]) -> None:
        """Retransmit these segments, as far as they are held. Raise LightPathError, SourceChangedError."""

    def send_parity(self, parity: ParityRun, group_blocks: int) -> None:
        """Send parity of a group of blocks, if the reader `can_encode`. Raise LightPathError, SourceChangedError."""


class ReadBursts:
    """`Bursts` of any reader, including sealed blocks."""

    def __init__(self, sock: socket.socket, phase: Phase, reader: BlockReader) -> None:
        layout = reader.layout
        self.block, self.segment = phase.first, 0
        self.datagrams = self.wire_bytes = 0
        self._reader = reader
        self._burst, self._again = Burst(phase.session, layout), Burst(phase.session, layout)
        self._sender = DatagramSender(sock, HEADER.size + layout.segment_size)

    @property
    def offload(self) -> bool:
        """Return whether datagrams are sent as super-packets."""
        return self._sender.offload

    def go_on(self, stop: int, piece: int, pacer: Pacer, step: BurstLimit) -> int:
        """Send bursts without waiting."""
        bursts = 0
        while (self.segment or self.block < stop) and bursts < step.bursts and pacer.delay(step.now) == 0:
            before = self.wire_bytes
            self._send_piece(piece)
            pacer.sent(self.wire_bytes - before, step.now)
            bursts += 1
        return bursts

    def again(self, retransmissions: Sequence[Retransmission]) -> None:
        """Retransmit these segments."""
        for block, mask in retransmissions:
            try:
                image = self._reader.image(block)
            except ForgottenError:
                # A stream does not keep blocks that all receivers have got meanwhile.
                continue
            self._again.payload[: len(image)] = image
            self._again.load(block, len(image))
            for first, count in runs(mask & ((1 << self._again.segments) - 1)):
                self._send(self._again, first, count)

    def send_parity(self, parity: ParityRun, group_blocks: int) -> None:
        """Send nothing: only the compiled engine encodes."""

    def _send_piece(self, piece: int) -> None:
        burst = self._burst
        if burst.segments == 0:
            burst.load(self.block, self._reader.load(self.block, burst.payload))
        count = min(piece, burst.segments - self.segment)
        self._send(burst, self.segment, count)
        self.segment += count
        if self.segment == burst.segments:
            self.block, self.segment = self.block + 1, 0
            burst.segments = 0

    def _send(self, burst: Burst, first: int, count: int) -> None:
        self._sender.send(burst.parts(first, count))
        self.wire_bytes += burst.wire_bytes(first, count)
        self.datagrams += count

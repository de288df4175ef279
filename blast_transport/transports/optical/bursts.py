"""How the sender's blocks get onto the light: in bursts, each a block or a piece of one, when the pacer lets them.

What may leave is decided elsewhere (`sender.py`) and told as numbers. The one here is in Python: it takes any reader,
and is the reference for the one that is compiled.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from blast_transport.base.errors import ForgottenError
from blast_transport.blocks.masks import runs
from blast_transport.store.block_reader import BlockReader
from blast_transport.transports.optical.burst import Burst
from blast_transport.transports.optical.offload import DatagramSender
from blast_transport.transports.optical.pacing import Pacer
from blast_transport.wire.datagram import HEADER
from blast_transport.wire.messages import Phase

Owed = tuple[int, int]
"""(block, mask of its segments)."""


@dataclass(frozen=True, slots=True)
class Turn:
    """At most so many bursts from `now` on. Who can waits for the pacer, but for no burst until `until` or longer."""

    bursts: int
    now: float
    until: float


class Bursts(Protocol):
    """What leaves next is `segment` of `block`; so many `datagrams` have left, which were `wire_bytes` on the wire.

    `offload`: they go as super-packets.
    """

    block: int
    segment: int
    datagrams: int
    wire_bytes: int

    @property
    def offload(self) -> bool:
        """As above."""

    def go_on(self, stop: int, piece: int, pacer: Pacer, turn: Turn) -> int:
        """Send bursts of `piece` segments, none over the end of a block, of the blocks before `stop`; how many.

        Each when `pacer` lets it, which is told of it. A block that is under way is sent to its end. Raises
        LightPathError, SourceChangedError, ForgottenError.
        """

    def again(self, owed: Sequence[Owed]) -> None:
        """Send these segments once more, as far as they are there. Raises LightPathError, SourceChangedError."""


class ReadBursts:
    """As `Bursts`, of what a reader gives, which can be anything, and sealed."""

    def __init__(self, sock: socket.socket, phase: Phase, reader: BlockReader) -> None:
        layout = reader.layout
        self.block, self.segment = phase.first, 0
        self.datagrams = self.wire_bytes = 0
        self._reader = reader
        self._burst, self._again = Burst(phase.session, layout), Burst(phase.session, layout)
        self._sender = DatagramSender(sock, HEADER.size + layout.segment_size)

    @property
    def offload(self) -> bool:
        """As of `Bursts`."""
        return self._sender.offload

    def go_on(self, stop: int, piece: int, pacer: Pacer, turn: Turn) -> int:
        """As of `Bursts`; waits for nothing."""
        bursts = 0
        while (self.segment or self.block < stop) and bursts < turn.bursts and pacer.delay(turn.now) == 0:
            before = self.wire_bytes
            self._send_piece(piece)
            pacer.sent(self.wire_bytes - before, turn.now)
            bursts += 1
        return bursts

    def again(self, owed: Sequence[Owed]) -> None:
        """As of `Bursts`."""
        for block, mask in owed:
            try:
                image = self._reader.image(block)
            except ForgottenError:
                # Of a stream nothing is kept that everybody has got meanwhile.
                continue
            self._again.payload[: len(image)] = image
            self._again.load(block, len(image))
            for first, count in runs(mask & ((1 << self._again.segments) - 1)):
                self._send(self._again, first, count)

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

"""Compiled sending of a file's blocks: read, digest, pace and send in one call without Python's lock.

Retransmissions of many blocks are combined into super-packets. Sealed blocks, and sources other than files, use
`bursts.py`, which is the reference.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence

from blast_transport.datagrams.bursts import BurstLimit, Bursts, ReadBursts, Retransmission
from blast_transport.datagrams.offload import cut_super_packets, refused_datagrams
from blast_transport.datagrams.pacing import Pacer
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.store.sources.compiled_reader import CompiledReader
from blast_transport.transports.sending import ParityRun
from blast_transport.wire.datagram import HEADER
from blast_transport.wire.messages import Phase

SentCounts = tuple[int, int, int]
"""(bursts, datagrams, bytes on the wire)."""


def open_bursts(sock: socket.socket, phase: Phase, reader: BlockReader, woken: int) -> Bursts:
    """Open bursts by the engine of the reader, on a socket that is connected to the group.

    They wait no longer when there is something to read at the descriptor `woken`.
    """
    if isinstance(reader, CompiledReader) and not reader.sealed:
        return CompiledBursts(sock, phase, reader, woken)
    return ReadBursts(sock, phase, reader)


def can_encode(reader: BlockReader) -> bool:
    """Return whether the bursts of this reader can send parity segments, whose code needs an even number of bytes."""
    return isinstance(reader, CompiledReader) and not reader.sealed and reader.layout.segment_size % 2 == 0


class CompiledBursts:
    """`Bursts` of a file that a compiled reader reads."""

    def __init__(self, sock: socket.socket, phase: Phase, reader: CompiledReader, woken: int) -> None:
        layout = reader.layout
        self.block, self.segment = phase.first, 0
        self.datagrams = self.wire_bytes = 0
        self._socket, self._reader, self._woken = sock, reader, woken
        offload = cut_super_packets(sock, HEADER.size + layout.segment_size)
        cut = layout.size, layout.segment_size, layout.block_segments
        self._native = reader.native.Bursts(phase.session, cut, offload)

    @property
    def offload(self) -> bool:
        """Return whether datagrams are sent as super-packets."""
        return bool(self._native.offload)

    def go_on(self, stop: int, piece: int, pacer: Pacer, step: BurstLimit) -> int:
        """Send bursts; wait for the pacer."""
        reader, call = self._reader, self._native.go_on
        # An earlier transport may have sent more than was digested.
        reader.digest(self.block - reader.digested)
        spot, run, when = (self.block, self.segment), (stop, piece), (step.bursts, step.now, step.until)
        result = reader.by_engine(call, self._ends, spot, run, when, pacer.schedules, reader.digested)
        (self.block, self.segment), counts, pacer.due, digests, refused = result
        reader.note(reader.digested, digests)
        return self._count(counts, refused)

    def again(self, retransmissions: Sequence[Retransmission]) -> None:
        """Retransmit these segments."""
        counts, refused = self._reader.by_engine(self._native.again, self._ends, retransmissions)
        self._count(counts, refused)

    def send_parity(self, parity: ParityRun, group_blocks: int) -> None:
        """Send parity of a group of blocks."""
        counts, refused = self._reader.by_engine(self._native.parity, self._ends, group_blocks, parity)
        self._count(counts, refused)

    @property
    def _ends(self) -> tuple[int, int | None, int]:
        return self._socket.fileno(), self._reader.source.descriptor, self._woken

    def _count(self, counts: SentCounts, refused: tuple[int, int] | None) -> int:
        """Count the datagrams that left, even before an error; return the number of bursts. Raise LightPathError."""
        bursts, datagrams, wire_bytes = counts
        self.datagrams += datagrams
        self.wire_bytes += wire_bytes
        # EINTR is not a failure: the next call sends the rest, or a repair replaces it.
        if refused is not None and refused[0] != errno.EINTR:
            number, size = refused
            raise refused_datagrams(size, OSError(number, os.strerror(number)))
        return bursts

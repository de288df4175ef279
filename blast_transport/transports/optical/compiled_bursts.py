"""Blocks of a file onto the light, compiled: read, digest, pace, send; all without Python's lock, for one turn each.

What is lost is gathered out of many blocks into super-packets. What is sealed, and what is no file, takes the way of
`bursts.py`, which is the reference.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence

from blast_transport.store.block_reader import BlockReader
from blast_transport.store.compiled_reader import CompiledReader
from blast_transport.transports.optical.bursts import Bursts, Owed, ReadBursts, Turn
from blast_transport.transports.optical.offload import cut_super_packets, refused_datagrams
from blast_transport.transports.optical.pacing import Pacer
from blast_transport.wire.datagram import HEADER
from blast_transport.wire.messages import Phase

Gone = tuple[int, int, int]
"""(bursts, datagrams, bytes on the wire)."""


def open_bursts(sock: socket.socket, phase: Phase, reader: BlockReader, woken: int) -> Bursts:
    """Bursts by the engine of the reader, of a socket that is connected to the group.

    They wait no longer when there is something to read at the descriptor `woken`.
    """
    if isinstance(reader, CompiledReader) and not reader.sealed:
        return CompiledBursts(sock, phase, reader, woken)
    return ReadBursts(sock, phase, reader)


class CompiledBursts:
    """As `Bursts`, of a file that a compiled reader reads."""

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
        """As of `Bursts`."""
        return bool(self._native.offload)

    def go_on(self, stop: int, piece: int, pacer: Pacer, turn: Turn) -> int:
        """As of `Bursts`; waits for the pacer."""
        reader, call = self._reader, self._native.go_on
        # A transport that was left may have gone further than what was digested.
        reader.digest(self.block - reader.digested)
        spot, run, when = (self.block, self.segment), (stop, piece), (turn.bursts, turn.now, turn.until)
        told = reader.by_engine(call, self._ends, spot, run, when, pacer.schedules, reader.digested)
        (self.block, self.segment), gone, pacer.due, digests, refused = told
        reader.note(reader.digested, digests)
        return self._count(gone, refused)

    def again(self, owed: Sequence[Owed]) -> None:
        """As of `Bursts`."""
        gone, refused = self._reader.by_engine(self._native.again, self._ends, owed)
        self._count(gone, refused)

    @property
    def _ends(self) -> tuple[int, int | None, int]:
        return self._socket.fileno(), self._reader.source.descriptor, self._woken

    def _count(self, gone: Gone, refused: tuple[int, int] | None) -> int:
        """What has gone counts, whatever comes then; the number of bursts. Raises LightPathError."""
        bursts, datagrams, wire_bytes = gone
        self.datagrams += datagrams
        self.wire_bytes += wire_bytes
        # Who is interrupted is not refused: what did not go goes with the next call, or was lost as light loses.
        if refused is not None and refused[0] != errno.EINTR:
            number, size = refused
            raise refused_datagrams(size, OSError(number, os.strerror(number)))
        return bursts

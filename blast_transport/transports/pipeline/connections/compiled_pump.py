"""Compiled transfer from plain sockets into a file without Python's lock: receive, digest, write.

One call handles many frames of data and leaves everything else in the socket for Python. Encrypted links, and slow
stores, use `file_pump.py`, which is the reference.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.blocks.compiled_store import CompiledStore
from blast_transport.transports.pipeline.connections.file_pump import FileIntake
from blast_transport.transports.pipeline.connections.outlets import MAX_AT_ONCE
from blast_transport.transports.pipeline.connections.pump import FrameReader, FrameReadResult


def open_intake(store: BlockStore, position: int, wake: Callable[[], None]) -> FileIntake:
    """Open an intake by the engine of the store, which is in a file."""
    if isinstance(store, CompiledStore):
        return CompiledIntake(store, position, wake)
    return FileIntake(store, position, wake)


class CompiledIntake(FileIntake):
    """`FileIntake` into a compiled store."""

    def __init__(self, store: CompiledStore, position: int, wake: Callable[[], None]) -> None:
        super().__init__(store, position, wake)
        self._compiled = store

    @property
    def frames(self) -> FrameReader | None:
        """Return the reader of whole frames, while the store is fast."""
        return self._take_frames if self._writer.eager else None

    def _take_frames(self, sock: socket.socket, payload: int) -> FrameReadResult:
        self._within(payload)
        place = self.position, self._block, self._filled, self._stored
        taken = self._compiled.take_from(sock.fileno(), self._buffer, place, (payload, MAX_AT_ONCE))
        self.position, self._block, self._filled, self._stored = taken.place
        if taken.slow:
            self._writer.defer()
        return FrameReadResult(taken.amount, taken.payload, taken.broken)

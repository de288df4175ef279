"""Compiled transfer between plain sockets and a file without Python's lock: receive, digest, write; and read, send.

One call handles many frames of data and leaves everything else in the socket for Python. Encrypted links, and slow
stores, use `file_pump.py`, which is the reference.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import ModuleType

from blast_transport.base.engines import compiled, engine_error
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.blocks.compiled_store import CompiledStore
from blast_transport.transports.pipeline.connections.file_pump import FileIntake, FileOutlet, became_shorter
from blast_transport.transports.pipeline.connections.pump import (
    FrameReader,
    FrameReadResult,
    FrameWriter,
    FrameWriteResult,
)

_MAX_AT_ONCE = 4 << 20
"""Bytes per call, a few milliseconds, after which other work gets its turn."""


def open_intake(store: BlockStore, position: int, wake: Callable[[], None]) -> FileIntake:
    """Open an intake by the engine of the store, which is in a file."""
    if isinstance(store, CompiledStore):
        return CompiledIntake(store, position, wake)
    return FileIntake(store, position, wake)


def open_outlet(engine: str, descriptor: int) -> FileOutlet:
    """Open an outlet of a file by this engine. Raise WrongInputError as `check_engine` does."""
    native = compiled(engine)
    return FileOutlet(descriptor) if native is None else CompiledOutlet(native, descriptor)


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
        taken = self._compiled.take_from(sock.fileno(), self._buffer, place, (payload, _MAX_AT_ONCE))
        self.position, self._block, self._filled, self._stored = taken.place
        if taken.slow:
            self._writer.defer()
        return FrameReadResult(taken.amount, taken.payload, taken.broken)


class CompiledOutlet(FileOutlet):
    """`FileOutlet` with compiled writing."""

    def __init__(self, native: ModuleType, descriptor: int) -> None:
        super().__init__(descriptor)
        self._native = native

    @property
    def frames(self) -> FrameWriter | None:
        """Return the writer of whole frames."""
        return self._give_frames

    def _give_frames(self, sock: socket.socket, offset: int, promised: int, stop: int) -> FrameWriteResult:
        run = offset, promised, stop
        try:
            given = self._native.give_to_link(sock.fileno(), self._descriptor, run, _MAX_AT_ONCE)
        except EOFError as error:
            raise became_shorter(int(error.args[0])) from error
        except self._native.EngineFault as error:
            raise engine_error(error) from error
        return FrameWriteResult(*given)

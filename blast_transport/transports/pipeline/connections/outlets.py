"""Sources of a link's data, as the first node of a chain has them: a file, or a stream.

Outlets need no store, so that a sender does not load one.
"""

from __future__ import annotations

import os
import socket
import ssl
from types import ModuleType

from blast_transport.base.engines import compiled, engine_error
from blast_transport.base.errors import SourceChangedError
from blast_transport.store.sources.source import Source
from blast_transport.transports.pipeline.connections.pump import FrameWriter, FrameWriteResult

READ_BYTES = 1 << 18
REPLAY_BYTES = 32 << 20
"""Bytes that are kept: enough to survive a node that dies with the data in its own and its neighbors' kernel buffers.
"""
MAX_AT_ONCE = 4 << 20
"""Bytes per call of the compiled engine, a few milliseconds, after which other work gets its turn."""


def open_outlet(engine: str, descriptor: int) -> FileOutlet:
    """Open an outlet of a file by this engine. Raise WrongInputError as `check_engine` does."""
    native = compiled(engine)
    return FileOutlet(descriptor) if native is None else CompiledOutlet(native, descriptor)


class FileOutlet:
    """Out of a regular file, which may still grow."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer: memoryview | None = None

    @property
    def frames(self) -> FrameWriter | None:
        """Return no writer of whole frames."""
        return None

    def check(self, offset: int) -> None:
        """Do nothing: a file keeps its data."""

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """Send up to `limit` bytes. Raise SourceChangedError if the file became shorter."""
        if isinstance(sock, ssl.SSLSocket):
            return self._copy(sock, offset, limit)
        count = os.sendfile(sock.fileno(), self._descriptor, offset, limit)
        if count == 0:
            raise became_shorter(offset)
        return count

    def _copy(self, sock: ssl.SSLSocket, offset: int, limit: int) -> int:
        if self._buffer is None:
            self._buffer = memoryview(bytearray(READ_BYTES))
        count = os.preadv(self._descriptor, [self._buffer[: min(limit, READ_BYTES)]], offset)
        if count == 0:
            raise became_shorter(offset)
        return sock.send(self._buffer[:count])


def became_shorter(offset: int) -> SourceChangedError:
    """Return the error for a file that ends before its size."""
    return SourceChangedError(f"the file ends at byte {offset}: it became shorter while it was sent")


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
            given = self._native.give_to_link(sock.fileno(), self._descriptor, run, MAX_AT_ONCE)
        except EOFError as error:
            raise became_shorter(int(error.args[0])) from error
        except self._native.EngineFault as error:
            raise engine_error(error) from error
        return FrameWriteResult(*given)


class StreamOutlet:
    """Out of a source that is no file."""

    frames = None

    def __init__(self, source: Source) -> None:
        self._source = source
        self._buffer = memoryview(bytearray(READ_BYTES))

    def check(self, offset: int) -> None:
        """Check that data from this offset on is held."""
        self._source.read(offset, self._buffer[:1])

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """Send up to `limit` bytes, all of which must be available."""
        count = self._source.read(offset, self._buffer[: min(limit, READ_BYTES)])
        return sock.send(self._buffer[:count])

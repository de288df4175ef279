"""Sources of a link's data, as the first node of a chain has them: a file, or a stream.

Outlets need no store, so that a sender does not load one.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

from blast_transport.base.engines import compiled, engine_error
from blast_transport.base.errors import SourceChangedError, sentence
from blast_transport.store.sources.source import Source
from blast_transport.transports.pipeline.connections.pump import FrameWriter, FrameWriteResult

READ_BYTES = 1 << 18
REPLAY_BYTES = 32 << 20
"""Bytes that are kept: enough to survive a node that dies with the data in its own and its neighbors' kernel buffers.
"""
MAX_AT_ONCE = 4 << 20
"""Bytes per call of the compiled engine, a few milliseconds, after which other work gets its turn."""

Digested = Callable[[int, bytes], None]
"""Called with the first of consecutive blocks, and their digests, each only once, in order."""

T = TypeVar("T")


def open_outlet(engine: str, descriptor: int) -> FileOutlet:
    """Open an outlet of a file by this engine. Raise WrongInputError as `check_engine` does."""
    native = compiled(engine)
    return FileOutlet(descriptor) if native is None else CompiledOutlet(native, descriptor)


def open_digesting_outlet(engine: str, descriptor: int, size: int, block_size: int, digested: Digested) -> FileOutlet:
    """Open an outlet of a file that calls `digested`, if this engine digests what it sends, and the link is plain."""
    native = compiled(engine)
    if native is None:
        return FileOutlet(descriptor)
    return DigestingOutlet(native, descriptor, size, block_size, digested)


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
        return FrameWriteResult(*self._by_engine(self._native.give_to_link, sock.fileno(), self._descriptor, run))

    def _by_engine(self, give: Callable[..., T], *arguments: object) -> T:
        try:
            return give(*arguments, MAX_AT_ONCE)
        except EOFError as error:
            raise became_shorter(int(error.args[0])) from error
        except OSError as error:
            raise SourceChangedError(f"the file cannot be read: {sentence(error)}") from error
        except self._native.EngineFault as error:
            raise engine_error(error) from error


class DigestingOutlet(CompiledOutlet):
    """`CompiledOutlet` that reads each block once, digests it, and sends it from memory.

    Without it another thread would read the same data for the digests. It does not digest what goes over TLS.
    """

    def __init__(self, native: ModuleType, descriptor: int, size: int, block_size: int, digested: Digested) -> None:
        super().__init__(native, descriptor)
        self._sent, self._digested = native.SentFile(block_size, size), digested

    def _give_frames(self, sock: socket.socket, offset: int, promised: int, stop: int) -> FrameWriteResult:
        run = offset, promised, stop
        given, first, digests = self._by_engine(self._sent.give_to, sock.fileno(), self._descriptor, run)
        if digests:
            self._digested(first, digests)
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

"""Data between sockets and a file by the kernel alone: splice into it, sendfile out of it.

What has come is sent on from the file's pages, not by `tee` from a second pipe: that costs no more copies (the pages
are lent to the socket as a pipe's are), the store then never waits for the successor nor the other way round, and data
that has to be sent again, or to somebody who lags behind, takes the same way.
"""

from __future__ import annotations

import fcntl
import os
import socket
import ssl
from contextlib import suppress

from blast_transport.errors import RemoteProtocolError, SourceChangedError, StoreError, sentence
from blast_transport.pipeline.copy_pump import READ_BYTES
from blast_transport.store.store import Store

_F_SETPIPE_SZ = 1031
_PIPE_BYTES = 1 << 20
"""More than is taken in one go: a packet needs a page of it, however little it carries."""
_TAKE_BYTES = 1 << 18
"""Written in one go: a slow disk should not keep us silent for long."""


class FileIntake:
    """Into the file that the store is writing, from byte `position` on, which is where a block begins.

    `descriptor` is used as long as the intake is, and is not closed by it.
    """

    def __init__(self, store: Store, descriptor: int, position: int) -> None:
        self.position = position
        self._store = store
        self._descriptor = descriptor
        self._block = position // store.layout.block_size
        self._reader, self._writer = os.pipe()
        with suppress(OSError):  # Not allowed to this user: the usual 64 KiB will do.
            fcntl.fcntl(self._writer, _F_SETPIPE_SZ, _PIPE_BYTES)
        self._buffer: memoryview | None = None

    def take(self, sock: socket.socket, limit: int) -> int:
        """As `Intake.take`."""
        size = self._store.layout.size
        if size is not None:
            limit = min(limit, size - self.position)
            if limit <= 0:
                raise RemoteProtocolError(f"data after byte {size}, which is the last")
        if isinstance(sock, ssl.SSLSocket):
            count = self._copy(sock, limit)
        else:
            count = os.splice(sock.fileno(), self._writer, min(limit, _TAKE_BYTES))
            self._splice(count)
        self.position += count
        self._adopt(self.position // self._store.layout.block_size)
        return count

    def complete(self, stop: int, final: bool) -> None:
        """Nothing comes after byte `stop`; `final`: that is the size. Raises StoreError."""
        if final:
            self._store.finish_size(stop)
            self._adopt(self._store.layout.blocks)

    @property
    def servable(self) -> int:
        """All before this offset can be sent on."""
        return self.position

    @property
    def ready(self) -> bool:
        """There is room for more."""
        return True

    @property
    def drained(self) -> bool:
        """All that came is in the store."""
        return True

    def close(self) -> None:
        """Give back the pipe."""
        os.close(self._reader)
        os.close(self._writer)

    def _splice(self, left: int) -> None:
        offset = self.position
        try:
            while left:
                count = os.splice(self._reader, self._descriptor, left, offset_dst=offset)
                left, offset = left - count, offset + count
        except OSError as error:
            raise StoreError(f"cannot write {self._store.target.place}: {sentence(error)}") from error

    def _copy(self, sock: socket.socket, limit: int) -> int:
        if self._buffer is None:
            self._buffer = memoryview(bytearray(READ_BYTES))
        count = sock.recv_into(self._buffer[: min(limit, READ_BYTES)])
        self._store.target.write(self.position, self._buffer[:count])
        return count

    def _adopt(self, stop: int) -> None:
        if stop > self._block:
            self._store.adopt(self._block, stop - self._block)
            self._block = stop


class FileOutlet:
    """Out of a regular file, which may still grow."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer: memoryview | None = None

    def check(self, offset: int) -> None:
        """A file keeps everything."""

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """As `Outlet.give`. Raises SourceChangedError if the file became shorter."""
        if isinstance(sock, ssl.SSLSocket):
            return self._copy(sock, offset, limit)
        count = os.sendfile(sock.fileno(), self._descriptor, offset, limit)
        if count == 0:
            raise SourceChangedError(f"the file ends at byte {offset}: it became shorter while it was sent")
        return count

    def _copy(self, sock: ssl.SSLSocket, offset: int, limit: int) -> int:
        if self._buffer is None:
            self._buffer = memoryview(bytearray(READ_BYTES))
        count = os.preadv(self._descriptor, [self._buffer[: min(limit, READ_BYTES)]], offset)
        if count == 0:
            raise SourceChangedError(f"the file ends at byte {offset}: it became shorter while it was sent")
        return sock.send(self._buffer[:count])

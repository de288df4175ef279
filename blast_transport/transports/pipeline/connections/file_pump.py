"""Data between sockets and a file: through memory that is still warm when it is digested, and out by sendfile.

Only whole blocks go into the file, by way of the store, which knows those that it must not write: another transport may
have brought and proven them before.

Taking it by `splice` copies no less, because a block has to be read again for its digest, and to map it for that costs
more than the copy does. What goes on to the successor is lent to its socket from the file's pages, as `tee` would lend
it from a pipe's: so the store does not wait for the successor, and what has to be sent again, or to somebody who lags
behind, takes the same way.

A store that is slow holds up only itself: from then on a thread writes, and what waits for it goes on to the successor
from memory.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from functools import partial

from blast_transport.base.errors import RemoteProtocolError, SourceChangedError
from blast_transport.store.block_store import BlockStore
from blast_transport.store.eager_writer import EagerWriter
from blast_transport.store.store_pace import StorePace
from blast_transport.store.target import Buffer
from blast_transport.transports.pipeline.connections.copy_pump import READ_BYTES
from blast_transport.transports.pipeline.connections.pump import GivesFrames, Outlet, TakesFrames

_BLOCKS = 16
"""Taken in one go at most: about what a processor's cache holds, and a slow disk should not keep us silent for long."""
_MAX_WAITING = 32 << 20


class FileIntake:
    """Into the file that the store is writing, from byte `position` on, which is where a block begins.

    `wake` is called when something that waited is written.
    """

    def __init__(self, store: BlockStore, position: int, wake: Callable[[], None]) -> None:
        self.position = position
        self._store = store
        self._writer = EagerWriter[Buffer](partial(_put_row, store), wake, _MAX_WAITING, bytes)
        self._size = store.layout.block_size
        self._block = position // self._size
        self._buffer = memoryview(bytearray(_BLOCKS * self._size))
        self._filled = self._stored = 0

    @property
    def frames(self) -> TakesFrames | None:
        """As `Intake.frames`."""
        return None

    def take(self, sock: socket.socket, limit: int) -> int:
        """As `Intake.take`."""
        limit = self._within(limit)
        count = sock.recv_into(self._buffer[self._filled : self._filled + limit])
        self.position += count
        self._filled += count
        if self._filled == len(self._buffer):
            self.settle()
        return count

    def settle(self) -> None:
        """Store the blocks that came, for one write is cheaper than many. Raises StoreError."""
        whole = self.position == self._store.layout.size
        self._put(self._filled if whole else self._filled - self._filled % self._size)

    def skip(self, position: int) -> None:
        """As `Intake.skip`. Raises StoreError."""
        self.settle()
        self.position = position
        self._block, self._filled, self._stored = -(-position // self._size), 0, 0

    def complete(self, final: bool) -> None:
        """Nothing more comes; `final`: the last block may be a short one. Raises StoreError."""
        if final:
            self._put(self._filled)

    @property
    def servable(self) -> int:
        """All before this offset can be sent on."""
        return self.position - (self._filled - self._stored)

    @property
    def ready(self) -> bool:
        """There is room for more. Raises StoreError."""
        return self._writer.ready

    @property
    def drained(self) -> bool:
        """All blocks that came are in the store. Raises StoreError."""
        return self._writer.drained

    @property
    def pace(self) -> StorePace:
        """As `Intake.pace`."""
        return self._writer.pace

    @property
    def writing(self) -> float:
        """As `Intake.writing`."""
        return self._writer.writing

    def unwritten(self) -> list[tuple[int, Buffer]]:
        """What can be sent on and is not in the file yet, as (where it begins, bytes), in order. Raises StoreError."""
        return [(self._store.layout.offset(block), row) for block, row in self._writer.waiting()]

    def close(self) -> None:
        """End the thread, if there is one; what it has not written is dropped."""
        self._writer.close()

    def _within(self, limit: int) -> int:
        """So many of the bytes that are to come belong to the whole. Raises RemoteProtocolError if none do."""
        size = self._store.layout.size
        if size is None:
            return limit
        if self.position >= size:
            raise RemoteProtocolError(f"data after byte {size}, which is the last")
        return min(limit, size - self.position)

    def _put(self, stop: int) -> None:
        """The first `stop` bytes of the buffer are whole blocks."""
        if stop > self._stored:
            self._writer.put(self._block, self._buffer[self._stored : stop])
            self._block += (stop - self._stored) // self._size
            self._stored = stop
        if stop == len(self._buffer):
            self._filled = self._stored = 0


class FileOutlet:
    """Out of a regular file, which may still grow."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer: memoryview | None = None

    @property
    def frames(self) -> GivesFrames | None:
        """As `Outlet.frames`."""
        return None

    def check(self, offset: int) -> None:
        """A file keeps everything."""

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """As `Outlet.give`. Raises SourceChangedError if the file became shorter."""
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
    """What to tell of a file that ends where there was more of it."""
    return SourceChangedError(f"the file ends at byte {offset}: it became shorter while it was sent")


def _put_row(store: BlockStore, block: int, row: Buffer) -> None:
    store.put_row(block, memoryview(row))


class WrittenOutlet:
    """Out of the file that an intake fills, and out of memory what its store has not taken yet."""

    def __init__(self, file: Outlet, intake: FileIntake) -> None:
        self._file, self._intake = file, intake

    @property
    def frames(self) -> GivesFrames | None:
        """As `Outlet.frames`: when all is in the file."""
        return None if self._intake.unwritten() else self._file.frames

    def check(self, offset: int) -> None:
        """Everything is in one of the two."""

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """As `Outlet.give`. Raises SourceChangedError if the file became shorter."""
        rows = self._intake.unwritten()
        for begin, row in reversed(rows):
            if begin <= offset < begin + len(row):
                # An encrypted link may have to be given the same again, and not less of it.
                return sock.send(memoryview(row)[offset - begin :][: min(limit, READ_BYTES)])
        written = rows[0][0] if rows else self._intake.servable
        return self._file.give(sock, offset, min(limit, written - offset))

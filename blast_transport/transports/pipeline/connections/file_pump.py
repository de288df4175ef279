"""Transfer between sockets and a file: received data is digested while it is in the cache, and sent by sendfile.

Only whole blocks are written, by the store, which knows the blocks that must not be written, because another transport
has delivered and verified them.

Receiving by `splice` would not save a copy, because a block has to be read again for its digest, and mapping it costs
more than the copy. Data for the successor is passed to its socket from the file's pages, as `tee` would pass it from a
pipe's: so the store does not wait for the successor, and retransmissions, and data for lagging nodes, take the same
path.

A slow store delays only itself: a thread then writes, and queued data goes to the successor from memory.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.blocks.eager_writer import EagerWriter
from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.store.targets.target import Buffer
from blast_transport.transports.pipeline.connections.outlets import READ_BYTES
from blast_transport.transports.pipeline.connections.pump import FrameReader, FrameWriter, Outlet

_BLOCKS = 16
"""Maximum bytes of one write: about the size of a processor's cache, and a slow disk must not delay heartbeats."""
_MAX_WAITING = 32 << 20
"""Memory for a disk that is slower than the network."""


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
    def frames(self) -> FrameReader | None:
        """Return no reader of whole frames."""
        return None

    def take(self, sock: socket.socket, limit: int) -> int:
        """Read up to `limit` bytes from the socket."""
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
        """Continue at this offset. Raise StoreError."""
        self.settle()
        self.position = position
        self._block, self._filled, self._stored = -(-position // self._size), 0, 0

    def complete(self, final: bool) -> None:
        """End the data; `final`: the last block may be short. Raise StoreError."""
        if final:
            self._put(self._filled)

    @property
    def servable(self) -> int:
        """Return the offset before which all data can be forwarded."""
        return self.position - (self._filled - self._stored)

    @property
    def ready(self) -> bool:
        """Return whether there is room for more. Raise StoreError."""
        return self._writer.ready

    @property
    def drained(self) -> bool:
        """Return whether all received blocks are in the store. Raise StoreError."""
        return self._writer.drained

    @property
    def pace(self) -> StorePace:
        """Return the pace of the store."""
        return self._writer.pace

    @property
    def writing(self) -> float:
        """Return the seconds for which the store has accepted nothing."""
        return self._writer.writing

    def unwritten(self) -> list[tuple[int, Buffer]]:
        """Return the data that can be forwarded and is not in the file yet, as (offset, bytes), in order.

        Raises StoreError.
        """
        return [(self._store.layout.offset(block), row) for block, row in self._writer.waiting()]

    def close(self) -> None:
        """End the thread, if any, and drop its queue."""
        self._writer.close()

    def _within(self, limit: int) -> int:
        """Return how many of the next bytes belong to the data. Raise RemoteProtocolError if none do."""
        size = self._store.layout.size
        if size is None:
            return limit
        if self.position >= size:
            raise RemoteProtocolError(f"data after byte {size}, which is the last")
        return min(limit, size - self.position)

    def _put(self, stop: int) -> None:
        """Store the first `stop` bytes of the buffer, which are whole blocks."""
        if stop > self._stored:
            self._writer.put(self._block, self._buffer[self._stored : stop])
            self._block += (stop - self._stored) // self._size
            self._stored = stop
        if stop == len(self._buffer):
            self._filled = self._stored = 0


def _put_row(store: BlockStore, block: int, row: Buffer) -> None:
    store.put_row(block, memoryview(row))


class WrittenOutlet:
    """Out of the file that an intake fills, and out of memory what its store has not taken yet."""

    def __init__(self, file: Outlet, intake: FileIntake) -> None:
        self._file, self._intake = file, intake

    @property
    def frames(self) -> FrameWriter | None:
        """Return the writer of whole frames, if all data is in the file."""
        return None if self._intake.unwritten() else self._file.frames

    def check(self, offset: int) -> None:
        """Do nothing: all data is in the file or in the queue."""

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """Send up to `limit` bytes. Raise SourceChangedError if the file became shorter."""
        rows = self._intake.unwritten()
        for begin, row in reversed(rows):
            if begin <= offset < begin + len(row):
                # An encrypted link may have to be given the same again, and not less of it.
                return sock.send(memoryview(row)[offset - begin :][: min(limit, READ_BYTES)])
        written = rows[0][0] if rows else self._intake.servable
        return self._file.give(sock, offset, min(limit, written - offset))

"""Data between sockets and what is no file: a command's pipe, memory, a stream. Through user space, block by block.

The last blocks are kept, so that a slow command of our own does not hold up what goes on to the next node, and what
gets lost with a node can be sent again.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable

from blast_transport.base.errors import ForgottenError
from blast_transport.store.block_store import BlockStore
from blast_transport.store.source import Source
from blast_transport.store.store_writer import StoreWriter

READ_BYTES = 1 << 18
REPLAY_BYTES = 32 << 20
"""What is kept: enough that a node which dies with all that its own and its neighbors' kernels buffer is survived."""
_MAX_WAITING = 8 << 20
_MAX_EARLY = 64 << 20


class Replay:
    """The last `capacity` bytes, in pieces of one size but for the last."""

    def __init__(self, position: int, piece_size: int, capacity: int = REPLAY_BYTES) -> None:
        self.lowest = self.end = position
        self._pieces: deque[bytes] = deque()
        self._piece_size = piece_size
        self._capacity = capacity

    def append(self, piece: bytes) -> None:
        """Keep the next piece, and drop old ones."""
        self._pieces.append(piece)
        self.end += len(piece)
        while self.end - self.lowest > self._capacity and len(self._pieces) > 1:
            self.lowest += len(self._pieces.popleft())

    def skip(self, position: int) -> None:
        """Nothing before this offset is kept."""
        self.lowest = self.end = position
        self._pieces.clear()

    def piece(self, offset: int) -> memoryview | None:
        """The rest of the piece that has this byte, None if it is not kept."""
        if not self.lowest <= offset < self.end:
            return None
        number, begin = divmod(offset - self.lowest, self._piece_size)
        return memoryview(self._pieces[number])[begin:]


class BlockIntake:
    """Into the store, block by block, from byte `position` on, which is where a block begins; `buffer` bytes are kept.

    A thread of its own puts the blocks, because a command takes them when it likes; `wake` is called when it has done
    so. `position` counts all that has come, `servable` the whole blocks of it, which can go on to the next node.
    """

    frames = None

    def __init__(self, store: BlockStore, position: int, wake: Callable[[], None], buffer: int = 0) -> None:
        self.position = position
        size = store.layout.block_size
        self.replay = Replay(position, size, buffer) if buffer else Replay(position, size)
        self._store = store
        self._block = position // store.layout.block_size
        self._buffer = bytearray(store.layout.block_size)
        self._filled = 0
        self._wake = wake
        self._writer: StoreWriter[bytes] | None = None

    @property
    def servable(self) -> int:
        """All before this offset can be sent on."""
        return self.replay.end

    @property
    def ready(self) -> bool:
        """There is room for more. Raises StoreError if the store took no more."""
        early = self.replay.end - self._store.layout.offset(self._store.position)
        room = self._writer is None or self._writer.ready
        return room and (not self._store.target.in_order or early < _MAX_EARLY)

    def take(self, sock: socket.socket, limit: int) -> int:
        """As `Intake.take`."""
        layout = self._store.layout
        room = layout.length(self._block) - self._filled
        with memoryview(self._buffer) as view:
            count = sock.recv_into(view[self._filled : self._filled + min(room, limit)])
        self._filled += count
        self.position += count
        if count == room:
            self._put()
        return count

    def settle(self) -> None:
        """A part of a block waits for the rest."""

    def skip(self, position: int) -> None:
        """As `Intake.skip`."""
        self.position = position
        self._block, self._filled = -(-position // self._store.layout.block_size), 0
        self.replay.skip(position)

    def complete(self, final: bool) -> None:
        """Nothing more comes; `final`: the last block may be a short one."""
        if final and self._filled:
            self._put()

    @property
    def drained(self) -> bool:
        """All that came is in the store. Raises StoreError."""
        return self._writer is None or self._writer.drained

    @property
    def pace(self) -> None:
        """A command takes what it likes when it likes, and is waited for."""
        return None

    @property
    def writing(self) -> float:
        """A command may stop for as long as it likes."""
        return 0.0

    def close(self) -> None:
        """End the thread; what it has not put is dropped."""
        if self._writer is not None:
            self._writer.close()

    def _put(self) -> None:
        piece = bytes(memoryview(self._buffer)[: self._filled])
        self.replay.append(piece)
        if self._writer is None:
            self._writer = StoreWriter(self._store.put, self._wake, _MAX_WAITING)
        self._writer.put(self._block, piece)
        self._block, self._filled = self._block + 1, 0


class ReplayOutlet:
    """Out of what an intake has kept, or the store keeps: unless that feeds somebody in order, and may be waiting."""

    frames = None

    def __init__(self, replay: Replay, store: BlockStore) -> None:
        self._replay = replay
        self._store = store
        self._buffer = memoryview(bytearray(READ_BYTES))

    def check(self, offset: int) -> None:
        """As `Outlet.check`."""
        if self._replay.piece(offset) is None:
            self._read(offset, 1)

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """As `Outlet.give`."""
        piece = self._replay.piece(offset)
        return sock.send(self._read(offset, limit) if piece is None else piece[:limit])

    def _read(self, offset: int, limit: int) -> memoryview:
        count = 0
        if not self._store.target.in_order:
            count = self._store.read(offset, self._buffer[: min(limit, READ_BYTES)])
        if count == 0:
            raise ForgottenError(self._replay.lowest)
        return self._buffer[:count]


class StreamOutlet:
    """Out of a source that is no file."""

    frames = None

    def __init__(self, source: Source) -> None:
        self._source = source
        self._buffer = memoryview(bytearray(READ_BYTES))

    def check(self, offset: int) -> None:
        """As `Outlet.check`."""
        self._source.read(offset, self._buffer[:1])

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """As `Outlet.give`; all `limit` bytes have to be there."""
        count = self._source.read(offset, self._buffer[: min(limit, READ_BYTES)])
        return sock.send(self._buffer[:count])

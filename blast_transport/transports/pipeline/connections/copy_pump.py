"""Transfer between sockets and targets other than files: a command's pipe, memory, a stream.

Data goes through user space, block by block. The last blocks are kept, so that a slow command does not delay the next
node, and data that is lost with a node can be sent again.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable

from blast_transport.base.errors import ForgottenError
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.blocks.store_writer import StoreWriter
from blast_transport.transports.pipeline.connections.outlets import READ_BYTES, REPLAY_BYTES

_MAX_WAITING = 8 << 20
"""Memory for a store that is slower than the network."""
_MAX_EARLY = 64 << 20
"""Memory for data that arrives before earlier data, at a target that takes it in order."""


class Replay:
    """The last `capacity` bytes, in pieces of one size but for the last."""

    def __init__(self, position: int, piece_size: int, capacity: int = REPLAY_BYTES) -> None:
        self.first_held = self.end = position
        self._pieces: deque[bytes] = deque()
        self._piece_size = piece_size
        self._capacity = capacity

    def append(self, piece: bytes) -> None:
        """Keep the next piece, and drop old ones."""
        self._pieces.append(piece)
        self.end += len(piece)
        while self.end - self.first_held > self._capacity and len(self._pieces) > 1:
            self.first_held += len(self._pieces.popleft())

    def skip(self, position: int) -> None:
        """Drop everything before this offset."""
        self.first_held = self.end = position
        self._pieces.clear()

    def piece(self, offset: int) -> memoryview | None:
        """Return the rest of the piece with this byte, None if it is not kept."""
        if not self.first_held <= offset < self.end:
            return None
        number, begin = divmod(offset - self.first_held, self._piece_size)
        return memoryview(self._pieces[number])[begin:]


class BlockIntake:
    """Intake into the store, block by block, from byte `position` on, where a block begins; `buffer` bytes are kept.

    A thread stores the blocks, because a command accepts them at its own pace, and calls `wake` afterwards. `position`
    counts all received bytes, `servable` the complete blocks of them, which can be forwarded.
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
        """Return the offset before which all data can be forwarded."""
        return self.replay.end

    @property
    def ready(self) -> bool:
        """Return whether there is room for more. Raise StoreError if the store failed."""
        early = self.replay.end - self._store.layout.offset(self._store.position)
        room = self._writer is None or self._writer.ready
        return room and (not self._store.target.in_order or early < _MAX_EARLY)

    def take(self, sock: socket.socket, limit: int) -> int:
        """Read up to `limit` bytes from the socket."""
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
        """Do nothing: a part of a block waits for the rest."""

    def skip(self, position: int) -> None:
        """Continue at this offset."""
        self.position = position
        self._block, self._filled = -(-position // self._store.layout.block_size), 0
        self.replay.skip(position)

    def complete(self, final: bool) -> None:
        """End the data; `final`: the last block may be short."""
        if final and self._filled:
            self._put()

    @property
    def drained(self) -> bool:
        """Return whether all received data is in the store. Raise StoreError."""
        return self._writer is None or self._writer.drained

    @property
    def pace(self) -> None:
        """Return None for a command, whose pace does not matter."""
        return None

    @property
    def writing(self) -> float:
        """Return 0 for a command, which may pause for any time."""
        return 0.0

    def close(self) -> None:
        """End the thread and drop its queue."""
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
    """Outlet of the data that an intake has kept, or that the store can return; a target in order may be waiting."""

    frames = None

    def __init__(self, replay: Replay, store: BlockStore) -> None:
        self._replay = replay
        self._store = store
        self._buffer = memoryview(bytearray(READ_BYTES))

    def check(self, offset: int) -> None:
        """Check that data from this offset on is held."""
        if self._replay.piece(offset) is None:
            self._read(offset, 1)

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """Send up to `limit` bytes."""
        piece = self._replay.piece(offset)
        return sock.send(self._read(offset, limit) if piece is None else piece[:limit])

    def _read(self, offset: int, limit: int) -> memoryview:
        count = 0
        if not self._store.target.in_order:
            count = self._store.read(offset, self._buffer[: min(limit, READ_BYTES)])
        if count == 0:
            raise ForgottenError(self._replay.first_held)
        return self._buffer[:count]

"""What a receiver holds of a session: the target, the map of its blocks, and the digests that prove them.

All carriers fill the same store, several of them at the same time, so every method may be called from any thread. A
block whose digest is not the sender's is not held: it is asked for again. A target that must be fed in order gets a
block only when all before it are there and the sender's digest of it has come, for it cannot be taken back.
"""

from __future__ import annotations

import threading
from collections import deque

from blast_transport.blocks.block_map import BlockMap, Range
from blast_transport.blocks.digests import DIGEST_BYTES, DigestTable, Suite
from blast_transport.blocks.layout import Layout
from blast_transport.errors import DigestMismatchError, StoreError
from blast_transport.store.file_target import FileTarget
from blast_transport.store.target import Buffer, Target

_ADOPT_BYTES = 1 << 20


class Store:
    """One session's data at one receiver.

    Attributes to read: `layout`, `held` (BlockMap), `position` (first block not held), `corrupt` (blocks that came
    with a wrong digest). `take_wrong` gives the blocks that have to be asked for again because of that.
    """

    def __init__(self, layout: Layout, suite: Suite, target: Target) -> None:
        self.layout = layout
        self.target = target
        self.held = BlockMap()
        self.position = 0
        self.corrupt = 0
        self._suite = suite
        self._own = DigestTable()
        self._sent = DigestTable()
        self._wrong: deque[Range] = deque()
        self._early: dict[int, bytes] = {}
        self._lock = threading.RLock()
        if isinstance(target, FileTarget):
            self._resume(target)

    @property
    def descriptor(self) -> int | None:
        """The regular file that is being written, if there is one."""
        return self.target.descriptor

    def put(self, block: int, data: Buffer) -> bool:
        """Take a whole block; False if it was held, or is not what was sent. Raises StoreError."""
        digest = self._suite.block(data)
        with self._lock:
            if block in self.held:
                return False
            if block in self._sent and self._sent[block] != digest:
                self._refuse(block)
                return False
            self._own.set(block, digest)
            if self.target.in_order:
                self._early[block] = bytes(data)
                self._feed()
                return True
            self.target.write(self.layout.offset(block), data)
            self._hold(block, digest)
            return True

    def adopt(self, first: int, count: int) -> None:
        """Blocks that somebody wrote to `descriptor` already. Raises StoreError."""
        view = memoryview(bytearray(self.layout.block_size))
        for block in range(first, first + count):
            piece = view[: self.layout.length(block)]
            if self.target.read(self.layout.offset(block), piece) < len(piece):
                raise StoreError(f"block {block} was not written to {self.target.place}")
            digest = self._suite.block(piece)
            with self._lock:
                if block in self.held:
                    continue
                if block in self._sent and self._sent[block] != digest:
                    self._refuse(block)
                    continue
                self._own.set(block, digest)
                self._hold(block, digest)

    def expect(self, first: int, digests: bytes) -> None:
        """The sender's digests of the blocks from `first` on. Raises StoreError."""
        with self._lock:
            self._sent.set_all(first, digests)
            for block in range(first, first + len(digests) // DIGEST_BYTES):
                if block in self._own and self._own[block] != self._sent[block]:
                    self._early.pop(block, None)
                    self.held.discard(block)
                    self.position = min(self.position, block)
                    self._refuse(block)
            if self.target.in_order:
                self._feed()

    def has(self, block: int) -> bool:
        """The block is held, or waits for its turn."""
        return block in self.held or block in self._early

    def read(self, offset: int, view: memoryview) -> int:
        """Fill `view` from `offset`, as far as it is held. Raises ForgottenError, StoreError."""
        with self._lock:
            end = self.layout.offset(self.position)
            if self.layout.size is not None:
                end = min(end, self.layout.size)
        if offset >= end:
            return 0
        return self.target.read(offset, view[: end - offset])

    def finish_size(self, size: int) -> None:
        """A stream turned out to have `size` bytes."""
        with self._lock:
            self.layout = self.layout.closed(size)

    def take_wrong(self) -> list[Range]:
        """Blocks that came with a wrong digest since the last call."""
        with self._lock:
            wrong, self._wrong = list(self._wrong), deque()
            return wrong

    @property
    def complete(self) -> bool:
        """Every block is held and is what was sent."""
        with self._lock:
            blocks = self.layout.blocks
            return self.layout.known and self.held.held == blocks and self._sent.complete(blocks)

    def commit(self, digest: bytes, *, fsync: bool = False) -> None:
        """Make the whole good. Raises DigestMismatchError, StoreError."""
        assert self.layout.size is not None
        if self._sent.whole(self._suite, self.layout.blocks) != digest:
            raise DigestMismatchError("all bytes arrived, but their digest is not the sender's; send the file again")
        self.target.commit(self.layout.size, fsync=fsync)

    def discard(self, *, resumable: bool = False) -> None:
        """Leave nothing behind, but what a later session may go on from. No effect after `commit`."""
        with self._lock:
            self.target.discard(resumable=resumable)

    def _resume(self, target: FileTarget) -> None:
        for block, digest in target.blocks_on_disk(self.layout, self._suite):
            self._own.set(block, digest)
            self.held.add(block)
        self.position = self.held.first_missing()

    def _hold(self, block: int, digest: bytes) -> None:
        self.held.add(block)
        if block == self.position:
            self.position = self.held.first_missing(block)
        if isinstance(self.target, FileTarget):
            self.target.note(block, digest)

    def _feed(self) -> None:
        while (data := self._early.get(self.position)) is not None and self.position in self._sent:
            self.target.write(self.layout.offset(self.position), data)
            del self._early[self.position]
            self._hold(self.position, b"")

    def _refuse(self, block: int) -> None:
        self.corrupt += 1
        self._wrong.append((block, 1))

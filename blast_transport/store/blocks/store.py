"""Store of a session's received data: the target, the map of its blocks, and the digests that verify them.

All transports fill the same store, possibly concurrently, so every method may be called from any thread, and no other
code writes to the target, except for blocks that it has claimed. A held block is never written again; a block is
written whole, with the digest of the written bytes. A block whose digest differs from the sender's is not held, and is
requested again. A target that accepts data only in order gets a block after all blocks before it and after the sender's
digest, because the data cannot be taken out of it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import count

from blast_transport.base.engines import PYTHON
from blast_transport.base.errors import DigestMismatchError, ForgottenError, RemoteProtocolError, StoreError
from blast_transport.blocks.block_map import BlockMap, Range, runs_of
from blast_transport.blocks.digests import DIGEST_BYTES, DigestTable, Suite
from blast_transport.blocks.layout import BlockLayout
from blast_transport.store.blocks.zero_digests import ZeroDigests
from blast_transport.store.targets.file_target import FileTarget
from blast_transport.store.targets.target import Buffer, Target

AHEAD_BYTES = 64 << 20
"""Bytes before its position or its digest at which a block is accepted where it occupies memory or may lie anywhere."""


class SessionStore:
    """Data of one session at one receiver.

    Attributes to read: `layout`, `suite`, `held` (BlockMap), `position` (first block not held), `corrupt` (blocks
    received with a wrong digest), `durable` (the target's result after `commit`). `take_wrong` returns the blocks to
    request again because of a wrong digest. `checked` is called for every block that an earlier session has left. The
    blocks in `holes` are zeros according to the sender: a file holds them as holes from the start, and any other target
    waits for them.
    """

    engine = PYTHON

    def __init__(
        self,
        layout: BlockLayout,
        suite: Suite,
        target: Target,
        checked: Callable[[], None] = lambda: None,
        holes: Iterable[Range] = (),
    ) -> None:
        self.layout = layout
        self.target = target
        self.held = BlockMap()
        self.position = 0
        self.corrupt = 0
        self.durable: bool | None = None
        self.suite = suite
        self._own = DigestTable()
        self._sent = DigestTable()
        self._announced = 0
        self._ahead = max(1, AHEAD_BYTES // layout.block_size)
        self._wrong: deque[Range] = deque()
        self._early: dict[int, bytes] = {}
        self._claimed = BlockMap()
        self._lock = threading.RLock()
        if isinstance(target, FileTarget):
            self._resume(target, checked)
            self._make_holes(target, checked, holes)

    @property
    def descriptor(self) -> int | None:
        """Return the descriptor of the regular file that is being written, if any."""
        return self.target.descriptor

    @property
    def reach(self) -> int:
        """Return the block from which on blocks are not accepted yet."""
        blocks = self.layout.blocks
        if self.target.in_order:
            return min(blocks, self.position + self._ahead)
        return blocks if self.layout.known else min(blocks, max(self.position, self._announced) + self._ahead)

    def put(self, block: int, data: Buffer) -> bool:
        """Take a whole block; return false if it was held, comes too early, or is wrong. Raises StoreError."""
        return self.put_all(block, [data]) == 1

    def put_all(self, first: int, row: Sequence[Buffer]) -> int:
        """Take whole blocks from `first` on, as `put` takes one; return how many. Raises StoreError."""
        digests = [self.suite.block(data) for data in row]
        with self._lock:
            if self.target.in_order:
                return sum(map(self._keep, count(first), row, digests))
            good = self._good(first, digests, min(first + len(row), self.reach))
            for begin, end in runs_of(good):
                self._write(begin, row[begin - first : end - first])
                self._hold(begin, digests[begin - first : end - first])
            return len(good)

    def put_row(self, first: int, data: memoryview) -> None:
        """Store whole blocks from `first` on, one after the other in `data`, from a chain. Raise StoreError.

        Only for a target that accepts them in any order. Wrong blocks are written as well, where none is held:
        successors in the chain are served from the target, and verify the data themselves.
        """
        size = self.layout.block_size
        digests = [self.suite.block(data[begin : begin + size]) for begin in range(0, len(data), size)]
        with self._lock:
            stop = min(first + len(digests), self.layout.blocks)
            for block, end in runs_of(self._free(first, stop)):
                self.target.write(self.layout.offset(block), data[(block - first) * size : (end - first) * size])
            for begin, end in runs_of(self._good(first, digests, stop)):
                self._hold(begin, digests[begin - first : end - first])

    def claim(self, first: int, stop: int) -> list[Range]:
        """Return the blocks from `first` to before `stop` that the caller may now write to `descriptor`, as ranges.

        None of them is held, and no other code writes them until `written` or `release`, one of which must follow in
        any case. Raise StoreError beyond the maximum size, or if the target is not a file.
        """
        if not isinstance(self.target, FileTarget):
            raise StoreError(f"{self.target.place} is not a file, so that other code cannot write it")
        with self._lock:
            free = list(runs_of(self._free(first, min(stop, self.reach))))
            for _, end in free[-1:]:
                self.target.check_end(self.layout.offset(end - 1) + self.layout.length(end - 1))
            for begin, end in free:
                self._claimed.add_range(begin, end - begin)
            return [(begin, end - begin) for begin, end in free]

    def written(self, first: int, digests: bytes) -> None:
        """Record that claimed blocks are written, with these digests of the written data. Raise StoreError."""
        row = [digests[begin : begin + DIGEST_BYTES] for begin in range(0, len(digests), DIGEST_BYTES)]
        stop = first + len(row)
        with self._lock:
            self._unclaim(first, stop)
            for begin, end in runs_of(self._good(first, row, min(stop, self.layout.blocks))):
                self._hold(begin, row[begin - first : end - first])

    def release(self, first: int, stop: int) -> None:
        """Return claimed blocks that will not be written."""
        with self._lock:
            self._unclaim(first, stop)

    def expect(self, first: int, digests: bytes) -> None:
        """Add the sender's digests of the blocks from `first` on, in order. Raise StoreError, RemoteProtocolError."""
        stop = first + len(digests) // DIGEST_BYTES
        with self._lock:
            if first > self._announced or stop > self.layout.blocks:
                raise RemoteProtocolError("Digests are out of order, or beyond the last block")
            self._announced = max(self._announced, stop)
            self._sent.set_all(first, digests)
            self._refuse_wrong(first, stop)
            if self.target.in_order:
                self._feed()

    def has(self, block: int) -> bool:
        """Return whether the block is held, or waits to be written in order."""
        return block in self.held or block in self._early

    def waiting(self) -> list[int]:
        """Return the blocks that wait to be written in order."""
        with self._lock:
            return list(self._early)

    def read(self, offset: int, view: memoryview) -> int:
        """Fill `view` from `offset`, as far as it is held. Raises ForgottenError, StoreError."""
        with self._lock:
            end = self.layout.offset(self.position)
            if self.layout.size is not None:
                end = min(end, self.layout.size)
        if offset >= end:
            return 0
        return self.target.read(offset, view[: end - offset])

    def block(self, number: int) -> bytearray | None:
        """Read a held block from the target; return None if it is not held, or not kept. Raise StoreError."""
        with self._lock:
            if number not in self.held or self.target.in_order:
                return None
            data = bytearray(self.layout.length(number))
            try:
                count = self.target.read(self.layout.offset(number), memoryview(data))
            except ForgottenError:
                return None
        return data if count == len(data) else None

    def finish_size(self, size: int) -> None:
        """Set the size of a stream to `size` bytes, and drop blocks behind it."""
        with self._lock:
            self.layout = self.layout.closed(size)
            blocks = self.layout.blocks
            for first, count in list(self.held.ranges()):
                for block in range(max(first, blocks), first + count):
                    self.held.discard(block)
            for block in [block for block in self._early if block >= blocks]:
                del self._early[block]
            self.position = self.held.first_missing()

    def refuse(self, block: int) -> None:
        """Mark this block as received with wrong data; it has to be requested again."""
        with self._lock:
            self._refuse(block)

    def take_wrong(self) -> list[Range]:
        """Return the blocks received with a wrong digest since the last call."""
        if not self._wrong:
            return []
        with self._lock:
            wrong, self._wrong = list(self._wrong), deque()
            return wrong

    @property
    def complete(self) -> bool:
        """Return whether every block is held and verified."""
        with self._lock:
            blocks = self.layout.blocks
            return self.layout.known and self.position >= blocks and self._sent.complete(blocks)

    def commit(self, digest: bytes, *, fsync: bool = False) -> None:
        """Make the whole good. Raises DigestMismatchError, StoreError."""
        assert self.layout.size is not None
        if self._sent.whole(self.suite, self.layout.blocks) != digest:
            raise DigestMismatchError("all bytes arrived, but their digest is not the sender's; send the file again")
        self.durable = self.target.commit(self.layout.size, fsync=fsync)

    def discard(self, *, resumable: bool = False) -> None:
        """Remove everything except the remains that a later session can resume. No effect after `commit`."""
        with self._lock:
            self.target.discard(resumable=resumable)

    def _resume(self, target: FileTarget, checked: Callable[[], None]) -> None:
        for block, digest in target.blocks_on_disk(self.layout, self.suite):
            checked()
            self._own.set(block, digest)
            self.held.add(block)
        self.position = self.held.first_missing()

    def _make_holes(self, target: FileTarget, checked: Callable[[], None], holes: Iterable[Range]) -> None:
        zeros = ZeroDigests(self.layout, self.suite)
        for first, number in target.make_holes(self.layout, holes):
            checked()
            self._own.set_all(first, zeros.of(first, number))
            self.held.add_range(first, number)
        self.position = self.held.first_missing()

    def _is_wrong(self, block: int, digest: bytes) -> bool:
        """Return whether the block is known to be wrong by its digest; if so, it is requested again."""
        if block not in self._sent or self._sent[block] == digest:
            return False
        self._refuse(block)
        return True

    def _good(self, first: int, digests: Sequence[bytes], stop: int) -> list[int]:
        """Return the blocks from `first` to before `stop` that are not held and match the known digests.

        The wrong ones are asked for again.
        """
        return [block for block in self._free(first, stop) if not self._is_wrong(block, digests[block - first])]

    def _free(self, first: int, stop: int) -> list[int]:
        """Return the blocks from `first` to before `stop` that are neither held nor claimed."""
        missing = (block for begin, number in self.held.missing(first, stop) for block in range(begin, begin + number))
        return [block for block in missing if block not in self._claimed] if self._claimed.held else list(missing)

    def _unclaim(self, first: int, stop: int) -> None:
        for block in range(first, stop):
            self._claimed.discard(block)

    def _write(self, first: int, row: Sequence[Buffer]) -> None:
        """Write consecutive blocks: together, unless one of them is short, as only the last can be."""
        if all(len(block) == self.layout.block_size for block in row[:-1]):
            self.target.write(self.layout.offset(first), *row)
        else:
            # The last block of a stream is unknown: a forged one may seem to be it.
            for block, data in enumerate(row, first):
                self.target.write(self.layout.offset(block), data)

    def _keep(self, block: int, data: Buffer, digest: bytes) -> bool:
        """Take a block until its turn comes, if it is wanted."""
        if block in self.held or block >= self.reach or self._is_wrong(block, digest):
            return False
        self._own.set(block, digest)
        self._early[block] = bytes(data)
        self._feed()
        return True

    def _hold(self, first: int, digests: Sequence[bytes]) -> None:
        self._own.set_all(first, b"".join(digests))
        self.held.add_range(first, len(digests))
        if first == self.position:
            self.position = self.held.first_missing(first)
        if isinstance(self.target, FileTarget):
            self.target.note(first, digests)

    def _feed(self) -> None:
        while (data := self._early.get(self.position)) is not None and self.position in self._sent:
            self.target.write(self.layout.offset(self.position), data)
            del self._early[self.position]
            self._hold(self.position, [self._sent[self.position]])

    def _refuse_wrong(self, first: int, stop: int) -> None:
        """Keep only those of these blocks that match the sender's digests."""
        for block in self._own.differing(self._sent, first, stop):
            self._early.pop(block, None)
            self.held.discard(block)
            self.position = min(self.position, block)
            self._refuse(block)

    def _refuse(self, block: int) -> None:
        self.corrupt += 1
        self._wrong.append((block, 1))

"""What a receiver holds of a session: the target, the map of its blocks, and the digests that prove them.

All transports fill the same store, several of them at the same time, so every method may be called from any thread, and
nobody else writes to the target, but for blocks that he has claimed. A block that is held is never written again,
whoever brings it; a block is written whole, with its digest taken from the bytes that are written. One whose digest is
not the sender's is not held: it is asked for again. A target that must be fed in order gets a block only when all
before it are there and the sender's digest of it has come, for it cannot be taken back.
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
from blast_transport.blocks.layout import Layout
from blast_transport.store.file_target import FileTarget
from blast_transport.store.target import Buffer, Target
from blast_transport.store.zero_digests import ZeroDigests

AHEAD_BYTES = 64 << 20
"""How far before its turn or its digest a block is taken where it would fill the memory, or could lie anywhere."""


class Store:
    """One session's data at one receiver.

    Attributes to read: `layout`, `suite`, `held` (BlockMap), `position` (first block not held), `corrupt` (blocks that
    came with a wrong digest), `durable` (what the target says of it after `commit`). `take_wrong` gives the blocks that
    have to be asked for again because of a wrong digest. `checked` is called for every block that an earlier session
    has left. The blocks in `holes` are zeros by the sender's word, like data that came: a file holds them as holes from
    the beginning, and any other target waits for them.
    """

    engine = PYTHON

    def __init__(
        self,
        layout: Layout,
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
        self._told = 0
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
        """The regular file that is being written, if there is one."""
        return self.target.descriptor

    @property
    def reach(self) -> int:
        """Blocks from this one on are not taken yet."""
        blocks = self.layout.blocks
        if self.target.in_order:
            return min(blocks, self.position + self._ahead)
        return blocks if self.layout.known else min(blocks, max(self.position, self._told) + self._ahead)

    def put(self, block: int, data: Buffer) -> bool:
        """Take a whole block; False if it was held, comes too early, or is not what was sent. Raises StoreError."""
        return self.put_all(block, [data]) == 1

    def put_all(self, first: int, row: Sequence[Buffer]) -> int:
        """Take whole blocks from `first` on, as `put` takes one; how many were taken. Raises StoreError."""
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
        """Take whole blocks from `first` on, one after the other in `data`, as a chain brings them. Raises StoreError.

        For a target that takes them in any order. A wrong one is written as well, where nothing is held: whoever comes
        after us in the chain is served from the target, and judges for itself.
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
        """The blocks from `first` to before `stop` that somebody may now write to `descriptor` by himself, as ranges.

        None that is held is among them, and nobody else writes them until `written` or `release`: one of them has to
        follow, whatever happens. Raises StoreError where more may not come, or there is no file.
        """
        if not isinstance(self.target, FileTarget):
            raise StoreError(f"{self.target.place} is no file that somebody else could write")
        with self._lock:
            free = list(runs_of(self._free(first, min(stop, self.reach))))
            for _, end in free[-1:]:
                self.target.check_end(self.layout.offset(end - 1) + self.layout.length(end - 1))
            for begin, end in free:
                self._claimed.add_range(begin, end - begin)
            return [(begin, end - begin) for begin, end in free]

    def written(self, first: int, digests: bytes) -> None:
        """Blocks that were claimed lie where they belong, with these digests of what was written. Raises StoreError."""
        row = [digests[begin : begin + DIGEST_BYTES] for begin in range(0, len(digests), DIGEST_BYTES)]
        stop = first + len(row)
        with self._lock:
            self._unclaim(first, stop)
            for begin, end in runs_of(self._good(first, row, min(stop, self.layout.blocks))):
                self._hold(begin, row[begin - first : end - first])

    def release(self, first: int, stop: int) -> None:
        """These will not be written by whoever has claimed them."""
        with self._lock:
            self._unclaim(first, stop)

    def expect(self, first: int, digests: bytes) -> None:
        """The sender's digests of the blocks from `first` on, told in order. Raises StoreError, RemoteProtocolError."""
        stop = first + len(digests) // DIGEST_BYTES
        with self._lock:
            if first > self._told or stop > self.layout.blocks:
                raise RemoteProtocolError("Digests of blocks that there are not, or whose turn has not come")
            self._told = max(self._told, stop)
            self._sent.set_all(first, digests)
            self._refuse_wrong(first, stop)
            if self.target.in_order:
                self._feed()

    def has(self, block: int) -> bool:
        """The block is held, or waits for its turn."""
        return block in self.held or block in self._early

    def waiting(self) -> list[int]:
        """Blocks that wait for their turn."""
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
        """A block that is held, out of the target; None if it is not held, or not kept. Raises StoreError."""
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
        """A stream turned out to have `size` bytes: what seemed to lie behind is not of it."""
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
        """What came as this block is not what was sent; it has to be asked for again."""
        with self._lock:
            self._refuse(block)

    def take_wrong(self) -> list[Range]:
        """Blocks that came with a wrong digest since the last call."""
        if not self._wrong:
            return []
        with self._lock:
            wrong, self._wrong = list(self._wrong), deque()
            return wrong

    @property
    def complete(self) -> bool:
        """Every block is held and is what was sent."""
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
        """Leave nothing behind, but what a later session may go on from. No effect after `commit`."""
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
        """What came with this digest is not what was sent, as far as that is known; it is asked for again."""
        if block not in self._sent or self._sent[block] == digest:
            return False
        self._refuse(block)
        return True

    def _good(self, first: int, digests: Sequence[bytes], stop: int) -> list[int]:
        """The blocks from `first` to before `stop` that are not held and, as far as that is known, are what was sent.

        The wrong ones are asked for again.
        """
        return [block for block in self._free(first, stop) if not self._is_wrong(block, digests[block - first])]

    def _free(self, first: int, stop: int) -> list[int]:
        """The blocks from `first` to before `stop` that are neither held nor claimed."""
        missing = (block for begin, number in self.held.missing(first, stop) for block in range(begin, begin + number))
        return [block for block in missing if block not in self._claimed] if self._claimed.held else list(missing)

    def _unclaim(self, first: int, stop: int) -> None:
        for block in range(first, stop):
            self._claimed.discard(block)

    def _write(self, first: int, row: Sequence[Buffer]) -> None:
        """Blocks that follow one another: together, unless one of them is short, as only the last can be."""
        if all(len(block) == self.layout.block_size for block in row[:-1]):
            self.target.write(self.layout.offset(first), *row)
        else:
            # Of a stream nobody knows which is the last: any that is forged may look like it.
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
        """What came as these blocks is held only if it is what was sent."""
        for block in self._own.differing(self._sent, first, stop):
            self._early.pop(block, None)
            self.held.discard(block)
            self.position = min(self.position, block)
            self._refuse(block)

    def _refuse(self, block: int) -> None:
        self.corrupt += 1
        self._wrong.append((block, 1))

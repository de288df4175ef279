"""Assembly of blocks from segments: only a complete block is digested, unsealed and written.

A block that arrives in one piece, as a super-packet, passes through without a copy, together with the blocks that
follow it.
"""

from __future__ import annotations

from collections.abc import Iterable

from blast_transport.base.errors import SealError
from blast_transport.blocks.block_map import Range
from blast_transport.blocks.digests import Buffer
from blast_transport.blocks.layout import BlockLayout
from blast_transport.blocks.masks import mask_of, runs
from blast_transport.blocks.sealing import Sealer
from blast_transport.store.blocks.block_assembly import Piece
from blast_transport.store.blocks.block_store import BlockStore

MAX_OPEN_BYTES = 64 << 20
"""Beyond this much of unfinished blocks the farthest is dropped, and asked for again later."""

_MAX_SPARE = 64
"""Buffers of blocks that were finished, for the next ones."""


def max_open(layout: BlockLayout) -> int:
    """Return the maximum number of incomplete blocks."""
    return max(4, MAX_OPEN_BYTES // (layout.block_segments * layout.segment_size))


class _Open:
    """A block with some of its segments: a bit of `mask` for each; `length` is where the last one of them ends."""

    __slots__ = ("buffer", "length", "mask")

    def __init__(self, buffer: memoryview) -> None:
        self.buffer = buffer
        self.mask = 0
        self.length = 0


class Assembly:
    """Assembly of the blocks of `store` from segments of any transport.

    `duplicates` counts segments that were held, `refused` what cannot be part of the session, or had to make room for
    what comes earlier in the file. A block that was not sealed so is refused by the store. Python is too slow to use
    parity segments.
    """

    decodes = False

    def __init__(self, store: BlockStore, sealer: Sealer | None = None) -> None:
        self.store = store
        self.duplicates = 0
        self.refused = 0
        layout = store.layout
        self._sealer = sealer
        self._count, self._size = layout.block_segments, layout.segment_size
        self._max_open = max_open(layout)
        self._open: dict[int, _Open] = {}
        self._spare: list[memoryview] = []
        self._full = (1 << self._count) - 1
        # Blocks before this one are full ones, and are taken at any time.
        self._last = layout.blocks - 1 if layout.known and not store.target.in_order else 0

    def refuse(self, count: int) -> None:
        """Count `count` segments that do not belong to the session."""
        self.refused += count

    def add_all(self, pieces: Iterable[Piece]) -> int:
        """Add segments in the order of their arrival; return the number of new ones. Raise StoreError."""
        new, first, row = 0, 0, list[Buffer]()
        for segment, count, payload in pieces:
            block, index = divmod(segment, self._count)
            whole = index == 0 and count == self._count and block not in self._open
            if row and not (whole and block == first + len(row)):
                self._close(first, row)
                row = []
            if not (whole and self._fits(block, index, len(payload))):
                new += self._add_in_parts(segment, count, payload)
            elif self.store.has(block):
                self.duplicates += count
            else:
                first = block - len(row)
                row.append(payload)
                new += count
        if row:
            self._close(first, row)
        return new

    def add(self, segment: int, count: int, payload: Buffer) -> int:
        """Add one row of segments, as `add_all` does."""
        return self.add_all([(segment, count, payload)])

    def repair(self, rows: Iterable[tuple[int, Buffer]]) -> int:
        """Add rows of requested segments; return the bytes of the rows with new segments. Raise StoreError."""
        return sum(len(data) for first, data in rows if self.add(first, -(-len(data) // self._size), data))

    def _add_in_parts(self, segment: int, count: int, payload: Buffer) -> int:
        block, index = divmod(segment, self._count)
        if index + count <= self._count:
            return self._add_part(block, index, count, payload)
        new, payload = 0, memoryview(payload)
        while count:
            part = min(count, self._count - index)
            new += self._add_part(block, index, part, payload[: part * self._size])
            payload = payload[part * self._size :]
            block, index, count = block + 1, 0, count - part
        return new

    def settle(self, size: int) -> None:
        """Complete the last block of a stream after all was sent. Raise StoreError, RemoteProtocolError."""
        if not self.store.layout.known:
            self.store.finish_size(size)
        layout = self.store.layout
        last = layout.blocks - 1
        for block, part in list(self._open.items()):
            # A part that does not fit cannot be the sender's.
            if block > last or (block == last and part.length > layout.wire_length(last)):
                del self._open[block]
        if last in self._open:
            self._close_if_whole(last, self._open[last])

    def missing(self, first: int, stop: int) -> list[Range]:
        """Return the missing segments from `first` to before `stop`, as ranges in order."""
        count, block = self._count, first // self._count
        if block < self._last and block in self._open and stop <= (block + 1) * count and not self.store.has(block):
            # Most gaps are of one datagram.
            return self._missing_of(block, first - block * count, stop - block * count)
        stop, found = min(stop, self._end()), list[Range]()
        for block, number in self.store.held.missing(first // count, -(-stop // count)):
            position, end = max(first, block * count), min(stop, (block + number) * count)
            for each in self._begun(block, block + number):
                found.append((position, each * count - position))
                found += self._missing_of(each, max(first - each * count, 0), min(stop - each * count, count))
                position = max(position, (each + 1) * count)
            found.append((position, end - position))
        return _joined(found)

    def take_wrong(self) -> list[Range]:
        """Return the blocks received with a wrong digest since the last call, and drop their segments."""
        wrong = self.store.take_wrong()
        for first, number in wrong:
            for block in range(first, first + number):
                self._open.pop(block, None)
        return wrong

    def _end(self) -> int:
        """Return the segment from which on segments are not accepted yet."""
        layout, reach = self.store.layout, self.store.reach
        if not layout.known or not 0 < reach == layout.blocks:
            return reach * self._count
        return (reach - 1) * self._count + layout.segments(reach - 1)

    def _begun(self, start: int, stop: int) -> list[int]:
        """Return the incomplete blocks from `start` to before `stop` with some segments, in order."""
        if stop - start <= len(self._open):
            return [block for block in range(start, stop) if block in self._open or self.store.has(block)]
        return sorted(block for block in {*self._open, *self.store.waiting()} if start <= block < stop)

    def _missing_of(self, block: int, start: int, stop: int) -> list[Range]:
        """Return the missing segments of a block that has begun, or waits to be stored."""
        part = self._open.get(block)
        # No segment exists behind the end of the last block.
        if part is None or stop <= start:
            return []
        lost = mask_of(start, stop - start) & ~part.mask
        return [(block * self._count + first, number) for first, number in runs(lost)]

    def _add_part(self, block: int, index: int, count: int, payload: Buffer) -> int:
        if not self._fits(block, index, len(payload)) or len(payload) <= (count - 1) * self._size:
            self.refused += count
            return 0
        if self.store.has(block):
            self.duplicates += count
            return 0
        part = self._open.get(block)
        if part is None:
            if len(self._open) >= self._max_open and not self._make_room(block):
                self.refused += count
                return 0
            # Memory that was used is there already, and in the cache.
            buffer = self._spare.pop() if self._spare else memoryview(bytearray(self._count * self._size))
            part = self._open[block] = _Open(buffer)
        mask = ((1 << count) - 1) << index
        new = (mask & ~part.mask).bit_count()
        self.duplicates += count - new
        if not new:
            return 0
        begin, end = index * self._size, index * self._size + len(payload)
        part.buffer[begin:end] = payload
        if (short := count * self._size - len(payload)) > 0:
            # Earlier contents of this memory must not reach the file.
            part.buffer[end : end + short] = bytes(short)
        part.mask |= mask
        part.length = max(part.length, end)
        if part.mask == self._full or block >= self._last:
            self._close_if_whole(block, part)
        return new

    def _make_room(self, block: int) -> bool:
        """Drop the farthest block that is open, if it is farther than this one."""
        farthest = max(self._open)
        if farthest <= block:
            return False
        part = self._open.pop(farthest)
        self.refused += part.mask.bit_count()
        self._spare.append(part.buffer)
        return True

    def _fits(self, block: int, index: int, length: int) -> bool:
        """Return whether segments of `length` bytes can exist there: all are full but the last of the block."""
        layout, end = self.store.layout, index * self._size + length
        if block < self._last:
            return end <= self._count * self._size and length % self._size == 0
        if block >= self.store.reach:
            return False
        whole = layout.wire_length(block)
        if layout.known:
            return end == whole or (length % self._size == 0 and end < whole)
        return end <= whole

    def _close_if_whole(self, block: int, part: _Open) -> None:
        layout = self.store.layout
        if part.mask == ((1 << self._count) - 1 if not layout.known else layout.all_segments(block)):
            del self._open[block]
            self._close(block, [part.buffer[: part.length]])
            if len(self._spare) < _MAX_SPARE:
                self._spare.append(part.buffer)

    def _close(self, first: int, row: list[Buffer]) -> None:
        if self._sealer is None:
            self.store.put_all(first, row)
            return
        for block, wire in enumerate(row, first):
            try:
                self.store.put(block, self._sealer.open(block, wire))
            except SealError:
                self.store.refuse(block)


def _joined(ranges: list[Range]) -> list[Range]:
    joined: list[Range] = []
    for first, count in ranges:
        if count <= 0:
            continue
        if joined and joined[-1][0] + joined[-1][1] == first:
            joined[-1] = (joined[-1][0], joined[-1][1] + count)
        else:
            joined.append((first, count))
    return joined

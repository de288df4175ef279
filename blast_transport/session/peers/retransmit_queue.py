"""Segments that one receiver is to get again."""

from __future__ import annotations

from collections.abc import Iterable

from blast_transport.blocks.block_map import BlockMap, Range
from blast_transport.blocks.layout import MAX_SEGMENTS

WHOLE = (1 << MAX_SEGMENTS) - 1
"""Every segment of a block, however many it has."""


class RetransmitQueue:
    """Segments, a bit of a mask for each, block by block in the order of asking; behind them whole blocks in theirs.

    To ask for the same again changes nothing, and for a row of whole blocks it costs no more than for one.
    """

    __slots__ = ("_masks", "_whole")

    def __init__(self) -> None:
        self._masks: dict[int, int] = {}
        self._whole = BlockMap()

    def __bool__(self) -> bool:
        return bool(self._masks or self._whole.held)

    def __len__(self) -> int:
        """Return the number of blocks with outstanding segments.

        A block that was requested in both ways may count twice.
        """
        return len(self._masks) + self._whole.held

    def add(self, block: int, mask: int) -> None:
        """Add these segments of the block."""
        self._masks[block] = self._masks.get(block, 0) | mask

    def add_whole(self, ranges: Iterable[Range]) -> None:
        """Add these whole blocks."""
        for first, count in ranges:
            self._whole.add_range(first, count)

    def mask(self, block: int) -> int:
        """Return the outstanding segments of the block."""
        return WHOLE if block in self._whole else self._masks.get(block, 0)

    def take(self, block: int, mask: int) -> int:
        """Remove these segments and return the ones that were outstanding."""
        held = self.mask(block)
        self._whole.discard(block)
        if held & ~mask:
            self._masks[block] = held & ~mask
        else:
            self._masks.pop(block, None)
        return held & mask

    def take_all(self, block: int) -> int:
        """Remove the block and return its outstanding segments."""
        mask = self._masks.pop(block, 0)
        if block not in self._whole:
            return mask
        self._whole.discard(block)
        return WHOLE

    def cut(self, stop: int) -> None:
        """Remove everything from this block on."""
        self._masks = {block: mask for block, mask in self._masks.items() if block < stop}
        self._whole.cut(stop)

    def drop(self, stop: int) -> None:
        """Remove everything before this block."""
        self._masks = {block: mask for block, mask in self._masks.items() if block >= stop}
        for first, count in list(self._whole.ranges()) if self._whole.held else ():
            for block in range(first, min(first + count, stop)):
                self._whole.discard(block)

    def clear(self) -> None:
        """Remove everything."""
        self.cut(0)

    def first(self) -> int | None:
        """Return the next block."""
        if self._masks:
            return next(iter(self._masks))
        return self._whole.first()

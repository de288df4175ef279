"""What one receiver is to get once more."""

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
        """Number of blocks of which something is owed; one that was asked for in both ways may count twice."""
        return len(self._masks) + self._whole.held

    def add(self, block: int, mask: int) -> None:
        """These segments of the block too."""
        self._masks[block] = self._masks.get(block, 0) | mask

    def add_whole(self, ranges: Iterable[Range]) -> None:
        """These blocks too."""
        for first, count in ranges:
            self._whole.add_range(first, count)

    def mask(self, block: int) -> int:
        """What is owed of the block."""
        return WHOLE if block in self._whole else self._masks.get(block, 0)

    def take(self, block: int, mask: int) -> int:
        """Which of these were owed; they are not any more."""
        held = self.mask(block)
        self._whole.discard(block)
        if held & ~mask:
            self._masks[block] = held & ~mask
        else:
            self._masks.pop(block, None)
        return held & mask

    def take_all(self, block: int) -> int:
        """What was owed of the block; it is not any more."""
        mask = self._masks.pop(block, 0)
        if block not in self._whole:
            return mask
        self._whole.discard(block)
        return WHOLE

    def cut(self, stop: int) -> None:
        """Nothing is owed from this block on."""
        self._masks = {block: mask for block, mask in self._masks.items() if block < stop}
        self._whole.cut(stop)

    def drop(self, stop: int) -> None:
        """Owe nothing before this block."""
        self._masks = {block: mask for block, mask in self._masks.items() if block >= stop}
        for first, count in list(self._whole.ranges()) if self._whole.held else ():
            for block in range(first, min(first + count, stop)):
                self._whole.discard(block)

    def clear(self) -> None:
        """Nothing is owed."""
        self.cut(0)

    def first(self) -> int | None:
        """The block that comes next."""
        if self._masks:
            return next(iter(self._masks))
        return self._whole.first()

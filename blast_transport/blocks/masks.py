"""Segments of a block as the bits of a number."""

from __future__ import annotations

from collections.abc import Iterator

from blast_transport.blocks.block_map import Range


def mask_of(first: int, count: int) -> int:
    """Return the bits of `count` segments from `first` on."""
    return ((1 << count) - 1) << first


def runs(mask: int) -> Iterator[Range]:
    """Yield the runs of set bits, as (first, number)."""
    position = 0
    while mask:
        skip = (mask & -mask).bit_length() - 1
        position, mask = position + skip, mask >> skip
        length = (~mask & (mask + 1)).bit_length() - 1
        yield position, length
        position, mask = position + length, mask >> length

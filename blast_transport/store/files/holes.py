"""Holes of a sparse file: ranges that read as zeros and take no space, as the file system reports them (SEEK_HOLE).

The sender announces the blocks that lie entirely in a hole. A receiver of a file creates the holes again and counts the
blocks as held, so that no transport sends them; the sender's digests verify that they are zeros. A file system without
support (lseek(2)) reports no holes, and everything is sent.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from heapq import nlargest
from itertools import accumulate
from operator import itemgetter

from blast_transport.blocks.block_map import Range
from blast_transport.blocks.layout import BlockLayout

_MAX_EXTENTS = 1 << 18
"""Holes looked for in a file, about 0.3 s: a file may have millions, hardly any of them as large as a block."""
_SECTOR_BYTES = 512
"""Unit of st_blocks, whatever the block size of the file system is (stat(2))."""


def is_sparse(status: os.stat_result) -> bool:
    """Return whether a file has fewer bytes on disk than its size: it may have holes."""
    return status.st_blocks * _SECTOR_BYTES < status.st_size


def holes_of(descriptor: int, size: int) -> list[Range]:
    """Return the holes of an open file as (offset, bytes), in order; it moves the offset of the descriptor."""
    found, end = list[Range](), 0
    if not is_sparse(os.fstat(descriptor)):
        return found
    while (begin := next_hole(descriptor, end, size)) < size and len(found) < _MAX_EXTENTS:
        end = next_data(descriptor, begin, size)
        found.append((begin, end - begin))
    return found


def next_hole(descriptor: int, offset: int, size: int) -> int:
    """Return where the first hole from `offset` on begins; `size` if only data follows."""
    try:
        return min(os.lseek(descriptor, offset, os.SEEK_HOLE), size)
    except OSError:
        return size


def next_data(descriptor: int, offset: int, size: int) -> int:
    """Return where the first data from `offset` on begins; `size` if only a hole follows."""
    try:
        return min(os.lseek(descriptor, offset, os.SEEK_DATA), size)
    except OSError as error:
        # ENXIO: no more data. Other errors: no support, and everything may be data.
        return size if error.errno == errno.ENXIO else offset


def blocks_within(holes: Iterable[Range], layout: BlockLayout, max_ranges: int, max_blocks: int) -> tuple[Range, ...]:
    """Return the blocks that lie in these holes altogether, as ranges of blocks in order.

    At most `max_ranges`, the largest ones, of `max_blocks` together: the sender sends the others as data.
    `holes` are (offset, bytes) in order; where one follows another at once, as in a folder, a block may lie in both.
    """
    assert layout.size is not None
    found = list[Range]()
    for offset, length in _joined(holes):
        end = offset + length
        first = -(-offset // layout.block_size)
        # The last block may be short.
        stop = layout.blocks if end >= layout.size else end // layout.block_size
        if first < stop:
            found.append((first, stop - first))
    if len(found) > max_ranges:
        found = sorted(nlargest(max_ranges, found, key=itemgetter(1)))
    before = accumulate((count for _, count in found), initial=0)
    kept = ((first, min(count, max_blocks - reached)) for (first, count), reached in zip(found, before, strict=False))
    return tuple((first, count) for first, count in kept if count > 0)


def _joined(holes: Iterable[Range]) -> list[Range]:
    joined = list[Range]()
    for offset, length in holes:
        if joined and sum(joined[-1]) == offset:
            joined[-1] = joined[-1][0], joined[-1][1] + length
        else:
            joined.append((offset, length))
    return joined

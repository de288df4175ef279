"""Ranges of the data that do not go along a chain, because every receiver held them when the transfer began.

The source knows them; each node learns them from its predecessor (HELD), in order, and leaves them out for its
successor as well. A rate is measured by the data without them, for a node passes a hole of any size at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable


class Skips:
    """Ranges of bytes (begin, stop), in order; each begins and ends where a block does, or with the data."""

    def __init__(self, block_size: int = 1, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._block_size = block_size
        self._begins: list[int] = []
        self._stops: list[int] = []
        # Bytes in all ranges before each one.
        self._before: list[int] = []
        for begin, stop in ranges:
            self.add(begin, stop)

    def add(self, begin: int, stop: int) -> None:
        """Add a range that lies behind all others, or follows the last one at once."""
        if self._stops and begin <= self._stops[-1]:
            self._stops[-1] = max(self._stops[-1], stop)
            return
        self._before.append(self.within(begin))
        self._begins.append(begin)
        self._stops.append(stop)

    def pass_over(self, offset: int, limit: int) -> int:
        """Return where the data continues after `offset`, if that is in a range; whole blocks before `limit`."""
        place = bisect_right(self._stops, offset)
        if place == len(self._stops) or offset < self._begins[place] or offset % self._block_size:
            return offset
        stop = self._stops[place]
        return stop if stop <= limit else max(offset, limit - limit % self._block_size)

    def data_stop(self, offset: int, limit: int) -> int:
        """Return where the data from `offset` on ends: before a range, or at `limit`."""
        place = bisect_right(self._stops, offset)
        if place == len(self._stops):
            return limit
        # A block that has begun to go in spite of a range goes as a whole.
        return min(limit, max(self._begins[place], -(-offset // self._block_size) * self._block_size))

    def within(self, offset: int) -> int:
        """Return how many bytes before `offset` lie in the ranges."""
        place = bisect_right(self._begins, offset) - 1
        if place < 0:
            return 0
        return self._before[place] + min(offset, self._stops[place]) - self._begins[place]

    def data_before(self, offset: int) -> int:
        """Return how many bytes before `offset` do not."""
        return offset - self.within(offset)

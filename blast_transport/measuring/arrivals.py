"""A rate, from what came when. No clock, no sockets.

TCP begins slowly, and a shaper lets a first burst pass; both are over soon. So only the time counts in which all
streams had begun and none had ended, or all of it where there was no such time, and of what came in it the later half.
That is cut into windows of equally many bytes, of which the median one gives the rate: a busy machine may stop a sender
in between for longer than all the rest took, and that is not the network's.

Data comes in lumps of up to 64 KB, and nobody knows whether what holds the rate lets a lump go at the beginning of the
time that it takes (a token bucket) or at the end (a wire). So half of each counts before its moment, and half after it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

_LEAST_GAP = 2e-4
"""Seconds between two moments that are kept: a bound on memory."""
_WINDOWS = 8


class Arrivals:
    """What came on some streams, by number. Times are seconds of any clock that does not go back."""

    def __init__(self) -> None:
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}
        self._times: list[float] = []
        self._totals: list[int] = []
        self.bytes = 0

    def add(self, stream: int, count: int, now: float) -> None:
        """So many bytes have come."""
        self.bytes += count
        self._first.setdefault(stream, now)
        self._last[stream] = now
        if len(self._times) > 1 and now - self._times[-2] < _LEAST_GAP:
            self._times[-1], self._totals[-1] = now, self.bytes
        else:
            self._times.append(now)
            self._totals.append(self.bytes)

    @property
    def seconds(self) -> float:
        """From the first bytes to the last ones."""
        return self._times[-1] - self._times[0] if self._times else 0.0

    def rate(self) -> float:
        """Bits/s; 0 where nothing came, or all of it at once."""
        if not self.seconds:
            return 0.0
        halfway = [(before + total) / 2 for before, total in zip([0, *self._totals], self._totals, strict=False)]
        begin, end = max(self._first.values()), min(self._last.values())
        if begin >= end:
            begin, end = self._times[0], self._times[-1]
        first, last = (_interpolated(moment, self._times, halfway) for moment in (begin, end))
        size = (last - first) / 2 / _WINDOWS
        edges = [_interpolated(last - number * size, halfway, self._times) for number in range(_WINDOWS + 1)]
        seconds = median(later - earlier for later, earlier in pairwise(edges))
        return 8 * size / seconds if seconds > 0 else 0.0


def _interpolated(place: float, places: Sequence[float], values: Sequence[float]) -> float:
    """The value at a place between those that are known, in ascending order."""
    after = min(max(bisect_right(places, place), 1), len(places) - 1)
    start, stop = places[after - 1], places[after]
    share = (place - start) / (stop - start) if stop > start else 1.0
    return values[after - 1] + share * (values[after] - values[after - 1])

"""A rate, from what came when. No clock, no sockets.

TCP begins slowly, and a shaper lets a first burst pass; both are over soon. So the rate is that of the later half of
the time in which all streams had begun and none had ended. Where there was no such time, it is that of the whole.

Data comes in lumps of up to 64 KB, and nobody knows whether what holds the rate lets a lump go at the beginning of the
time that it takes (a token bucket) or at the end (a wire). So half of each counts before its moment, and half after it.
"""

from __future__ import annotations

from bisect import bisect_right

_LEAST_GAP = 2e-4
"""Seconds between two moments that are kept: a bound on memory."""


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
        if not self._times:
            return 0.0
        begin, end = max(self._first.values()), min(self._last.values())
        middle = (begin + end) / 2
        if middle >= end:
            middle, end = self._times[0], self._times[-1]
        seconds = end - middle
        return 8 * (self._total_at(end) - self._total_at(middle)) / seconds if seconds > 0 else 0.0

    def _total_at(self, moment: float) -> float:
        """Bytes that had come; between two moments that are known, as if they came evenly."""
        after = bisect_right(self._times, moment)
        before = after - 1
        if after == len(self._times):
            return self._half_way(before)
        share = (moment - self._times[before]) / (self._times[after] - self._times[before])
        return (1 - share) * self._half_way(before) + share * self._half_way(after)

    def _half_way(self, place: int) -> float:
        """Bytes in the middle of what came then."""
        return (self._totals[place] + (self._totals[place - 1] if place else 0)) / 2

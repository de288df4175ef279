"""A rate, from what came when. No clock, no sockets.

TCP begins slowly, and a shaper lets a first burst pass; both are over soon. So only the time counts in which all
streams had begun and none had ended, or all of it where that was short, and of what came in it the later half. That is
cut into windows of equally many bytes, and those that took twice as long as the median one are left out: a busy machine
may stop a sender in between for longer than all the rest took, and that is not the network's.

Data comes in lumps. Each counts as if it had come evenly since the last one of its stream: after a loss TCP keeps what
arrives back until the gap is filled, and then gives out all of it at once.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from statistics import median

_MIN_GAP = 2e-4
"""Seconds between two moments that are kept, times the number of streams: a bound on memory."""
_FEWEST_WINDOWS, _MAX_WINDOWS = 3, 8
_LARGEST_LUMP = 1 << 16
_PAUSED = 2.0
"""So many times as long as the median window: somebody was not at work."""
_STEPS = 40
"""Halvings of an interval, after which nothing is left of it."""


class _Stream:
    """What came on one: moments, and bytes until then."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._totals: list[int] = []

    def add(self, count: int, now: float, min_gap: float) -> None:
        total = count + (self._totals[-1] if self._totals else 0)
        if len(self.times) > 1 and now - self.times[-2] < min_gap:
            self.times[-1], self._totals[-1] = now, total
        else:
            self.times.append(now)
            self._totals.append(total)

    def until(self, moment: float) -> float:
        """Bytes; between two moments that are known, as if they came evenly."""
        after = bisect_right(self.times, moment)
        if after == len(self.times) or not after:
            return self._totals[-1] if after else 0
        share = (moment - self.times[after - 1]) / (self.times[after] - self.times[after - 1])
        return (1 - share) * self._totals[after - 1] + share * self._totals[after]


class Arrivals:
    """What came on some streams, by number. Times are seconds of any clock that does not go back."""

    def __init__(self) -> None:
        self._streams: dict[int, _Stream] = {}
        self.bytes = 0

    def add(self, stream: int, count: int, now: float) -> None:
        """So many bytes have come."""
        self.bytes += count
        self._streams.setdefault(stream, _Stream()).add(count, now, _MIN_GAP * len(self._streams))

    @property
    def seconds(self) -> float:
        """From the first bytes to the last ones."""
        streams = self._streams.values()
        return max(one.times[-1] for one in streams) - min(one.times[0] for one in streams) if streams else 0.0

    def rate(self) -> float:
        """Bits/s; 0 where nothing came, or all of it at once."""
        if not self.seconds:
            return 0.0
        begin, end = self._interval()
        last = self._until(end)
        half = (last - self._until(begin)) / 2
        count = max(_FEWEST_WINDOWS, min(_MAX_WINDOWS, int(half / _LARGEST_LUMP)))
        size = half / count
        edges = [self._when(last - number * size, begin, end) for number in range(count + 1)]
        windows = [later - earlier for later, earlier in pairwise(edges)]
        longest = _PAUSED * median(windows)
        paused = {number for number, seconds in enumerate(windows) if seconds > longest}
        # The beginning or the end of a pause may lie in the window beside.
        beside = paused | {number + step for number in paused for step in (-1, 1)}
        kept = [seconds for number, seconds in enumerate(windows) if number not in beside]
        kept = kept or [seconds for seconds in windows if seconds <= longest]
        return 8 * size * len(kept) / sum(kept) if sum(kept) > 0 else 0.0

    def _interval(self) -> tuple[float, float]:
        """When all streams ran; or, if that was less than half of the time, when any did."""
        streams = self._streams.values()
        begin, end = max(one.times[0] for one in streams), min(one.times[-1] for one in streams)
        if end - begin >= self.seconds / 2:
            return begin, end
        return min(one.times[0] for one in streams), max(one.times[-1] for one in streams)

    def _until(self, moment: float) -> float:
        return sum(stream.until(moment) for stream in self._streams.values())

    def _when(self, total: float, begin: float, end: float) -> float:
        """The moment until which so many bytes had come."""
        for _ in range(_STEPS):
            middle = (begin + end) / 2
            begin, end = (middle, end) if self._until(middle) < total else (begin, middle)
        return end

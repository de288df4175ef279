"""Rate of received data. No clock, no sockets.

TCP starts slowly, and a shaper passes a first burst; both end soon. So only the time counts during which all streams
had begun and none had ended, or the whole time if that was short, and of the data in it only the later half. It is
divided into windows with equal bytes; windows that took twice as long as the median are excluded, because a busy
machine may stop a sender for longer than the rest took, which is not a property of the network.

Data arrives in lumps. Each lump counts as if it had arrived evenly since the last one of its stream: after a loss TCP
withholds data until the gap is filled, and then delivers all of it at once.
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
"""Multiple of the median window's time above which a window is excluded: an end was stopped."""
_STEPS = 40
"""Halvings of an interval, after which its length is negligible."""


class _StreamArrivals:
    """Arrivals of one stream: times, and bytes until then."""

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
        """Return the bytes until `moment`, interpolated between two known times."""
        after = bisect_right(self.times, moment)
        if after == len(self.times) or not after:
            return self._totals[-1] if after else 0
        share = (moment - self.times[after - 1]) / (self.times[after] - self.times[after - 1])
        return (1 - share) * self._totals[after - 1] + share * self._totals[after]


class Arrivals:
    """Arrivals of several streams, by number. Times are seconds of any monotonic clock."""

    def __init__(self) -> None:
        self._streams: dict[int, _StreamArrivals] = {}
        self.bytes = 0

    def add(self, stream: int, count: int, now: float) -> None:
        """Record `count` bytes."""
        self.bytes += count
        self._streams.setdefault(stream, _StreamArrivals()).add(count, now, _MIN_GAP * len(self._streams))

    @property
    def seconds(self) -> float:
        """Return the seconds from the first bytes to the last ones."""
        streams = self._streams.values()
        return max(one.times[-1] for one in streams) - min(one.times[0] for one in streams) if streams else 0.0

    def rate(self) -> float:
        """Return the rate in bits/s; 0 if no data arrived, or all of it at once."""
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
        """Return the interval in which all streams ran, or any did, if the former is less than half of the time."""
        streams = self._streams.values()
        begin, end = max(one.times[0] for one in streams), min(one.times[-1] for one in streams)
        if end - begin >= self.seconds / 2:
            return begin, end
        return min(one.times[0] for one in streams), max(one.times[-1] for one in streams)

    def _until(self, moment: float) -> float:
        return sum(stream.until(moment) for stream in self._streams.values())

    def _when(self, total: float, begin: float, end: float) -> float:
        """Return the time at which `total` bytes had arrived."""
        for _ in range(_STEPS):
            middle = (begin + end) / 2
            begin, end = (middle, end) if self._until(middle) < total else (begin, middle)
        return end

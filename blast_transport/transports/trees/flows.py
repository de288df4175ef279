"""Rate over an edge, and whether the network limits it."""

from __future__ import annotations

from collections import deque

INTERVALS = 4
"""Intervals of the reported mean: about a second."""
_MAX_OF_THE_TIME = 0.5
"""A flow that is held up longer is limited by its receiver, not by its path."""


class Meter:
    """Meter of one edge, from `now` on. No clock."""

    def __init__(self, now: float) -> None:
        self._intervals: deque[tuple[float, int, float]] = deque(maxlen=INTERVALS)
        self._since = self._seen = now
        self._bytes = 0
        self._held = 0.0
        self._held_back = False

    def sent(self, size: int) -> None:
        """Count `size` bytes that left."""
        self._bytes += size

    def see(self, held_back: bool, now: float) -> None:
        """Record whether the network limits the edge from now on."""
        if self._held_back:
            self._held += now - self._seen
        self._held_back, self._seen = held_back, now

    def take(self, now: float) -> tuple[float, bool]:
        """Return the bits/s over about the last second, and whether the network limited them.

        Call it several times a second.
        """
        self.see(self._held_back, now)
        self._intervals.append((now - self._since, self._bytes, self._held))
        self._since, self._bytes, self._held = now, 0, 0.0
        seconds = sum(interval for interval, _, _ in self._intervals)
        if seconds <= 0:
            return 0.0, False
        held = sum(held for _, _, held in self._intervals)
        return sum(size for _, size, _ in self._intervals) * 8 / seconds, held > _MAX_OF_THE_TIME * seconds

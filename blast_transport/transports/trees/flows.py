"""How much goes over an edge, and whether the network takes less than it is given."""

from __future__ import annotations

from collections import deque

INTERVALS = 4
"""What is told is the mean over so many: about a second."""
_MAX_OF_THE_TIME = 0.5


class Meter:
    """Of one edge, from `now` on. No clock."""

    def __init__(self, now: float) -> None:
        self._intervals: deque[tuple[float, int, float]] = deque(maxlen=INTERVALS)
        self._since = self._seen = now
        self._bytes = 0
        self._held = 0.0
        self._holding = False

    def sent(self, size: int) -> None:
        """So many bytes have left."""
        self._bytes += size

    def see(self, held_back: bool, now: float) -> None:
        """From now on more might leave, but that the network takes no more; or not."""
        if self._holding:
            self._held += now - self._seen
        self._holding, self._seen = held_back, now

    def take(self, now: float) -> tuple[float, bool]:
        """Bits/s over the last second or so, and whether the network held it back; call it some times a second."""
        self.see(self._holding, now)
        self._intervals.append((now - self._since, self._bytes, self._held))
        self._since, self._bytes, self._held = now, 0, 0.0
        seconds = sum(interval for interval, _, _ in self._intervals)
        if seconds <= 0:
            return 0.0, False
        held = sum(held for _, _, held in self._intervals)
        return sum(size for _, size, _ in self._intervals) * 8 / seconds, held > _MAX_OF_THE_TIME * seconds

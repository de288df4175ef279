"""A clock that goes from one appointed moment to the next."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

Call = Callable[[], None]


class VirtualClock:
    """Calls in order of time; at equal times in order of registration, `late` ones after all others."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, bool, int, Call]] = []
        self._count = 0

    def at(self, when: float, call: Call, late: bool = False) -> None:
        """Call at this moment (seconds), or now if it is over."""
        self._count += 1
        heapq.heappush(self._heap, (max(when, self.now), late, self._count, call))

    @property
    def next(self) -> float:
        """The next appointed moment; infinity if there is none."""
        return self._heap[0][0] if self._heap else math.inf

    def advance(self, to: float) -> None:
        """Go on to a moment, which may not be behind the next appointment, and keep all that are due then."""
        self.now = to
        while self._heap and self._heap[0][0] <= to:
            heapq.heappop(self._heap)[3]()

"""Which of the waiting jobs has been overdue longest."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

Due = tuple[float, int]
"""(when it becomes overdue, the job's place in order of arrival)"""


class Overdue:
    """Due times of jobs, earliest first, each at most once; jobs that do not wait are dropped as they come up."""

    def __init__(self) -> None:
        self._heap: list[Due] = []
        self._present: set[int] = set()
        self._aside: list[Due] = []

    def put(self, due: float, place: int) -> None:
        """The job at this place waits and will be overdue then (never, if infinite)."""
        if place not in self._present and due < math.inf:
            self._present.add(place)
            heapq.heappush(self._heap, (due, place))

    def first(self, now: float, waits: Callable[[int], bool], can_start: Callable[[int], bool]) -> int | None:
        """The place of the job that waits and has been overdue longest, of those that hardware and quota let start."""
        while self._heap and self._heap[0][0] <= now:
            place = self._heap[0][1]
            if waits(place):
                if can_start(place):
                    return place
                self._aside.append(self._heap[0])
            else:
                self._present.discard(place)
            heapq.heappop(self._heap)
        return None

    def look_again(self) -> None:
        """What could not start before may be able to now."""
        for due in self._aside:
            heapq.heappush(self._heap, due)
        self._aside.clear()

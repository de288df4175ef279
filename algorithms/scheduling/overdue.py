"""Which of the waiting jobs has been overdue longest."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

Due = tuple[float, int]
"""(when it becomes overdue, the job's place in order of arrival)"""

SHORT = 64
"""So many due times are not worth looking through for jobs that have left."""


class Overdue:
    """Due times of jobs, earliest first, each at most once; `waits` says whether the job at a place still waits.

    Those that do not are dropped as they come up, or when they are more than the others: a due time may be years away.
    """

    def __init__(self, waits: Callable[[int], bool]) -> None:
        self._waits = waits
        self._heap: list[Due] = []
        self._present: set[int] = set()
        self._aside: list[Due] = []
        self._compact_at = SHORT

    def __len__(self) -> int:
        """Number of due times that are kept."""
        return len(self._present)

    def put(self, due: float, place: int) -> None:
        """The job at this place waits and will be overdue then (never, if infinite)."""
        if place not in self._present and due < math.inf:
            self._present.add(place)
            heapq.heappush(self._heap, (due, place))
            if len(self._present) > self._compact_at:
                self._compact()

    def first(self, now: float, can_start: Callable[[int], bool]) -> int | None:
        """The place of the job that waits and has been overdue longest, of those that hardware and quota let start."""
        while self._heap and self._heap[0][0] <= now:
            place = self._heap[0][1]
            if self._waits(place):
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

    def _compact(self) -> None:
        self._heap = [due for due in self._heap if self._waits(due[1])]
        heapq.heapify(self._heap)
        self._aside = [due for due in self._aside if self._waits(due[1])]
        self._present = {place for _, place in (*self._heap, *self._aside)}
        self._compact_at = max(SHORT, 2 * len(self._present))

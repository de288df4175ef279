"""The queue of overdue jobs, by due time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

Due = tuple[float, int]
"""(when it becomes overdue, the job's place in order of arrival)"""

SHORT = 64
"""Number of due times up to which entries of departed jobs are not searched for."""


class Overdue:
    """Due times of jobs, earliest first, each at most once; `waits` returns whether the job at a place still waits.

    Entries of departed jobs are dropped when they come up, or when they outnumber the others: a due time may be years
    away.
    """

    def __init__(self, waits: Callable[[int], bool]) -> None:
        self._waits = waits
        self._heap: list[Due] = []
        self._present: set[int] = set()
        self._aside: list[Due] = []
        self._compact_at = SHORT

    def __len__(self) -> int:
        """Return the number of stored due times."""
        return len(self._present)

    def put(self, due: float, place: int) -> None:
        """Add the waiting job at this place with its due time (infinite: never)."""
        if place not in self._present and due < math.inf:
            self._present.add(place)
            heapq.heappush(self._heap, (due, place))
            if len(self._present) > self._compact_at:
                self._compact()

    def first(self, now: float, can_start: Callable[[int], bool]) -> int | None:
        """Return the place of the job that has been overdue longest, if hardware and quota let it start."""
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
        """Reconsider the jobs that could not start before."""
        for due in self._aside:
            heapq.heappush(self._heap, due)
        self._aside.clear()

    def _compact(self) -> None:
        self._heap = [due for due in self._heap if self._waits(due[1])]
        heapq.heapify(self._heap)
        self._aside = [due for due in self._aside if self._waits(due[1])]
        self._present = {place for _, place in (*self._heap, *self._aside)}
        self._compact_at = max(SHORT, 2 * len(self._present))

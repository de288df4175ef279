"""Splitters of one size, each in its place, so that the first of them are found without a look at all."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from blast_controller.core.model.fabric import Splitter

Place = tuple[bool, int]
"""The allocation order, smaller first: dark pieces before others, then the fabric's order."""


class OrderedSplitters:
    """A sorted free list with at most one splitter at each place.

    Operations take logarithmic time in the number of places.
    """

    def __init__(self) -> None:
        self._there: dict[Place, Splitter] = {}
        # Places in order. One whose splitter is gone stays until it comes first, and serves again if one comes back.
        self._heap: list[Place] = []
        self._heaped: set[Place] = set()

    def __len__(self) -> int:
        return len(self._there)

    def __iter__(self) -> Iterator[Splitter]:
        return iter(self._there.values())

    def put(self, place: Place, splitter: Splitter) -> None:
        """Insert a splitter."""
        self._there[place] = splitter
        if place not in self._heaped:
            self._heaped.add(place)
            heappush(self._heap, place)

    def take(self, place: Place) -> None:
        """Remove the splitter at this place."""
        del self._there[place]

    def first(self, count: int) -> list[Splitter]:
        """Return the first `count` splitters in order, or fewer if there are not as many."""
        found: list[Place] = []
        while self._heap and len(found) < count:
            place = heappop(self._heap)
            if place in self._there:
                found.append(place)
            else:
                self._heaped.remove(place)
        for place in found:
            heappush(self._heap, place)
        return [self._there[place] for place in found]

"""Splitters of one size, each in its place, so that the first of them are found without a look at all."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from blast_controller.core.model.fabric import Splitter

Place = tuple[bool, int]
"""Smaller ones are taken first: what is dark, and of that what the fabric names first."""


class Shelf:
    """One splitter at most in each place. What is asked for costs the logarithm of how many places there are."""

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
        """A splitter has come."""
        self._there[place] = splitter
        if place not in self._heaped:
            self._heaped.add(place)
            heappush(self._heap, place)

    def take(self, place: Place) -> None:
        """The splitter in this place is gone."""
        del self._there[place]

    def first(self, count: int) -> list[Splitter]:
        """Those in the first places, in their order; fewer if there are not as many."""
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

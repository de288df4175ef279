"""Who waits for what happens to one thing, found without asking those for whom it is too early."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable
from typing import Generic, TypeVar

Waiter = TypeVar("Waiter", bound=Hashable)


class Audience(Generic[Waiter]):
    """Waiters by the number of the last event that is of no use to them; 0 where every event may be.

    Whoever waits for what is far off costs nothing while nearer things happen, however many they are.
    """

    def __init__(self) -> None:
        self._after: dict[int, dict[Waiter, None]] = {}
        self._numbers: list[int] = []
        """The keys of the above, rising."""

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def add(self, waiter: Waiter, after: int) -> None:
        """Take in a waiter who wants no event numbered up to `after`."""
        if after not in self._after:
            insort(self._numbers, after)
            self._after[after] = {}
        self._after[after][waiter] = None

    def remove(self, waiter: Waiter, after: int) -> None:
        """Let go a waiter who was taken in with that number. Raises KeyError for any other."""
        waiters = self._after[after]
        del waiters[waiter]
        if not waiters:
            del self._after[after]
            del self._numbers[bisect_left(self._numbers, after)]

    def reached_by(self, number: float) -> list[Waiter]:
        """Those to whom an event of that number may be of use, by the number that they wait behind."""
        reached = self._numbers[: bisect_left(self._numbers, number)]
        return [waiter for after in reached for waiter in self._after[after]]

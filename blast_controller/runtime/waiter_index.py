"""Waiters for the events of one object, indexed so that waiters for later events cost nothing."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable
from typing import Generic, TypeVar

Waiter = TypeVar("Waiter", bound=Hashable)


class WaiterIndex(Generic[Waiter]):
    """Waiters by the number of the last event that they ignore; 0 if every event may match.

    Waiters for distant events cost nothing while earlier events occur, however many they are.
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
        """Return the waiters for which an event of that number may match, by the number that they ignore."""
        reached = self._numbers[: bisect_left(self._numbers, number)]
        return [waiter for after in reached for waiter in self._after[after]]

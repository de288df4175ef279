"""The source of a random test's choices: Hypothesis, which shrinks them, or a seeded generator, which is fast."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies

T = TypeVar("T")


class Dice(Protocol):
    """A source of choices."""

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options; the first ones are the simplest."""

    def number(self, low: int, high: int) -> int:
        """Return a number within bounds, both included."""

    def some(self, options: Sequence[T], max_count: int) -> list[T]:
        """Return up to `max_count` different options, maybe none."""

    def rarely(self) -> bool:
        """Return True in one of six cases."""


class HypothesisDice:
    """The choices of a running Hypothesis test."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def pick(self, options: Sequence[T]) -> T:
        return self._data.draw(strategies.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return int(self._data.draw(strategies.integers(low, high)))

    def some(self, options: Sequence[T], max_count: int) -> list[T]:
        if not options or max_count < 1:
            return []
        return list(
            self._data.draw(strategies.lists(strategies.sampled_from(options), max_size=max_count, unique=True))
        )

    def rarely(self) -> bool:
        return self.number(0, 5) == 5


class SeededDice:
    """The choices of a generator, which its seed determines."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def some(self, options: Sequence[T], max_count: int) -> list[T]:
        return self._random.sample(options, self._random.randint(0, min(max_count, len(options))))

    def rarely(self) -> bool:
        return self._random.random() < 1 / 6

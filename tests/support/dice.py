"""Where a random test takes its choices from: Hypothesis, which shrinks them, or a seeded generator, which is fast."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies

T = TypeVar("T")


class Dice(Protocol):
    """Choices."""

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, of which there must be some; the first are the simplest."""

    def number(self, least: int, most: int) -> int:
        """A number within bounds, both included."""

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """At most so many different options, maybe none."""

    def rarely(self) -> bool:
        """True one time in six."""


class HypothesisDice:
    """Choices of a running Hypothesis test."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def pick(self, options: Sequence[T]) -> T:
        return self._data.draw(strategies.sampled_from(options))

    def number(self, least: int, most: int) -> int:
        return int(self._data.draw(strategies.integers(least, most)))

    def some(self, options: Sequence[T], most: int) -> list[T]:
        if not options or most < 1:
            return []
        return list(self._data.draw(strategies.lists(strategies.sampled_from(options), max_size=most, unique=True)))

    def rarely(self) -> bool:
        return self.number(0, 5) == 5


class SeededDice:
    """Choices of a generator: the same seed, the same choices."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def some(self, options: Sequence[T], most: int) -> list[T]:
        return self._random.sample(options, self._random.randint(0, min(most, len(options))))

    def rarely(self) -> bool:
        return self._random.random() < 1 / 6

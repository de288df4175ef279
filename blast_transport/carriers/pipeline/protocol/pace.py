"""How fast a successor takes data: against the least that a leg allows, and against how fast data comes to us."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_SHARE = 0.5
"""Of what comes to us: a successor that takes less, by its own doing, holds up more than it is worth."""


def is_far_behind(since: float, done: float, now: float, patience: float) -> bool:
    """Whether who is at it `since` then takes twice as long as who was `done`, and for `patience` seconds longer."""
    return now >= max(since, done) + max(patience, done - since)


@dataclass(frozen=True, slots=True)
class Sight:
    """At one moment: what has come to us, what of it was given to the successor, and what that has taken, in bytes."""

    now: float
    come: int
    given: int
    taken: int


class Pace:
    """Measures one successor after the other. `slowest` in bytes/s, 0 for none; `seconds`: over which it is measured.

    By comparison only one is ever found slow, and none that waits for data itself: it is the way from us that is slow
    then, and everybody behind us would be found so in turn.
    """

    def __init__(self, slowest: float, seconds: float) -> None:
        self._slowest = slowest
        self._seconds = seconds
        self._compares = True
        self._since = self._compared_since = Sight(0.0, 0, 0, 0)
        self._starved = False
        self._given = 0

    def anew(self, sight: Sight) -> None:
        """Measure from here on."""
        self._since = self._compared_since = sight
        self._given = sight.given

    def lags(self, come: int, taken: int) -> bool:
        """As it looks now, it will be found slow by comparison: nobody should wait for it."""
        since = self._compared_since
        return self._compares and not self._starved and taken - since.taken < LEAST_SHARE * (come - since.come)

    def convict(self) -> bool:
        """Whether a successor is found slow that says so of its store: only one is, as by comparison."""
        compares, self._compares = self._compares, False
        return compares

    def see(self, sight: Sight, held_up: bool, starved: bool = False) -> str | None:
        """Why the successor is too slow, if it has been so all the time although data lay before it.

        `held_up`: what it waits for is not its doing. `starved`: it waits for data, which does not come faster.
        """
        caught_up, self._given = sight.taken >= self._given, sight.given
        self._starved = starved
        if caught_up or held_up:
            self.anew(sight)
            return None
        if starved:
            self._compared_since = sight
        return self._below_least(sight) or self._behind(sight)

    def _below_least(self, sight: Sight) -> str | None:
        since, seconds = self._since, sight.now - self._since.now
        if seconds < self._seconds:
            return None
        self._since, taken = sight, sight.taken - since.taken
        if taken >= self._slowest * seconds:
            return None
        return f"excluded: {taken / seconds:.0f} bytes/s where {self._slowest:.0f} are the least"

    def _behind(self, sight: Sight) -> str | None:
        since, seconds = self._compared_since, sight.now - self._compared_since.now
        if seconds < self._seconds:
            return None
        lags, self._compared_since = self.lags(sight.come, sight.taken), sight
        if not lags:
            return None
        self._compares = False
        taken, come = sight.taken - since.taken, sight.come - since.come
        return f"excluded: {taken / seconds:.0f} bytes/s where {come / seconds:.0f} came"

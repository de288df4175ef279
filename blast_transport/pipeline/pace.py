"""How fast a successor takes data: against the least that a leg allows, and against how fast data comes to us."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_SHARE = 0.5
"""Of what comes to us: a successor that takes less, by its own doing, holds up more than it is worth."""


@dataclass(frozen=True, slots=True)
class Sight:
    """At one moment: what has come to us, what of it was given to the successor, and what that has taken, in bytes."""

    now: float
    come: int
    given: int
    taken: int


class Pace:
    """Measures one successor after the other. `slowest` in bytes/s, 0 for none; `seconds`: over which it is measured.

    By comparison only one is ever found slow: when the next one takes no more, it is the way from us that is slow, and
    everybody behind us would be found so in turn.
    """

    def __init__(self, slowest: float, seconds: float) -> None:
        self._slowest = slowest
        self._seconds = seconds
        self._compares = True
        self._since = Sight(0.0, 0, 0, 0)
        self._given = 0

    def anew(self, sight: Sight) -> None:
        """Measure from here on."""
        self._since = sight
        self._given = sight.given

    def lags(self, come: int, taken: int) -> bool:
        """As it looks now, it will be found slow by comparison: nobody should wait for it."""
        return self._compares and taken - self._since.taken < LEAST_SHARE * (come - self._since.come)

    def see(self, sight: Sight, held_up: bool) -> str | None:
        """Why the successor is too slow, if it has been so all the time although data lay before it.

        `held_up`: what it waits for is not its doing.
        """
        caught_up, self._given = sight.taken >= self._given, sight.given
        seconds = sight.now - self._since.now
        if caught_up or held_up:
            self.anew(sight)
        elif seconds >= self._seconds:
            reason = self._judge(sight, seconds)
            self.anew(sight)
            return reason
        return None

    def _judge(self, sight: Sight, seconds: float) -> str | None:
        taken = sight.taken - self._since.taken
        if taken < self._slowest * seconds:
            return f"excluded: {taken / seconds:.0f} bytes/s where {self._slowest:.0f} are the least"
        if self.lags(sight.come, sight.taken):
            self._compares = False
            come = sight.come - self._since.come
            return f"excluded: {taken / seconds:.0f} bytes/s where {come / seconds:.0f} came"
        return None

"""Minimum interval between phases that a transport requests: none at first, then growing while nothing improves."""

from __future__ import annotations

_MIN_SECONDS, _MAX_SECONDS = 0.2, 3.2


class Renewals:
    """Phase requests of one transfer. No clock."""

    def __init__(self) -> None:
        self.due: float | None = None
        """When the one that was asked for may begin."""
        self._gap = _MIN_SECONDS
        self._last: float | None = None
        self._reached = 0

    def ask(self, reached: int, now: float) -> None:
        """Record a request for a new phase; every receiver that keeps up holds the blocks before `reached`."""
        if self.due is not None:
            return
        if self._last is None:
            self.due = now
            return
        self._gap = _MIN_SECONDS if reached > self._reached else min(2 * self._gap, _MAX_SECONDS)
        self._reached = max(self._reached, reached)
        self.due = max(now, self._last + self._gap)

    def began(self, now: float) -> None:
        """Record that a phase has begun, requested or not."""
        self._last = now if self.due is not None else self._last
        self.due = None

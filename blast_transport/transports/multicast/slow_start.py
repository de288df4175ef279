"""End of the initial slow start: HyStart++ (RFC 9406).

A single long round trip may be the delay of a busy host. A queue has grown if the shortest round trip of a round is
longer than that of the round before; even then the window grows on, more slowly, for some rounds, and slow start
resumes if the round trips shorten. No sockets, no clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_MIN_GROWTH, _MAX_GROWTH, _GROWTH = 0.004, 0.016, 1 / 8
"""Seconds, and share of the shortest round trip, by which the next round's is longer where a queue has grown."""
_SAMPLES = 8
"""Round trips that a round needs to count."""
_SLOWED = 1 / 4
"""Growth while a queue may have grown."""
_MAX_ROUNDS = 5
"""Rounds of slowed growth after which slow start ends."""


@dataclass(slots=True)
class SlowStart:
    """State of the slow start. A round ends when the segments that had left at its start are acknowledged."""

    _ends_at: int = 0
    _before: float = math.inf
    _shortest: float = math.inf
    _samples: int = 0
    # Shortest round trip at which the growth was slowed, None while it is not, and the rounds since.
    _slowed_from: float | None = None
    _rounds: int = 0

    @property
    def growth(self) -> float:
        """Return the segments by which the window grows for each acknowledged one."""
        return 1.0 if self._slowed_from is None else _SLOWED

    @property
    def over(self) -> bool:
        """Return whether slow start has ended."""
        return self._rounds >= _MAX_ROUNDS

    def measure(self, seconds: float) -> None:
        """Record a round trip."""
        self._shortest, self._samples = min(self._shortest, seconds), self._samples + 1
        if self._samples < _SAMPLES:
            return
        if self._slowed_from is None:
            grown = min(max(_MIN_GROWTH, self._before * _GROWTH), _MAX_GROWTH)
            self._slowed_from = self._shortest if self._shortest >= self._before + grown else None
        elif self._shortest < self._slowed_from:
            self._slowed_from, self._rounds = None, 0

    def acknowledge(self, position: int, sent: int) -> None:
        """Record that `position` of the `sent` segments are acknowledged."""
        if position >= self._ends_at:
            self._ends_at = sent
            self._before, self._shortest, self._samples = self._shortest, math.inf, 0
            self._rounds += self._slowed_from is not None

    def follow(self) -> None:
        """Continue with the round trips of another receiver."""
        self._before = self._shortest = math.inf
        self._samples = 0

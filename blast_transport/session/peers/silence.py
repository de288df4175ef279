"""Detection of times in which no receiver progresses: then the network is at fault, and no receiver is slow."""

from __future__ import annotations

import math

_SILENT_SECONDS = 0.5
"""Receivers whose latest progress differs by less have stopped together."""


class SharedSilence:
    """Progress of the receivers that keep up. `ended`: time at which the latest silence of all of them ended."""

    def __init__(self) -> None:
        self.ended = self._latest = -math.inf

    def progressed(self, now: float) -> None:
        """Record that a receiver progressed."""
        if now > self._latest + _SILENT_SECONDS:
            self.ended = now
        self._latest = now

    def includes(self, progressed: float) -> bool:
        """Return whether no receiver has progressed for longer after this time."""
        return self._latest <= progressed + _SILENT_SECONDS

    def excuse(self, seconds: float) -> None:
        """Extend the times by those seconds, in which this host did not run."""
        self.ended += seconds
        self._latest += seconds

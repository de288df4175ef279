"""Number of connections to a child: one more as long as the network limits them, and the last one helped.

One TCP connection does not fill a path with a large bandwidth-delay product, or with losses: several do (section 3.3).
"""

from __future__ import annotations

from blast_transport.transports.trees.protocol.messages import MAX_STREAMS

_MIN_GAIN = 1.1
_RESIGNED = 15
"""Judgments after which it is tried again: a path changes."""


class Widening:
    """Number of streams of one edge. No clock: call `judge` about once a second."""

    def __init__(self) -> None:
        self._before = 0.0
        self._resigned = 0

    def judge(self, streams: int, rate: float, held_back: bool) -> bool:
        """Return whether another stream is needed when `streams` carry `rate` bits/s."""
        if self._resigned:
            self._resigned -= 1
            return False
        if not held_back or streams >= MAX_STREAMS:
            return False
        if rate < _MIN_GAIN * self._before:
            self.resign()
            return False
        self._before = rate
        return True

    def resign(self) -> None:
        """Stop adding connections for a while, because more do not help or cannot be made."""
        self._before, self._resigned = 0.0, _RESIGNED

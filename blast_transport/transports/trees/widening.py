"""How many connections go to a child: another one as long as the network holds those back, and the last one helped.

One TCP connection does not fill a path that is long and wide, or that loses packets: several together do (section 3.3).
"""

from __future__ import annotations

from blast_transport.transports.trees.protocol.messages import MAX_STREAMS

_MIN_GAIN = 1.1
_RESIGNED = 15
"""Judgments after which it is tried again: a path changes."""


class Widening:
    """Of one edge. No clock: `judge` is asked about once a second."""

    def __init__(self) -> None:
        self._before = 0.0
        self._resigned = 0

    def judge(self, streams: int, rate: float, held_back: bool) -> bool:
        """Whether another stream is wanted, now that so many bring `rate` bits/s."""
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
        """More of them are of no use, or not to be had, for a while."""
        self._before, self._resigned = 0.0, _RESIGNED

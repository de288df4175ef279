"""Retry of the optical transport after a failure on the sender's side: soon at first, then later, finally never.

A transient failure (an interface that is reconfigured, a missing route) should not deprive the rest of a transfer of
its light tree. Until the next try the data uses another transport, and the latest grant is kept.
"""

from __future__ import annotations

import math

from blast_transport.transports.choices import OpticalChoice, OpticalPause, TransportChoice

_WAITS = (0.5, 1.0, 2.0)
"""Seconds to the next try after each failure in a row."""
_STEADY_SECONDS = 5.0
"""Seconds of transmission after which a failure counts as the first."""


class LightRetry:
    """State of the retries; `light`: the grant to use at the next try, None: none."""

    def __init__(self) -> None:
        self.light: OpticalChoice | None = None
        self._due: float | None = None
        self._failures = 0
        self._began = math.inf

    def began(self, now: float) -> None:
        """Record that sending has begun, by any grant."""
        self._began, self._due = now, None

    def failed(self, light: OpticalChoice, now: float) -> bool:
        """Record a failure of this host's side of `light`; return whether it will be retried."""
        self._failures = 1 if now >= self._began + _STEADY_SECONDS else self._failures + 1
        self._began, self._due = math.inf, None
        if self._failures > len(_WAITS):
            return False
        self.light, self._due = light, now + _WAITS[self._failures - 1]
        return True

    def keeps(self, order: TransportChoice) -> bool:
        """Return whether this order concerns the unused grant; any other order cancels the retry."""
        if self._due is None:
            return False
        if isinstance(order, OpticalChoice | OpticalPause):
            self.light = order if isinstance(order, OpticalChoice) else None
            return True
        self._due = None
        return False

    def take(self, now: float) -> OpticalChoice | None:
        """Return the grant when its next try is due, None otherwise."""
        if self._due is None or now < self._due or self.light is None:
            return None
        light, self.light, self._due = self.light, None, None
        return light if now < light.until else None

    def wait(self, now: float) -> float | None:
        """Return the seconds until `take` may return a grant."""
        return None if self._due is None or self.light is None else max(0.0, self._due - now)

"""Light after our own side of it has failed: tried again soon, then later, and at last not any more.

What fails for a moment (an interface that is set anew, a route that is missing) should not cost the rest of a transfer
its light. Until the next try the data goes another way, and what is told of the light is kept for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blast_transport.transports.choices import Dark, Light, TransportChoice

_WAITS = (0.5, 1.0, 2.0)
"""Seconds to the next try after each failure in a row."""
_STEADY_SECONDS = 5.0
"""Light that has been sent for so long is as new when it fails."""


@dataclass(slots=True)
class LightRetry:
    """`light`: what there is while it is not used, None: none."""

    light: Light | None = None
    _due: float | None = None
    _failures: int = 0
    _began: float = math.inf

    def began(self, now: float) -> None:
        """Light is being sent, by whatever order."""
        self._began, self._due = now, None

    def failed(self, light: Light, now: float) -> bool:
        """Our own side of `light` does not work; whether it will be tried again."""
        self._failures = 1 if now >= self._began + _STEADY_SECONDS else self._failures + 1
        self._began, self._due = math.inf, None
        if self._failures > len(_WAITS):
            return False
        self.light, self._due = light, now + _WAITS[self._failures - 1]
        return True

    def keeps(self, order: TransportChoice) -> bool:
        """Whether this order is about light that is not used for now; any other one ends the waiting."""
        if self._due is None:
            return False
        if isinstance(order, Light | Dark):
            self.light = order if isinstance(order, Light) else None
            return True
        self._due = None
        return False

    def take(self, now: float) -> Light | None:
        """The light, when it is time to try it."""
        if self._due is None or now < self._due or self.light is None:
            return None
        light, self.light, self._due = self.light, None, None
        return light if now < light.until else None

    def wait(self, now: float) -> float | None:
        """Seconds until there may be something to `take`."""
        return None if self._due is None or self.light is None else max(0.0, self._due - now)

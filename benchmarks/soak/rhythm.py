"""How much of a processor somebody uses, period by period: bursts compete otherwise than an even load."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

PERIOD_SECONDS = 0.1
MOST_PERIODS = 600
"""The latest; what is burnt by them begins anew after the last."""


class Rhythm:
    """Measures in a thread of its own, by what `cpu_seconds` says, until `stop`."""

    def __init__(self, cpu_seconds: Callable[[], float]) -> None:
        self._cpu_seconds = cpu_seconds
        self._shares: deque[float] = deque(maxlen=MOST_PERIODS)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rhythm", daemon=True)
        self._thread.start()

    def stop(self) -> list[float]:
        """The shares of one processor, period by period."""
        self._stopped.set()
        self._thread.join()
        return list(self._shares)

    def _run(self) -> None:
        # Whoever is measured may be gone at any time, when somebody has interrupted it all.
        with suppress(OSError):
            before = self._cpu_seconds()
            while not self._stopped.wait(PERIOD_SECONDS):
                now = self._cpu_seconds()
                self._shares.append((now - before) / PERIOD_SECONDS)
                before = now

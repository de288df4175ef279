"""An event loop whose clock stands still while anybody works: what a busy machine takes longer for, takes no time.

Coroutines marked `virtual_time` run in such a loop. Sockets within the loop work as ever; threads and
other processes do not, for time goes on without them. Who polls must sleep in between, or no time passes.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable

IN_FLIGHT = 0.1
"""Seconds of real time in which what was sent on loopback arrives; only then does the clock move on without it."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """When all wait for a time, that time has come; `time()` is in seconds and nothing else moves it."""

    def __init__(self) -> None:
        self._seconds = 0.0
        super().__init__(_Waiting(self._pass))

    def time(self) -> float:
        return self._seconds

    def _pass(self, seconds: float) -> None:
        self._seconds += seconds


class _Waiting(selectors.EpollSelector):
    def __init__(self, passes: Callable[[float], None]) -> None:
        super().__init__()
        self._passes = passes

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        found = super().select(min(timeout, IN_FLIGHT))
        if not found:
            self._passes(timeout)
        return found

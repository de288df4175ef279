"""A timer on the clock of the emulated switch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from optical_switch.emulator.timing import Clock


class RestartableTimer:
    """Calls `expire` at a time, unless it is stopped or started again before."""

    def __init__(self, clock: Clock, expire: Callable[[], Awaitable[None]]) -> None:
        self._clock = clock
        self._expire = expire
        self._task: asyncio.Task[None] | None = None

    def start(self, deadline: float) -> None:
        """Expire at `deadline`, by the clock, in place of any former deadline."""
        self.stop()
        self._task = asyncio.create_task(self._run(deadline))

    def stop(self) -> None:
        """Do not expire. Called by `expire` itself it has no effect: the timer has expired already."""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            self._task = None

    async def close(self) -> None:
        """Stop, and wait until nothing runs any more."""
        if (task := self._task) is not None:
            self.stop()
            await asyncio.wait([task])

    async def _run(self, deadline: float) -> None:
        await self._clock.until(deadline)
        await self._expire()

"""Time in the emulated switch: a clock that can be replaced, exact waiting, and how long setting light paths takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

TIMER_GRAIN = 0.0012
"""asyncio rounds timers up to whole milliseconds (epoll): the last bit before a deadline is spent yielding."""


def _utc() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Clock:
    """`now` in seconds, monotonic; `sleep` in the same seconds; `date` for the headers of messages."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    date: Callable[[], datetime] = _utc

    async def until(self, deadline: float) -> None:
        """Return at `deadline`, not before, and as little as possible after it."""
        while (left := deadline - self.now()) > 0:
            await self.sleep(left - TIMER_GRAIN if left > TIMER_GRAIN else 0)


class Estimate:
    """How long something takes, from the last times it was done: mean plus twice the mean deviation.

    The rule of TCP's retransmission timer (RFC 6298) with quicker gains.
    """

    GAIN = 0.25

    def __init__(self, first: float) -> None:
        self._mean = first
        self._deviation = 0.0

    @property
    def seconds(self) -> float:
        """Enough time for it, most likely."""
        return self._mean + 2 * self._deviation

    def add(self, seconds: float) -> None:
        """Take into account that it took `seconds` this time."""
        error = seconds - self._mean
        self._mean += self.GAIN * error
        self._deviation += self.GAIN * (abs(error) - self._deviation)

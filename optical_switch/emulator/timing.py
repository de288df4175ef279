"""Time in the emulated switch: a replaceable clock, exact waiting, and an estimate of the time to set light paths."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

TIMER_GRAIN = 0.0012
"""Seconds. asyncio rounds timers up to whole milliseconds (epoll): the time before a deadline is spent yielding."""


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


class DurationEstimate:
    """An estimate of a duration from its last samples: mean plus twice the mean deviation.

    The rule of TCP's retransmission timer (RFC 6298) with larger gains.
    """

    GAIN = 0.25
    """Weight of a new sample: RFC 6298 has 1/8 and 1/4, but the first commands are to be on time already."""

    def __init__(self, first: float) -> None:
        self._mean = first
        self._deviation = 0.0

    @property
    def seconds(self) -> float:
        """The estimate: a time that most likely suffices."""
        return self._mean + 2 * self._deviation

    def add(self, seconds: float) -> None:
        """Add a sample of `seconds`."""
        error = seconds - self._mean
        self._mean += self.GAIN * error
        self._deviation += self.GAIN * (abs(error) - self._deviation)

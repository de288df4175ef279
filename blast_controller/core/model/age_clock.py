"""The clock by which history is too old to be kept. Times are arguments."""

from __future__ import annotations

MAX_LEAP = 86_400.0
"""Seconds by which the wall clock may be ahead of what is expected without being doubted."""
DOUBT = 86_400.0
"""Seconds for which a clock that leapt ahead is doubted: long enough for it to be corrected."""


class AgeClock:
    """Wall time, except that a leap ahead counts only after a day.

    A clock that is set a month ahead by mistake, or a machine that starts with a wrong one, must not drop the history.
    `written` is the wall time at which the newest of the history was written, None where there is none.
    """

    def __init__(self, written: float | None = None) -> None:
        self._wall = written
        self._monotonic: float | None = None
        self._doubted: float | None = None

    def now(self, wall: float, monotonic: float) -> float:
        """Return the time at which ages are reckoned, in seconds since 1970."""
        passed = 0.0 if self._monotonic is None else monotonic - self._monotonic
        expected = wall if self._wall is None else self._wall + passed
        if wall - expected > MAX_LEAP:
            self._doubted = monotonic if self._doubted is None else self._doubted
            if monotonic - self._doubted < DOUBT:
                wall = expected
            else:
                self._doubted = None
        else:
            self._doubted = None
        self._wall, self._monotonic = wall, monotonic
        return wall

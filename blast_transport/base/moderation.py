"""Moderation of reads: the time for which data collects before it is read, like the interrupts of a network card.

A wake-up for every block costs more than the block itself, and no reader needs single blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

_MEMORY = 0.25
"""Weight of the latest reading."""
_MIN_SECONDS = 0.0002
"""Sleeping for less costs more than it saves."""


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """Time for which one call may read repeatedly, and moderation meanwhile.

    The call ends at `until`, when `segments` have passed or some were skipped, and when one of the descriptors `woken`
    is readable. `gathers` and `max_wait` are those of a `Moderation`.
    """

    until: float
    segments: int
    gathers: float
    max_wait: float
    woken: tuple[int, int]


class Moderation:
    """Measures the pace by what each reading finds, and lets `due` bytes gather, for `max_wait` seconds at the most."""

    def __init__(self, due: int, max_wait: float) -> None:
        self.due, self.max_wait = due, max_wait
        self._read_at: float | None = None
        self._left = False
        # Averages of the time between two reads, and of the bytes found. Each counts alone: a read that follows another
        # at once finds little, which does not show the rate.
        self._seconds = self._bytes = 0.0

    @property
    def _gathers(self) -> float:
        """Return the seconds in which `due` bytes arrive."""
        return self.due * self._seconds / self._bytes if self._bytes else 0.0

    def pause(self, now: float) -> float:
        """Return the seconds to wait until `due` bytes have arrived since the last read."""
        if self._read_at is None or self._left:
            return 0.0
        seconds = min(self._read_at + self._gathers - now, self.max_wait)
        return seconds if seconds >= _MIN_SECONDS else 0.0

    def stay(self, until: float, segments: int, woken: tuple[int, int]) -> ReadWindow:
        """Return the time for which the next call may read, at this rate."""
        return ReadWindow(until, segments, self._gathers, self.max_wait, woken)

    def read(self, count: int, now: float, *, left: bool = False) -> None:
        """Record a read of `count` bytes; `left`: more data is available, which is read without waiting."""
        self._left = left
        if count == 0:
            return
        if self._read_at is not None:
            self._seconds += _MEMORY * (now - self._read_at - self._seconds)
            self._bytes += _MEMORY * (count - self._bytes)
        self._read_at = now

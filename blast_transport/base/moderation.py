"""How long data may gather before it is read, as a network card holds back its interrupts.

Whoever wakes for every block pays more for waking than for the block, and nobody needs to hear of one block.
"""

from __future__ import annotations

_MEMORY = 0.25
"""Weight of the latest reading."""
_LEAST_SECONDS = 0.0002
"""Sleeping for less costs more than it saves."""


class Moderation:
    """Measures the pace by what each reading finds, and lets `due` bytes gather, for `most` seconds at the most."""

    def __init__(self, due: int, most: float) -> None:
        self._due = due
        self._most = most
        self._read_at: float | None = None
        self._seconds_each = 0.0

    def pause(self, now: float) -> float:
        """Seconds to wait, now that something has come, until `due` bytes have since the last reading."""
        if self._read_at is None:
            return 0.0
        seconds = min(self._read_at + self._due * self._seconds_each - now, self._most)
        return seconds if seconds >= _LEAST_SECONDS else 0.0

    def read(self, count: int, now: float) -> None:
        """So many bytes were found."""
        if count == 0:
            return
        if self._read_at is not None:
            each = (now - self._read_at) / count
            self._seconds_each += _MEMORY * (each - self._seconds_each)
        self._read_at = now

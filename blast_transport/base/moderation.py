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
        self._left = False
        # Between two readings, and what one finds. Each by itself: where one follows another at once it finds little,
        # which says nothing of the pace.
        self._seconds = self._bytes = 0.0

    def pause(self, now: float) -> float:
        """Seconds to wait, now that something has come, until `due` bytes have since the last reading."""
        if self._read_at is None or self._left:
            return 0.0
        each = self._seconds / self._bytes if self._bytes else 0.0
        seconds = min(self._read_at + self._due * each - now, self._most)
        return seconds if seconds >= _LEAST_SECONDS else 0.0

    def read(self, count: int, now: float, *, left: bool = False) -> None:
        """So many bytes were found; `left`: not all of what had come, and nobody waits before he reads the rest."""
        self._left = left
        if count == 0:
            return
        if self._read_at is not None:
            self._seconds += _MEMORY * (now - self._read_at - self._seconds)
            self._bytes += _MEMORY * (count - self._bytes)
        self._read_at = now

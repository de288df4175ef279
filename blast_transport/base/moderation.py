"""How long data may gather before it is read, as a network card holds back its interrupts.

Whoever wakes for every block pays more for waking than for the block, and nobody needs to hear of one block.
"""

from __future__ import annotations

from dataclasses import dataclass

_MEMORY = 0.25
"""Weight of the latest reading."""
_MIN_SECONDS = 0.0002
"""Sleeping for less costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Stay:
    """For how long what has to be read again and again may be read in one call, and how it gathers meanwhile.

    It ends at `until`, when so many `segments` have passed or some were left out, and when there is something to read
    at one of `woken`. `gathers`, `most`: as of a `Moderation`.
    """

    until: float
    segments: int
    gathers: float
    most: float
    woken: tuple[int, int]


class Moderation:
    """Measures the pace by what each reading finds, and lets `due` bytes gather, for `most` seconds at the most."""

    def __init__(self, due: int, most: float) -> None:
        self._most = most
        self._due = due
        self._read_at: float | None = None
        self._left = False
        # Between two readings, and what one finds. Each by itself: where one follows another at once it finds little,
        # which says nothing of the pace.
        self._seconds = self._bytes = 0.0

    @property
    def _gathers(self) -> float:
        """Seconds in which `due` bytes come."""
        return self._due * self._seconds / self._bytes if self._bytes else 0.0

    def pause(self, now: float) -> float:
        """Seconds to wait, now that something has come, until `due` bytes have since the last reading."""
        if self._read_at is None or self._left:
            return 0.0
        seconds = min(self._read_at + self._gathers - now, self._most)
        return seconds if seconds >= _MIN_SECONDS else 0.0

    def stay(self, until: float, segments: int, woken: tuple[int, int]) -> Stay:
        """What is read now may be read until then, at this pace."""
        return Stay(until, segments, self._gathers, self._most, woken)

    def read(self, count: int, now: float, *, left: bool = False) -> None:
        """So many bytes were found; `left`: not all of what had come, and nobody waits before he reads the rest."""
        self._left = left
        if count == 0:
            return
        if self._read_at is not None:
            self._seconds += _MEMORY * (now - self._read_at - self._seconds)
            self._bytes += _MEMORY * (count - self._bytes)
        self._read_at = now

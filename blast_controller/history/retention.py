"""Retention of the recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MICROSECONDS_PER_DAY = 86_400_000_000


class RetainedGroup(NamedTuple):
    """A base and its blocks, which are dropped together. `newest` is wall time in microseconds."""

    first: int
    newest: int


@dataclass(frozen=True, slots=True)
class Keep:
    """A size in bytes and an age in days. Raises ValueError for what no recording fits into."""

    bytes: int = 1 << 30
    days: float = 14.0

    def __post_init__(self) -> None:
        if self.bytes < MIN_BYTES or self.days <= 0:
            raise ValueError(f"the retention must be at least {MIN_BYTES} bytes and more than 0 s")

    def is_over(self, oldest: RetainedGroup, used: int, wall: int) -> bool:
        """Return true if the oldest group must be dropped, given the bytes in use and the wall time (microseconds)."""
        return used > self.bytes or wall - oldest.newest > self.days * MICROSECONDS_PER_DAY


MIN_BYTES = 1 << 20
"""Less would not hold one image of a fabric."""

"""Retention of the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

SECONDS_PER_DAY = 86_400.0
MIB = 1 << 20
BYTES_BESIDE_BODY = 100
"""The assumed size of an entry without its body."""


class RetainedEntry(NamedTuple):
    """The properties of an entry for retention: its sequence, the wall time of its commit, and its size in bytes."""

    sequence: int
    at: float
    size: int


def size_of(body: str | None) -> int:
    """Return the bytes at which an entry with this body is reckoned."""
    return BYTES_BESIDE_BODY + len(body or "")


@dataclass(frozen=True, slots=True)
class Retention:
    """History is kept up to a number of entries, an age in days and a size in bytes; the latest entry always stays.

    Raises ValueError for less than one entry.
    """

    entries: int = 100_000
    days: float = 30.0
    max_bytes: int = 256 * MIB

    def __post_init__(self) -> None:
        if self.entries < 1:
            raise ValueError("keep at least one entry")

    def last_expired(self, oldest: Sequence[RetainedEntry], newest: int, size: int, at: float) -> int:
        """Return the last sequence to drop of these entries, 0 for none.

        They are the oldest there are, in order; `newest` is the latest sequence of all and `size` what all have
        together. History goes from its beginning only: where the clock had jumped, an entry that looks old waits for
        those before it.
        """
        last = 0
        for line in oldest:
            too_many = newest - line.sequence >= self.entries
            too_old = at - line.at > self.days * SECONDS_PER_DAY
            if line.sequence == newest or not (too_many or too_old or size > self.max_bytes):
                break
            last, size = line.sequence, size - line.size
        return last

"""How much history to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Retention:
    """History is kept up to a number of entries and an age in days; the latest entry always stays.

    Raises ValueError for less than one entry.
    """

    entries: int = 100_000
    days: float = 30.0

    def __post_init__(self) -> None:
        if self.entries < 1:
            raise ValueError("keep at least one entry")

    def last_expired(self, oldest: Sequence[tuple[int, float]], newest: int, at: float) -> int:
        """The last sequence to drop of these entries (sequence, wall time written), 0 for none.

        They are the oldest there are, in order; `newest` is the latest sequence of all. History goes from its
        beginning only: where the clock had jumped, an entry that looks old waits for those before it.
        """
        last = 0
        for sequence, written in oldest:
            too_many = newest - sequence >= self.entries
            too_old = at - written > self.days * SECONDS_PER_DAY
            if sequence == newest or not (too_many or too_old):
                break
            last = sequence
        return last

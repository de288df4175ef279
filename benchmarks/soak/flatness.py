"""Whether something has stopped growing: its level at the end against that after the warm-up."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

WARM_UP_SECONDS = 600.0
MOST_GROWTH = 0.10
"""Of the level after the warm-up."""
NEGLIGIBLE_BYTES = 4 << 20
"""Growth below this is no growth, whatever it is a share of."""

Series = Sequence[tuple[float, float]]
"""(seconds since the start, value)."""


@dataclass(frozen=True, slots=True)
class Level:
    """The median of the first fifth after the warm-up, and of the last fifth of the run.

    `since` in seconds: less than the warm-up where the run was too short for it, and then little is said by it.
    """

    first: float
    last: float
    since: float

    @property
    def growth(self) -> float:
        """As a share of the first level."""
        return self.last / self.first - 1 if self.first else 0.0

    @property
    def flat(self) -> bool:
        """Whether it has not grown to speak of."""
        return self.last - self.first <= max(self.first * MOST_GROWTH, NEGLIGIBLE_BYTES)


def level(series: Series) -> Level | None:
    """None for a series too short to have a beginning and an end."""
    if len(series) < 10:
        return None
    end = series[-1][0]
    since = WARM_UP_SECONDS if end >= 2 * WARM_UP_SECONDS else end / 2
    values = [value for at, value in series if at >= since]
    fifth = max(1, len(values) // 5)
    return Level(statistics.median(values[:fifth]), statistics.median(values[-fifth:]), since)

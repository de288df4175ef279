"""A median with an interval that assumes nothing of how the values spread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def median_interval(values: Sequence[float], confidence: float = 0.9) -> tuple[float, float, float]:
    """(low, median, high): the ranks between which the median lies with `confidence`, from the binomial distribution.

    Of fewer than five values no ranks do: these are then the least and the greatest.
    """
    ranked, count = sorted(values), len(values)
    rank, outside = 0, 0.0
    while rank < (count - 1) // 2 and (outside := outside + 2 * math.comb(count, rank) / 2**count) < 1 - confidence:
        rank += 1
    return ranked[max(0, rank - 1)], statistics.median(ranked), ranked[min(count - 1, count - rank)]

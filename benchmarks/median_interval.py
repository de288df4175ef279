"""A median with an interval by ranks, which assumes no distribution."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def median_interval(values: Sequence[float], confidence: float = 0.9) -> tuple[float, float, float]:
    """Return (low, median, high): the median is between low and high with `confidence`, by the binomial distribution.

    For fewer than five values, low and high are the minimum and the maximum.
    """
    ranked, count = sorted(values), len(values)
    rank, outside = 0, 0.0
    while rank < (count - 1) // 2 and (outside := outside + 2 * math.comb(count, rank) / 2**count) < 1 - confidence:
        rank += 1
    return ranked[max(0, rank - 1)], statistics.median(ranked), ranked[min(count - 1, count - rank)]

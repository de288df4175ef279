"""Percentiles, of one definition for everything that prints them: the nearest rank.

The p-th percentile of n values is the smallest of them that p percent of all values do not exceed, the one of rank
ceil(p n / 100) in rising order. It is always a value that was observed, and numpy's `percentile` with
`method="inverted_cdf"` (Hyndman and Fan's first definition). With fewer than 100 values the 99th is the largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the `percent`-th percentile of these values, in any order. Raises ValueError.

    Parameters
    ----------
    values
        At least one.
    percent
        Above 0, up to 100.
    """
    ordered = sorted(values)
    if not ordered or not 0 < percent <= 100:
        raise ValueError(f"no percentile {percent:g} of {len(ordered)} values")
    return ordered[math.ceil(percent * len(ordered) / 100) - 1]

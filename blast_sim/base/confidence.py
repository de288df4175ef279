"""Confidence intervals of means of few repeats, by Student's t-distribution.

Source: W. S. Gosset, "The Probable Error of a Mean", Biometrika 6, 1908.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

_QUANTILES = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""The 97.5 % quantile for 1, 2, … degrees of freedom."""


def student_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of the t-distribution, to three digits.

    Raises ValueError below one degree of freedom.
    """
    if degrees < 1:
        raise ValueError("a t-distribution has at least one degree of freedom")
    if degrees <= len(_QUANTILES):
        return _QUANTILES[degrees - 1]
    # Two terms of the expansion about the normal quantile z (Abramowitz and Stegun, 26.7.5).
    z = statistics.NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def half_width(values: Sequence[float]) -> float:
    """Return half the width of the 95 % confidence interval of the mean; 0 for fewer than two values."""
    if len(values) < 2:
        return 0.0
    return student_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))

"""Weights as whole multiples of one unit, so that bounds and weights compare exactly.

Solvers compute in floating point. A bound with a rounding error proves nothing if two selections differ by less than
that error, and "proven optimal" must not depend on a tolerance. Multiples of one unit below 2^53 add without any error,
and no selection weighs anything between two of them, so a bound may be rounded down to the next multiple.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

EXACT = 2.0**52
"""Largest whole number up to which whole numbers and their halves are exact in floating point."""

MAX_DIGITS = 9
"""Decimal places up to which weights are read as decimal fractions."""

SPARE_BITS = 8
"""Binary places kept for prices if the unit can be chosen freely."""


@dataclass(frozen=True, slots=True)
class WeightGrid:
    """A unit of `divisor / scale`; `exact` if every weight is a whole number of units."""

    scale: float
    divisor: float
    exact: bool

    def round_up(self, weights: Sequence[float]) -> NDArray[np.float64]:
        """Return the weights in units, each rounded up to a whole number."""
        scaled = np.array(weights, np.float64) * self.scale
        return (np.rint(scaled) if self.exact else np.ceil(scaled)) / self.divisor

    def round_down(self, weights: Iterable[float]) -> float:
        """Return the sum of the weights in units, each rounded down to a whole number."""
        whole = round if self.exact else math.floor
        return float(sum(whole(weight * self.scale) for weight in weights)) / self.divisor

    def weight(self, units: float) -> float:
        """Convert a number of units to a weight."""
        return units * self.divisor / self.scale


def grid_of(weights: Sequence[float], terms: int) -> WeightGrid:
    """Return the grid for positive weights.

    Parameters
    ----------
    weights : sequence of float
        Above 0. Read as decimal fractions: 0.1 is a tenth.
    terms : int
        At least 1: the number of weights whose sum must stay exact.

    Returns
    -------
    Grid
        Not `exact` if two weights differ by less than the resolution of an exact sum.

    Examples
    --------
    >>> grid = grid_of([0.25, 1.5], 10)
    >>> grid.round_up([0.25, 1.5]).tolist(), grid.weight(6.0), grid.exact
    ([1.0, 6.0], 1.5, True)
    """
    limit = EXACT / terms
    found = np.unique(np.array(weights, np.float64))
    for digits in range(MAX_DIGITS + 1):
        scale = 10.0**digits
        whole = np.rint(found * scale)
        if whole[-1] >= EXACT:
            break
        if (whole / scale == found).all():
            divisor = float(np.gcd.reduce(whole.astype(np.int64)))
            if whole[-1] / divisor <= limit:
                return WeightGrid(scale, divisor, exact=True)
            break
    return WeightGrid(2.0 ** (math.floor(math.log2(limit / found[-1])) - SPARE_BITS), 1.0, exact=False)

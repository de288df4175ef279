"""Weights as whole numbers of one unit, so that a bound and a weight are compared exactly.

Solvers compute in floating point. A bound that is off by a rounding error proves nothing where two selections differ by
less, and "proven optimal" must not depend on a tolerance. Multiples of one unit below 2^53 are added without any error,
and no selection weighs anything between two of them, so that a bound may be rounded down to the next one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

EXACT = 2.0**52
"""Whole numbers up to here, and their halves, are floating-point numbers without rounding."""

MAX_DIGITS = 9
"""Decimal places up to which weights are read as decimal fractions."""

SPARE_BITS = 8
"""Binary places that are kept for prices where the unit can be chosen freely."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A unit of `divisor / scale`; `exact` if every weight is a whole number of units."""

    scale: float
    divisor: float
    exact: bool

    def round_up(self, weights: Sequence[float]) -> NDArray[np.float64]:
        """Return the weights in units; one that is no whole number of units counts for the next one above."""
        scaled = np.array(weights, np.float64) * self.scale
        return (np.rint(scaled) if self.exact else np.ceil(scaled)) / self.divisor

    def round_down(self, weights: Iterable[float]) -> float:
        """Return the sum of the weights in units, where one that is no whole number counts for the next one below."""
        whole = round if self.exact else math.floor
        return float(sum(whole(weight * self.scale) for weight in weights)) / self.divisor

    def weight(self, units: float) -> float:
        """Convert a number of units to a weight."""
        return units * self.divisor / self.scale


def grid_of(weights: Sequence[float], terms: int) -> Grid:
    """Return the grid of weights above 0.

    Parameters
    ----------
    weights : sequence of float
        Above 0. Read as decimal fractions: 0.1 is a tenth.
    terms : int
        At least 1: the number of weights whose sum must stay exact.

    Returns
    -------
    Grid
        Not `exact` where weights differ by less than a sum can tell apart.

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
                return Grid(scale, divisor, exact=True)
            break
    return Grid(2.0 ** (math.floor(math.log2(limit / found[-1])) - SPARE_BITS), 1.0, exact=False)

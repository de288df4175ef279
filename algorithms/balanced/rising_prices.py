"""Prices that rise with use, so that successive cheapest trees spread over the whole network.

Garg, Koenemann: Faster and simpler algorithms for multicommodity flow and other fractional packing problems. FOCS 1998,
here with prices exponential in the load relative to the highest. A few trees generated this way nearly contain an
optimum, while the prices of a linear program over few trees carry little information about other trees.
"""

from __future__ import annotations

import numpy as np

from algorithms.balanced.network import Floats
from algorithms.balanced.resources import Resources, Use

STEEPNESS = 20.0
"""Exponent of the price ratio between a row at the highest load and an empty row of the same limit."""


class RisingPrices:
    """Loads of all rows, and the prices that follow from them."""

    def __init__(self, resources: Resources) -> None:
        self._limited = np.flatnonzero(np.isfinite(resources.limits))
        self._limits = resources.limits[self._limited]
        self._loads = np.zeros(len(resources.limits))

    def prices(self) -> Floats:
        """Return the price of every row."""
        prices = np.zeros(len(self._loads))
        loads = self._loads[self._limited] / self._limits
        max_load = loads.max(initial=0.0)
        prices[self._limited] = (
            np.exp(STEEPNESS * (loads / max_load - 1)) / self._limits if max_load else 1 / self._limits
        )
        return prices

    def add(self, use: Use) -> None:
        """Add one unit of rate over a tree with this use."""
        self._loads[use.rows] += use.amounts

"""Prices that rise with what trees use, so that one cheapest tree after the other spreads over the whole network.

Garg, Koenemann: Faster and simpler algorithms for multicommodity flow and other fractional packing problems. FOCS
1998, here with prices exponential in the load relative to the highest. A few trees found so nearly hold an optimum
among them, while prices of a linear program over few trees say little about trees that are not in it.
"""

from __future__ import annotations

import numpy as np

from algorithms.balanced.network import Floats
from algorithms.balanced.resources import Resources, Use

STEEPNESS = 20.0
"""How many times e a row at the highest load is dearer than an empty one of the same limit."""


class RisingPrices:
    """Loads of all rows, and the prices that follow from them."""

    def __init__(self, resources: Resources) -> None:
        self._limited = np.flatnonzero(np.isfinite(resources.limits))
        self._limits = resources.limits[self._limited]
        self._loads = np.zeros(len(resources.limits))

    def prices(self) -> Floats:
        """The price of every row."""
        prices = np.zeros(len(self._loads))
        loads = self._loads[self._limited] / self._limits
        highest = loads.max(initial=0.0)
        prices[self._limited] = (
            np.exp(STEEPNESS * (loads / highest - 1)) / self._limits if highest else 1 / self._limits
        )
        return prices

    def add(self, use: Use) -> None:
        """A tree is used for one more unit of rate."""
        self._loads[use.rows] += use.amounts

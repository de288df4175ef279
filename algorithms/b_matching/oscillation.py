"""Tabu search back and forth across the border of what fits, with prices that learn which ports are wanted.

A step adds or removes one option, the one that gains most: its weight less the price of every port and splitter size
that is full (to add it), or the price of those overdrawn less its weight (to remove it). What has just moved stays
for a few steps. Where no step gains, the overdrawn rows become dearer; if none is overdrawn, all rows become cheaper.
So the walk never settles, and rows that are fought for keep a high price. Walking through selections that do not fit
makes this good where groups are so wide, or so tightly packed, that hardly any exchange of a few of them fits.
The idea is strategic oscillation (Glover, 1977 on) with the row weights of local search for set packing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from algorithms.b_matching.budget import Spent
from algorithms.b_matching.options import Options
from algorithms.b_matching.relaxation import matrix

STEPS = 32
"""Steps between two looks at the budget."""

MOST_CELLS = 1_000_000
"""Rows times options up to which the walk is quick: it keeps every price at every option."""

TENURE = (3, 10)
"""Steps for which an option that moved stays, from and below."""

RISE, FALL = 0.3, 0.9
"""How much dearer a row becomes at most, in mean weights of a port, and what share of the prices is left."""

CHEAPEST = 1e-3
"""Price of a row that the relaxation thinks is free, in mean weights of a port."""

LARGEST = 1e8
"""Where the unit of the weights is set back to 1, long before floating point suffers."""


def oscillated(
    options: Options, prices: Sequence[float], start: Sequence[int], spent: Spent, rng: random.Random
) -> list[int]:
    """The heaviest selection met, never lighter than `start`.

    `prices` are those of the first rows of `relaxation.matrix`, to begin with; rows beyond them begin cheap.
    """
    walk = _Walk(options, prices, rng)
    for option in start:
        walk.flip(option)
    best, value = list(start), options.total(start)
    while spent() < 1:
        for _ in range(STEPS):
            walk.step()
            if walk.value > value and not walk.overdrawn:
                best = sorted(walk.selected)
                value = options.total(best)
    return best


class _Walk:
    """The options selected, whether they fit or not, and what every option would cost.

    Prices become cheaper by the weights becoming heavier (`_unit`), which is one array instead of a matrix.
    """

    def __init__(self, options: Options, prices: Sequence[float], rng: random.Random) -> None:
        rows = matrix(options)
        count = len(options)
        entries = list(zip(rows.rows.tolist(), rows.values.tolist(), strict=True))
        self._columns = [entries[first:last] for first, last in pairwise(rows.starts.tolist())]
        self._limits: list[float] = rows.limits.tolist()
        self._weights = options.weights
        self._worth = np.array(options.weights)
        self._unit, self._port = 1.0, float(self._worth.sum() / rows.values.sum())
        self._prices = [max(price, CHEAPEST * self._port) for price in prices]
        self._prices += [CHEAPEST * self._port] * (len(self._limits) - len(prices))
        charges = np.zeros((len(self._limits), count))
        owners = np.repeat(np.arange(count), np.diff(rows.starts))
        charges[rows.rows, owners] = rows.values * np.array(self._prices)[rows.rows]
        self._charges: list[NDArray[np.float64]] = list(charges)
        self._used = [0.0] * len(self._limits)
        # What adding an option costs (prices of its full rows) and what keeping it costs (of its overdrawn rows).
        self._entry, self._rent = np.zeros(count), np.zeros(count)
        self._taken = np.zeros(count, bool)
        self._stays_until = np.zeros(count)
        self._gain, self._loss = np.empty(count), np.empty(count)
        self._steps = 0
        self._draw = rng.random
        self.selected: set[int] = set()
        self.overdrawn: set[int] = set()
        self.value = 0.0

    def step(self) -> None:
        """Move the option that gains most; if that is a loss, change the prices too."""
        self._steps += 1
        gain = self._gain
        np.subtract(self._worth, self._entry, gain)
        np.subtract(self._rent, self._worth, self._loss)
        np.copyto(gain, self._loss, where=self._taken)
        np.copyto(gain, -np.inf, where=self._stays_until > self._steps)
        option = int(gain.argmax())
        if gain[option] <= 0:
            self._change_prices()
        self.flip(option)
        first, last = TENURE
        self._stays_until[option] = self._steps + first + int(self._draw() * (last - first))

    def flip(self, option: int) -> None:
        """Add the option, or remove it if it is selected."""
        taken = not self._taken[option]
        self._taken[option] = taken
        if taken:
            self.selected.add(option)
            self.value += self._weights[option]
        else:
            self.selected.remove(option)
            self.value -= self._weights[option]
        change = np.add if taken else np.subtract
        used, limits = self._used, self._limits
        for row, amount in self._columns[option]:
            before, limit = used[row], limits[row]
            after = used[row] = before + amount if taken else before - amount
            if (before < limit) != (after < limit):
                change(self._entry, self._charges[row], self._entry)
            if (before > limit) != (after > limit):
                change(self._rent, self._charges[row], self._rent)
                self.overdrawn ^= {row}

    def _change_prices(self) -> None:
        if not self.overdrawn:
            self._worth /= FALL
            self._unit /= FALL
            if self._unit > LARGEST:
                self._reset_unit()
        for row in sorted(self.overdrawn):
            more = self._port * self._unit * RISE * self._draw()
            self._prices[row] += more
            charge = self._charges[row]
            extra = charge * (more / (self._prices[row] - more))
            charge += extra
            self._entry += extra
            self._rent += extra

    def _reset_unit(self) -> None:
        unit, self._unit = self._unit, 1.0
        self._worth /= unit
        self._entry.fill(0.0)
        self._rent.fill(0.0)
        for row, used in enumerate(self._used):
            price = max(self._prices[row] / unit, CHEAPEST * self._port)
            charge = self._charges[row]
            charge *= price / self._prices[row]
            self._prices[row] = price
            if used >= self._limits[row]:
                self._entry += charge
            if used > self._limits[row]:
                self._rent += charge

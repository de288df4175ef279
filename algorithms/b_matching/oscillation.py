"""Tabu search across the border of feasibility, with prices that learn which ports are contested.

A step adds or removes the option with the largest gain: its weight less the price of every full port and splitter size
(to add it), or the price of the overdrawn ones less its weight (to remove it). An option that has just moved stays
fixed for a few steps. If no step gains, the prices of overdrawn rows rise; if no row is overdrawn, all prices fall. So
the walk never settles, and contested rows keep a high price. Visiting infeasible selections helps where groups are so
wide, or packed so tightly, that hardly any exchange of a few of them fits. The method is strategic oscillation (Glover,
1977 on) with the row weights of local search for set packing.
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
"""Steps between two calls of `spent`."""

MAX_CELLS = 1_000_000
"""Rows times options up to which the walk is fast: it stores every price at every option."""

TENURE = (3, 10)
"""Steps for which an option that has moved stays fixed: from and below."""

RISE, FALL = 0.3, 0.9
"""Maximum price rise of a row, in mean weights of a port, and the share of the prices that a fall leaves."""

CHEAPEST = 1e-3
"""Price of a row that the relaxation considers free, in mean weights of a port."""

LARGEST = 1e8
"""Value at which the unit of the weights is reset to 1, long before floating point loses precision."""


def oscillated(
    options: Options, prices: Sequence[float], start: Sequence[int], spent: Spent, rng: random.Random
) -> list[int]:
    """Return the heaviest selection found, never lighter than `start`.

    `prices` are the initial prices of port vertices and splitter sizes; further entries are ignored.
    """
    walk = _Walk(options, prices[: len(options.budgets) + len(options.supply)], rng)
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


def cells(options: Options) -> int:
    """Return the number of rows (port vertices and splitter sizes) times options."""
    return (len(options.budgets) + len(options.supply)) * len(options)


class _Walk:
    """The selected options, feasible or not, and the gain of adding or removing each option.

    `_adding` and `_removing` are the two halves of `_gains`. `_held` is minus infinity for moves that are not allowed:
    adding a selected option, removing one that is not selected, or moving one that has just moved. A fall of all prices
    is a rise of the weights (`_unit`), which changes one array instead of a matrix.
    """

    def __init__(self, options: Options, prices: Sequence[float], rng: random.Random) -> None:
        rows, count = matrix(options), len(options)
        entries = list(zip(rows.rows.tolist(), rows.values.tolist(), strict=True))
        self._columns = [entries[first:last] for first, last in pairwise(rows.starts.tolist())]
        self._limits: list[float] = rows.limits.tolist()
        self._used = [0.0] * len(self._limits)
        self._weights, self._worth = options.weights, np.array(options.weights, np.float64)
        self._unit, self._port = 1.0, float(self._worth.sum() / rows.values.sum())
        cheapest = CHEAPEST * self._port
        self._prices = [max(price, cheapest) for price in prices] + [cheapest] * (len(self._limits) - len(prices))
        charges = np.zeros((len(self._limits), count))
        owners = np.repeat(np.arange(count), np.diff(rows.starts))
        charges[rows.rows, owners] = rows.values * np.array(self._prices)[rows.rows]
        self._charges: list[NDArray[np.float64]] = list(charges)
        self._gains = np.concatenate((self._worth, -self._worth))
        self._adding, self._removing = self._gains[:count], self._gains[count:]
        self._held = np.concatenate((np.zeros(count), np.full(count, -np.inf)))
        self._movable = np.empty(2 * count)
        self._released: dict[int, list[int]] = {}
        self._steps, self._draw = 0, rng.random
        self.selected: set[int] = set()
        self.overdrawn: set[int] = set()
        self.value = 0.0

    def step(self) -> None:
        """Move the option with the largest gain; if that is a loss, change the prices too."""
        self._steps += 1
        for place in self._released.pop(self._steps, ()):
            self._held[place] = 0.0
        np.add(self._gains, self._held, self._movable)
        place = int(self._movable.argmax())
        gain = self._movable[place]
        if gain <= 0:
            self._change_prices()
        if gain == -np.inf:
            return
        count = len(self._weights)
        self.flip(place % count)
        back = place - count if place >= count else place + count
        first, last = TENURE
        self._held[back] = -np.inf
        self._released.setdefault(self._steps + first + int(self._draw() * (last - first)), []).append(back)

    def flip(self, option: int) -> None:
        """Add the option, or remove it if it is selected."""
        taken = option not in self.selected
        count = len(self._weights)
        if taken:
            self.selected.add(option)
            self.value += self._weights[option]
        else:
            self.selected.remove(option)
            self.value -= self._weights[option]
        self._held[option], self._held[option + count] = (-np.inf, 0.0) if taken else (0.0, -np.inf)
        dearer, cheaper = (np.subtract, np.add) if taken else (np.add, np.subtract)
        adding, removing, used, limits = self._adding, self._removing, self._used, self._limits
        for row, amount in self._columns[option]:
            before, limit = used[row], limits[row]
            after = used[row] = before + amount if taken else before - amount
            if (before < limit) != (after < limit):
                dearer(adding, self._charges[row], adding)
            if (before > limit) != (after > limit):
                cheaper(removing, self._charges[row], removing)
                self.overdrawn ^= {row}

    def _change_prices(self) -> None:
        if not self.overdrawn:
            self._unit /= FALL
            extra = self._worth * (1 / FALL - 1)
            self._worth += extra
            self._adding += extra
            self._removing -= extra
            if self._unit > LARGEST:
                self._reset_unit()
        for row in sorted(self.overdrawn):
            more = self._port * self._unit * RISE * self._draw()
            charge = self._charges[row]
            extra = charge * (more / self._prices[row])
            self._prices[row] += more
            charge += extra
            self._adding -= extra
            self._removing += extra

    def _reset_unit(self) -> None:
        unit, self._unit = self._unit, 1.0
        self._worth /= unit
        self._adding[:], self._removing[:] = self._worth, -self._worth
        for row, used in enumerate(self._used):
            price = max(self._prices[row] / unit, CHEAPEST * self._port)
            charge = self._charges[row]
            charge *= price / self._prices[row]
            self._prices[row] = price
            if used >= self._limits[row]:
                self._adding -= charge
            if used > self._limits[row]:
                self._removing += charge

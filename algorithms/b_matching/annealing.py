"""Simulated annealing over options, from hot to cold, several times if there is time.

A move adds one option and removes what stands in its way; it is accepted if the loss is no more than chance allows
at the temperature. Two things make it good at this problem. Options are not compared by weight but by weight less
part of the prices that the relaxation puts on their ports and splitters, so that a move which frees wanted racks
looks as good as it is. And only options that are not small beside the temperature are tried, so that the search
decides on wide groups first and comes to pairs of racks when those are settled (two tiers, without a border).
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from algorithms.b_matching.budget import Spent
from algorithms.b_matching.options import Options
from algorithms.b_matching.packing import Packing

TRIALS = 64
"""Moves tried between two looks at the budget."""

PROBE = 8
"""Looks at the budget from which the number of cycles is worked out."""

TRIALS_PER_OPTION = 1000
"""Moves tried in one cycle per option that counts at its mild temperature, time permitting."""

MILD_PART = 0.9
"""Part of a cycle in which it cools from hot to mild; in the rest from mild to cold."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cooling: temperatures in units of the typical score, `price_share` of the prices counted.

    Options of less weight than `smallest` temperatures are not tried.
    """

    hot: float
    mild: float
    cold: float
    price_share: float
    smallest: float = 0.3


NARROW = (Cycle(0.2, 0.05, 0.01, 0.6), Cycle(0.3, 0.08, 0.02, 0.6), Cycle(0.2, 0.05, 0.01, 0.8))
WIDE = (Cycle(0.4, 0.1, 0.05, 0.8), Cycle(0.4, 0.08, 0.03, 0.3, 1.0), Cycle(0.3, 0.05, 0.03, 0.6, 1.0))
"""The cycles, in turn: a wide group displaces several others, which takes more heat to undo."""

POLISH = Cycle(0.03, 0.003, 0.0003, 0.6)
"""The last cycle, from the best selection met: settles the pairs of racks around the wide groups."""

POLISH_FROM = 0.85
"""Share of the budget after which to polish, if there was time for several cycles."""

WIDE_FROM = 8.0
"""Mean number of racks, by weight, from which groups are wide."""


def annealed(
    options: Options, profits: Sequence[float], start: Sequence[int], spent: Spent, rng: random.Random
) -> list[int]:
    """The heaviest selection met, never lighter than `start`, which must not be empty.

    `profits` are the options' weights less the prices of all that they use (the weights themselves where there are
    no prices).
    """
    best = _Best(options, start)
    cycles = WIDE if _width(options, start) >= WIDE_FROM else NARROW
    planned = _cycles(_Search(options, profits, cycles[0], best, rng), spent)
    until = POLISH_FROM if planned > 1 else 1.0
    number = 0
    while (now := spent()) < until:
        search = _Search(options, profits, cycles[number % len(cycles)], best, rng)
        search.cool(spent, now, now + (until - now) / max(1, planned - number))
        number += 1
    return polished(options, profits, best.selected, spent, rng)


def polished(
    options: Options, profits: Sequence[float], start: Sequence[int], spent: Spent, rng: random.Random
) -> list[int]:
    """As `annealed`, but the wide groups of `start` are as good as settled: start from it, and not hot."""
    best = _Best(options, start)
    if (now := spent()) < 1:
        search = _Search(options, profits, POLISH, best, rng)
        search.resume()
        search.cool(spent, now, 1.0)
    return best.selected


def _width(options: Options, selected: Sequence[int]) -> float:
    """The racks that a unit of weight spans."""
    return sum(options.weights[j] * len(options.vertices[j]) for j in selected) / options.total(selected)


def _cycles(search: _Search, spent: Spent) -> int:
    """How many cycles the budget allows, judged by what the first few looks cost."""
    began = spent()
    for _ in range(PROBE):
        search.look(0.0)
        spent()
    now = spent()
    cost = (now - began) / (PROBE * TRIALS)
    return max(1, round((1 - now) / (cost * search.eligible(MILD_PART) * TRIALS_PER_OPTION))) if cost > 0 else 1


class _Best:
    """The heaviest selection met."""

    def __init__(self, options: Options, selected: Sequence[int]) -> None:
        self.selected = list(selected)
        self.value = sum(options.weights[j] for j in selected)

    def meet(self, packing: Packing) -> None:
        if packing.value > self.value:
            self.value = packing.value
            self.selected = packing.selected[:]


class _Search:
    """One cycle: a packing that starts empty, and the temperature that it is at."""

    def __init__(
        self, options: Options, profits: Sequence[float], cycle: Cycle, best: _Best, rng: random.Random
    ) -> None:
        share = cycle.price_share
        weights = options.weights
        self._scores = [weight - share * (weight - profit) for weight, profit in zip(weights, profits, strict=True)]
        self._heaviest_first = sorted(range(len(options)), key=lambda j: -weights[j])
        self._below = [-weights[j] for j in self._heaviest_first]
        self._packing = Packing(options, self._scores)
        self._cycle, self._best, self._rng = cycle, best, rng
        scores = [self._scores[j] for j in best.selected if self._scores[j] > 0]
        self._unit = sum(score * score for score in scores) / sum(scores) if scores else max(weights)

    def resume(self) -> None:
        """Go on from the best selection."""
        for option in self._best.selected:
            self._packing.add(option)

    def cool(self, spent: Spent, began: float, end: float) -> None:
        """Go from hot to cold while the budget goes from `began` to `end`, then take what still fits."""
        while (now := spent()) < end:
            self.look((now - began) / (end - began))
        for option in self._heaviest_first:
            if self._packing.fits(option):
                self._packing.add(option)
        self._best.meet(self._packing)

    def eligible(self, progress: float) -> int:
        """How many options are large enough to be tried at this progress."""
        return max(1, bisect_left(self._below, -self._temperature(progress) * self._cycle.smallest))

    def look(self, progress: float) -> None:
        """Try some moves at the temperature of this progress (0 to 1)."""
        temperature, eligible = self._temperature(progress), self.eligible(progress)
        packing, scores, order = self._packing, self._scores, self._heaviest_first
        rng, best = self._rng, self._best
        draw, log, holds, evictions = rng.random, math.log, packing.holds, packing.evictions
        for _ in range(TRIALS):
            option = order[int(draw() * eligible)]
            if holds(option):
                continue
            removed = evictions(option, scores[option] - temperature * log(1.0 - draw()), rng)
            if removed is None:
                continue
            for other in removed:
                packing.remove(other)
            packing.add(option)
            best.meet(packing)

    def _temperature(self, progress: float) -> float:
        cycle = self._cycle
        if progress < MILD_PART:
            return self._unit * cycle.hot * math.pow(cycle.mild / cycle.hot, progress / MILD_PART)
        return self._unit * cycle.mild * math.pow(cycle.cold / cycle.mild, (progress - MILD_PART) / (1 - MILD_PART))

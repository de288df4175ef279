"""Simulated annealing over options, repeated while the budget lasts.

A move adds one option and removes the options that conflict with it. The search accepts the move if the loss does not
exceed a random bound that depends on the temperature. Two measures suit this problem. Options are scored by weight less
part of the relaxation's prices for their ports and splitters, so that a move which frees contested racks scores as well
as it should. And only options that are large relative to the temperature are tried, so that the search decides on wide
groups first and on pairs of racks later.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from algorithms.b_matching.budget import Spent
from algorithms.b_matching.options import Options
from algorithms.b_matching.packing import OptionPacking

TRIALS = 64
"""Moves tried between two calls of `spent`."""

PROBE = 8
"""Calls of `spent` from which the number of cycles is estimated."""

TRIALS_PER_OPTION = 1000
"""Moves tried in one cycle per option eligible at its mild temperature, time permitting."""

MILD_PART = 0.9
"""Share of a cycle that cools from hot to mild; the rest cools from mild to cold."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cooling schedule: temperatures in units of the typical score, with `price_share` of the prices counted.

    Options that weigh less than `smallest` times the temperature are not tried.
    """

    hot: float
    mild: float
    cold: float
    price_share: float
    smallest: float = 0.3


NARROW = (Cycle(0.2, 0.05, 0.01, 0.6), Cycle(0.3, 0.08, 0.02, 0.6), Cycle(0.2, 0.05, 0.01, 0.8))
WIDE = (Cycle(0.4, 0.1, 0.05, 0.8), Cycle(0.4, 0.08, 0.03, 0.3, 1.0), Cycle(0.3, 0.05, 0.03, 0.6, 1.0))
"""The cycles, in rotation. A wide group displaces several others, which takes a higher temperature to undo."""

POLISH = Cycle(0.03, 0.003, 0.0003, 0.6)
"""The last cycle, which starts from the best selection found and settles the pairs of racks around the wide groups."""

POLISH_FROM = 0.85
"""Share of the budget after which the search polishes, if there was time for several cycles."""

WIDE_FROM = 8.0
"""Mean number of racks, by weight, from which groups count as wide."""


def annealed(
    options: Options, profits: Sequence[float], start: Sequence[int], spent: Spent, rng: random.Random
) -> list[int]:
    """Return the heaviest selection found, never lighter than `start`, which must not be empty.

    `profits` are the options' weights less the prices of the resources that they use (the weights themselves if there
    are no prices).
    """
    best = _Heaviest(options, start)
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
    """Return the heaviest selection found by one cool cycle from `start`, whose wide groups are considered settled."""
    best = _Heaviest(options, start)
    if (now := spent()) < 1:
        search = _Search(options, profits, POLISH, best, rng)
        search.resume()
        search.cool(spent, now, 1.0)
    return best.selected


def _width(options: Options, selected: Sequence[int]) -> float:
    """Return the number of racks per unit of weight."""
    return sum(options.weights[j] * len(options.vertices[j]) for j in selected) / options.total(selected)


def _cycles(search: _Search, spent: Spent) -> int:
    """Estimate the number of cycles that the budget allows from the cost of the first few calls of `look`."""
    began = spent()
    for _ in range(PROBE):
        search.look(0.0)
        spent()
    now = spent()
    cost = (now - began) / (PROBE * TRIALS)
    return max(1, round((1 - now) / (cost * search.eligible(MILD_PART) * TRIALS_PER_OPTION))) if cost > 0 else 1


class _Heaviest:
    """The heaviest selection found."""

    def __init__(self, options: Options, selected: Sequence[int]) -> None:
        self.selected = list(selected)
        self.value = sum(options.weights[j] for j in selected)

    def meet(self, packing: OptionPacking) -> None:
        if packing.value > self.value:
            self.value = packing.value
            self.selected = packing.selected[:]


class _Search:
    """One cycle: a packing that starts empty."""

    def __init__(
        self, options: Options, profits: Sequence[float], cycle: Cycle, best: _Heaviest, rng: random.Random
    ) -> None:
        share = cycle.price_share
        weights = options.weights
        self._scores = [weight - share * (weight - profit) for weight, profit in zip(weights, profits, strict=True)]
        self._heaviest_first = sorted(range(len(options)), key=lambda j: -weights[j])
        self._below = [-weights[j] for j in self._heaviest_first]
        self._packing = OptionPacking(options, self._scores)
        self._cycle, self._best, self._rng = cycle, best, rng
        scores = [self._scores[j] for j in best.selected if self._scores[j] > 0]
        self._unit = sum(score * score for score in scores) / sum(scores) if scores else max(weights)

    def resume(self) -> None:
        """Continue from the best selection."""
        for option in self._best.selected:
            self._packing.add(option)

    def cool(self, spent: Spent, began: float, end: float) -> None:
        """Cool from hot to cold while the budget goes from `began` to `end`, then add every option that still fits."""
        while (now := spent()) < end:
            self.look((now - began) / (end - began))
        for option in self._heaviest_first:
            if self._packing.fits(option):
                self._packing.add(option)
        self._best.meet(self._packing)

    def eligible(self, progress: float) -> int:
        """Return the number of options that are large enough to be tried at this progress."""
        return max(1, bisect_left(self._below, -self._temperature(progress) * self._cycle.smallest))

    def look(self, progress: float) -> None:
        """Try `TRIALS` moves at the temperature of this progress (0 to 1)."""
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

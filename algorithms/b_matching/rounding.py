"""Rounding of the relaxation: which options to take first, and which to exclude from a search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from algorithms.b_matching.options import Options
from algorithms.b_matching.packing import OptionPacking
from algorithms.b_matching.relaxation import Relaxed

SLACK = 1e-6
"""The solver's tolerance: maximum distance from a whole number."""

SHARES = 7.0
"""A search excludes options that alone would lose this many average shares of the gap."""


def rounded(options: Options, relaxed: Relaxed) -> list[int]:
    """Return the options that fit, by decreasing fraction, then profit, then weight."""
    # Rounded, because fractions that differ by the solver's tolerance are equal.
    fractions = np.round(relaxed.fractions, 6)
    order = np.lexsort((-np.array(options.weights), -np.array(relaxed.profits), -fractions))
    return packed(options, order.tolist())


def packed(options: Options, order: list[int]) -> list[int]:
    """Return the options that fit, in this order."""
    packing, ports = OptionPacking(options, ()), options.ports
    for option in order:
        # `fits` checks the ports too, but most options lack one, and a call for each takes as long as all the rest.
        if not packing.full & ports[option] and packing.fits(option):
            packing.add(option)
    return packing.selected


def core(options: Options, relaxed: Relaxed, selected: Sequence[int]) -> list[int]:
    """Return the options worth searching, given the best selection found.

    No better selection takes an option whose profit is below minus the gap. A better selection loses less than the gap
    over all its groups together, so an option that alone would lose several average shares is excluded too: this second
    rule is heuristic. With unequal weights, the number of groups is that of equal ones with the same spread (the square
    of the sum over the sum of the squares). Selected options are always kept.
    """
    weights = [options.weights[option] for option in selected]
    value = sum(weights)
    gap = relaxed.bound - value
    number = value * value / sum(weight * weight for weight in weights)
    max_loss = gap * min(1.0, SHARES / number)
    kept = set(selected)
    return [option for option, profit in enumerate(relaxed.profits) if profit >= -max_loss or option in kept]


def fractional(relaxed: Relaxed) -> list[int]:
    """Return the options whose fraction is neither 0 nor 1."""
    return [option for option, fraction in enumerate(relaxed.fractions) if SLACK < fraction < 1 - SLACK]


def open_options(relaxed: Relaxed, value: float) -> list[int]:
    """Return the options that a selection heavier than `value` may take: their profit is not below minus the gap."""
    return [option for option, profit in enumerate(relaxed.profits) if profit >= value - relaxed.bound]


def questions(options: Options, relaxed: Relaxed) -> float:
    """Return the effective number of undecided options; small ones count less.

    It is the number of equal weights with the same spread as the weights that depend on the fractions.
    """
    hanging = [
        options.weights[option] * min(relaxed.fractions[option], 1 - relaxed.fractions[option])
        for option in fractional(relaxed)
    ]
    return sum(hanging) ** 2 / sum(weight * weight for weight in hanging) if hanging else 0.0

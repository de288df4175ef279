"""From the relaxation to whole options: what to take first, and what can be left out of a search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from algorithms.b_matching.options import Options
from algorithms.b_matching.packing import Packing
from algorithms.b_matching.relaxation import Relaxed

SLACK = 1e-6
"""Distance from a whole number that is the solver's tolerance."""

SHARES = 7.0
"""Options that alone would lose this many average shares of the gap are left out of a search."""


def rounded(options: Options, relaxed: Relaxed) -> list[int]:
    """The options that fit, the largest fractions first, then those that the prices speak for."""
    # Rounded, because fractions that differ by the solver's tolerance are equal.
    fractions = np.round(relaxed.fractions, 6)
    order = np.lexsort((-np.array(options.weights), -np.array(relaxed.profits), -fractions))
    return packed(options, order.tolist())


def packed(options: Options, order: list[int]) -> list[int]:
    """The options that fit, in this order."""
    packing, ports = Packing(options, ()), options.ports
    for option in order:
        # `fits` asks for the ports too, but most options lack one, and a call for each takes as long as all the rest.
        if not packing.full & ports[option] and packing.fits(option):
            packing.add(option)
    return packing.selected


def core(options: Options, relaxed: Relaxed, selected: Sequence[int]) -> list[int]:
    """The options worth searching, given the best selection so far.

    No better selection takes an option whose profit is below minus the gap. A better one loses less than the gap
    over all its groups together, so an option that would lose several average shares alone is left out too: this
    second rule is a guess. With unequal weights "how many groups" is the number of equal ones that would be as
    spread out (the square of the sum over the sum of the squares). What is selected stays.
    """
    weights = [options.weights[option] for option in selected]
    value = sum(weights)
    gap = relaxed.bound - value
    number = value * value / sum(weight * weight for weight in weights)
    most = gap * min(1.0, SHARES / number)
    kept = set(selected)
    return [option for option, profit in enumerate(relaxed.profits) if profit >= -most or option in kept]


def fractional(relaxed: Relaxed) -> list[int]:
    """The options that are neither taken nor left out."""
    return [option for option, fraction in enumerate(relaxed.fractions) if SLACK < fraction < 1 - SLACK]


def open_options(relaxed: Relaxed, value: float) -> list[int]:
    """The options that a selection heavier than `value` may take: their profit is not below minus the gap."""
    return [option for option, profit in enumerate(relaxed.profits) if profit >= value - relaxed.bound]


def questions(options: Options, relaxed: Relaxed) -> float:
    """How many options are in question, small ones counting less.

    The number of equal weights as spread out as the weights that hang on the fractions.
    """
    hanging = [
        options.weights[option] * min(relaxed.fractions[option], 1 - relaxed.fractions[option])
        for option in fractional(relaxed)
    ]
    return sum(hanging) ** 2 / sum(weight * weight for weight in hanging) if hanging else 0.0

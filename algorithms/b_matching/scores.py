"""Greedy selections by several scores: weight / (racks^a + b x least splitters).

Weight / racks is the paper's and is never worse than 1/r_max of the optimum; weight / sqrt(racks) is never worse
than 1/sqrt(number of racks) (for one port a rack and enough splitters). The better of the two is the floor under
everything cleverer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import Group
from algorithms.b_matching.optimized import Selection, fill, total

Score = tuple[float, float]
"""(a, b) of the formula."""

FLOOR: tuple[Score, ...] = ((1.0, 0.0), (0.5, 0.0))
OTHERS: tuple[Score, ...] = ((0.75, 0.0), (0.0, 0.0), (1.0, 1.0), (1.0, 3.0), (0.5, 1.0))


def by_score(score: Score, groups: Sequence[Group], feasibility: Feasibility) -> Selection:
    """What the greedy takes in the order of `score`, ties in the order of `groups`.

    It takes O(n log n) for n groups, and a look at each of their racks and at the splitters.

    Parameters
    ----------
    score : Score
        The two exponents and charges of the formula above: (a, b).
    groups : Sequence[Group]
        Those of no weight are left out.
    feasibility : Feasibility
        What is free; it is not changed.

    Returns
    -------
    Selection
        The groups that are taken, in that order, each with its splitters.

    Examples
    --------
    >>> from algorithms.b_matching.group import shared_ports
    >>> groups = [
    ...     Group("wide", shared_ports(0, [1, 2, 3]), 4, 3, 900.0),
    ...     Group("pair", shared_ports(3, [4]), 2, 1, 500.0),
    ... ]
    >>> def taken(score):
    ...     free = Feasibility([1, 1, 1, 1, 1], {4: 1})
    ...     return [group.name for group, _ in by_score(score, groups, free)]
    >>> taken((1.0, 0.0)), taken((0.0, 0.0))
    (['pair'], ['wide'])
    """
    power, charge = score
    wanted = [group for group in groups if group.weight > 0]
    weights = np.array([group.weight for group in wanted])
    costs = np.array([group.racks for group in wanted], np.float64) ** power
    if charge:
        fan_out = max(2, *feasibility.pool)
        costs += charge * np.ceil((np.array([group.leaves for group in wanted]) - 1) / (fan_out - 1))
    order = np.argsort(-weights / costs, kind="stable")
    return fill([], map(wanted.__getitem__, order.tolist()), feasibility)


def best_of(scores: Sequence[Score], groups: Sequence[Group], feasibility: Feasibility) -> Selection:
    """The heaviest of the greedy selections."""
    return max((by_score(score, groups, feasibility) for score in scores), key=total)

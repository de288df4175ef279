"""Greedy selections by several scores: weight / (racks^a + b x minimum splitters).

Weight / racks is the paper's score and never worse than 1/r_max of the optimum; weight / sqrt(racks) is never worse
than 1/sqrt(number of racks) (for one port per rack and enough splitters). The better of the two is the lower bound for
all other algorithms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import CompetingGroup
from algorithms.b_matching.optimized import Selection, fill, total

Score = tuple[float, float]
"""(a, b) of the formula."""

FLOOR: tuple[Score, ...] = ((1.0, 0.0), (0.5, 0.0))
OTHERS: tuple[Score, ...] = ((0.75, 0.0), (0.0, 0.0), (1.0, 1.0), (1.0, 3.0), (0.5, 1.0))


def by_score(score: Score, groups: Sequence[CompetingGroup], feasibility: Feasibility) -> Selection:
    """Select greedily in the order of `score`; ties keep the order of `groups`.

    It takes O(n log n) for n groups, plus one test of each group's racks and of the splitters.

    Parameters
    ----------
    score : Score
        (a, b) of the formula above.
    groups : Sequence[Group]
        Groups without weight are left out.
    feasibility : Feasibility
        Free resources; not modified.

    Returns
    -------
    Selection
        The selected groups in that order, each with its splitters.

    Examples
    --------
    >>> from algorithms.b_matching.group import shared_ports
    >>> groups = [
    ...     CompetingGroup("wide", shared_ports(0, [1, 2, 3]), 4, 3, 900.0),
    ...     CompetingGroup("pair", shared_ports(3, [4]), 2, 1, 500.0),
    ... ]
    >>> def taken(score):
    ...     free = Feasibility([1, 1, 1, 1, 1], {4: 1})
    ...     return [group.name for group, _ in by_score(score, groups, free)]
    >>> taken((1.0, 0.0)), taken((0.0, 0.0))
    (['pair'], ['wide'])
    """
    power, charge = score
    candidates = [group for group in groups if group.weight > 0]
    weights = np.array([group.weight for group in candidates])
    costs = np.array([group.racks for group in candidates], np.float64) ** power
    if charge:
        fan_out = max(2, *feasibility.pool)
        costs += charge * np.ceil((np.array([group.leaves for group in candidates]) - 1) / (fan_out - 1))
    order = np.argsort(-weights / costs, kind="stable")
    return fill([], map(candidates.__getitem__, order.tolist()), feasibility)


def best_of(scores: Sequence[Score], groups: Sequence[CompetingGroup], feasibility: Feasibility) -> Selection:
    """Return the heaviest of the greedy selections."""
    return max((by_score(score, groups, feasibility) for score in scores), key=total)

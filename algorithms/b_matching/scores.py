"""Greedy selections by several scores: weight / (racks^a + b x least splitters).

Weight / racks is the paper's and is never worse than 1/r_max of the optimum; weight / sqrt(racks) is never worse
than 1/sqrt(number of racks) (for one port a rack and enough splitters). The better of the two is the floor under
everything cleverer.
"""

from __future__ import annotations

from collections.abc import Sequence

from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import Group
from algorithms.b_matching.optimised import Selection, fill, total

Score = tuple[float, float]
"""(a, b) of the formula."""

FLOOR: tuple[Score, ...] = ((1.0, 0.0), (0.5, 0.0))
OTHERS: tuple[Score, ...] = ((0.75, 0.0), (0.0, 0.0), (1.0, 1.0), (1.0, 3.0), (0.5, 1.0))


def by_score(score: Score, groups: Sequence[Group], feasibility: Feasibility) -> Selection:
    """What the greedy takes in the order of `score`, ties in the order of `groups`."""
    power, charge = score
    cost_of: dict[tuple[int, int], float] = {}
    largest = max(feasibility.pool, default=2)
    ranked = []
    for group in groups:
        size = (group.racks, group.leaves)
        if size not in cost_of:
            cost_of[size] = group.racks**power + charge * -(-(group.leaves - 1) // max(1, largest - 1))
        if group.weight > 0:
            ranked.append((-group.weight / cost_of[size], group))
    ranked.sort(key=lambda pair: pair[0])
    return fill([], (group for _, group in ranked), feasibility)


def best_of(scores: Sequence[Score], groups: Sequence[Group], feasibility: Feasibility) -> Selection:
    """The heaviest of the greedy selections."""
    return max((by_score(score, groups, feasibility) for score in scores), key=total)

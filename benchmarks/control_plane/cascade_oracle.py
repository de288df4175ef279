"""The cheapest passive splitter tree by an integer program in PuLP, as an oracle for the catalog."""

from __future__ import annotations

from collections.abc import Mapping

import pulp


def cheapest_price(
    budget: float, pass_loss: float, supply: Mapping[tuple[int, float, float], int], leaves: int
) -> float | None:
    """Return the minimum price of a passive tree, or None if no tree exists, by an integer program over losses.

    `supply` maps (fan-out, loss, price) to the number of splitters.
    """
    levels, waiting = set(), [0.0]
    while waiting:
        lost = waiting.pop()
        if lost not in levels and lost + pass_loss <= budget + 1e-6:
            levels.add(lost)
            waiting += [round(lost + pass_loss + loss, 6) for _, loss, _ in supply]
    if not levels:
        return None
    problem = pulp.LpProblem("cascade", pulp.LpMinimize)
    hung = {
        (kind, lost): problem.add_variable(f"x{n}_{int(lost * 1000)}", 0, count, cat="Integer")
        for n, (kind, count) in enumerate(supply.items())
        for lost in levels
    }
    ends = {lost: problem.add_variable(f"y{int(lost * 1000)}", 0, leaves, cat="Integer") for lost in levels}
    problem += pulp.lpSum(kind[2] * count for (kind, _), count in hung.items())
    for level in levels:
        opened = [
            kind[0] * count for (kind, lost), count in hung.items() if round(lost + pass_loss + kind[1], 6) == level
        ]
        used = [hung[kind, level] for kind in supply]
        problem += pulp.lpSum(used) + ends[level] <= pulp.lpSum(opened) + (level == 0)
    for kind, count in supply.items():
        problem += pulp.lpSum(hung[kind, lost] for lost in levels) <= count
    problem += pulp.lpSum(ends.values()) >= leaves
    problem.solve(pulp.HiGHS(msg=False, gapRel=0.0))
    return pulp.value(problem.objective) if problem.status == pulp.LpStatusOptimal else None

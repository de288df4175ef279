"""The anytime optimizer: the best allocation found within a budget of milliseconds, with a bound on the optimum.

The steps are a greedy floor, the linear relaxation and rounding. Until a proof ends the search, they are followed by
exact search among few wide groups, branch and bound if few weighty options are undecided, and local search for the rest
of the budget: tabu search across the border of feasibility, or annealing if the instance is too large for that or only
pairs of racks remain undecided. `benchmarks/control_plane/allocation_quality.py` measures the result.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from algorithms.b_matching.annealing import annealed, polished
from algorithms.b_matching.branching import branched
from algorithms.b_matching.budget import Spent, StepBudget
from algorithms.b_matching.conflicts import independent
from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import CompetingGroup
from algorithms.b_matching.optimized import OptimizedSelection, Selection, bounded, fill, total
from algorithms.b_matching.options import Options, options
from algorithms.b_matching.oscillation import MAX_CELLS, cells, oscillated
from algorithms.b_matching.relaxation import Relaxation, Relaxed, to_whole_units
from algorithms.b_matching.rounding import core, open_options, packed, questions, rounded
from algorithms.b_matching.scores import FLOOR, best_of

RELAX_UNTIL = 0.9
"""Share of the budget after which the relaxation is stopped and its current solution is rounded."""

MAX_QUESTIONS, MAX_MISSING = 24.0, 2.0
"""Maximum number of weighty undecided options, and maximum ratio to the gap, for which branch and bound is worth its
time.
"""

PAIR = 2
"""Number of ports of a unicast request."""

MAX_WIDE, WIDE_SHARE = 200, 0.15
"""Maximum number of wide options for exact search among them alone, and the share of the budget that it may take."""

BRANCH_UNTIL = 0.75
"""Share of the budget after which local search replaces branch and bound."""


def optimize(
    groups: Sequence[CompetingGroup], feasibility: Feasibility, spent: Spent, rng: random.Random
) -> OptimizedSelection:
    """Return the heaviest selection found while `spent()` is below 1; deterministic for equal `StepBudget` and `rng`.

    It is never lighter than the greedy selections by weight / racks and weight / sqrt(racks), whatever the budget.
    Every returned group was accepted by the `fit` of `feasibility`.

    Parameters
    ----------
    groups : sequence of Group
        The competing groups, in any order; all weights in the same unit.
    feasibility : Feasibility
        Free ports per vertex and splitters per size. Not modified.
    spent : callable
        Returns the share of the effort that is used up: time, or `budget.Steps`.
    rng : random.Random
        Breaks ties and draws the moves of the local searches.

    Returns
    -------
    Optimized
        Its bound holds for trees without a superfluous splitter, which covers all trees if they are chosen by count.

    Notes
    -----
    The problem is NP-hard, and only `spent` or a proof ends the search. Between two calls of `spent` lie one solution
    of the linear relaxation or some hundred steps of local search. The distance from the optimum is measured by
    `benchmarks/control_plane/allocation_quality.py`. The floor is that of Blast, section III-C.2.

    Examples
    --------
    >>> import random
    >>> from algorithms.b_matching.budget import StepBudget
    >>> from algorithms.b_matching.feasibility import Feasibility
    >>> from algorithms.b_matching.group import CompetingGroup, shared_ports
    >>> groups = [
    ...     CompetingGroup("wide", shared_ports(0, [1, 2, 3]), 4, 3, 900.0),
    ...     CompetingGroup("pair", shared_ports(3, [4]), 2, 1, 100.0),
    ... ]
    >>> free = Feasibility([1, 1, 1, 1, 1], {4: 1})
    >>> found = optimize(groups, free, StepBudget(100), random.Random(0))
    >>> [group.name for group, splitters in found.selection], found.value, found.bound
    (['wide'], 900.0, 900.0)
    """
    floor = best_of(FLOOR, groups, feasibility)
    choices = options(groups, feasibility)
    if not len(choices):
        return OptimizedSelection(floor, total(floor), total(floor))
    in_units, grid = to_whole_units(choices)
    found, bound = _searched(in_units, spent, rng)
    best = max(floor, _filled(choices, found, feasibility), key=total)
    return bounded(best, grid, bound) if choices.complete else OptimizedSelection(best, total(best), None)


def warm_up() -> None:
    """Load and start the solver once: the first solve of a process takes 0.2 s, the next ones milliseconds.

    Examples
    --------
    >>> warm_up()
    """
    optimize([CompetingGroup(0, 1, 2, 1, 1.0)], Feasibility([1], {}), StepBudget(1), random.Random(0))


def _searched(choices: Options, spent: Spent, rng: random.Random) -> tuple[list[int], float]:
    """Return the options found and a bound on all selections."""
    limit = RELAX_UNTIL
    relaxation = Relaxation(choices, lambda: spent() >= limit)
    relaxed = relaxation.solve()
    if relaxed is None:
        return _by_root(choices), choices.total(range(len(choices)))
    found, bound = rounded(choices, relaxed), relaxed.bound
    if not relaxed.optimal or _proven(choices, found, bound):
        return found, bound
    wide, settled = _wide_groups(choices, relaxation, spent)
    found = max(found, wide, key=choices.total)
    if settled and all(len(vertices) > PAIR for vertices in choices.vertices):
        return found, choices.total(found)
    if not settled and _worth_branching(choices, relaxed, found):
        limit = BRANCH_UNTIL
        for option in set(range(len(choices))).difference(open_options(relaxed, choices.total(found))):
            relaxation.fix(option, 0)
        found, bound = branched(choices, relaxation, relaxed, found, lambda: spent() < limit)
        if _proven(choices, found, bound):
            return found, bound
    found = max(found, _by_root(choices), key=choices.total)
    kept = core(choices, relaxed, found)
    place = {option: number for number, option in enumerate(kept)}
    few, start = choices.keep(kept), [place[option] for option in found]
    if not settled and cells(few) <= MAX_CELLS:
        better = oscillated(few, relaxed.prices, start, spent, rng)
    else:
        search = polished if settled else annealed
        better = search(few, [relaxed.profits[option] for option in kept], start, spent, rng)
    return [kept[option] for option in better], bound


def _wide_groups(choices: Options, relaxation: Relaxation, spent: Spent) -> tuple[list[int], bool]:
    """Return a selection around the best set of wide groups (more than two racks), and whether that set is proven best.

    Each wide group counts for its weight less the most that pairs of racks could earn on its ports without any wide
    group.
    """
    wide = [option for option, vertices in enumerate(choices.vertices) if len(vertices) > PAIR]
    if not 0 < len(wide) <= MAX_WIDE or any(budget > 1 for budget in choices.budgets):
        return [], False
    profits = choices.weights
    if len(wide) < len(choices):
        pairs = _with_fixed(relaxation, dict.fromkeys(wide, 0))
        if pairs is None or not pairs.optimal:
            return [], False
        profits = pairs.profits
    worthy = [option for option in wide if profits[option] > 0]
    few = replace(choices.keep(worthy), weights=[profits[option] for option in worthy])
    until = spent() + WIDE_SHARE
    places, settled = independent(few, [], lambda: spent() < until)
    taken = {worthy[place] for place in places}
    around = _with_fixed(relaxation, {option: int(option in taken) for option in wide})
    return (rounded(choices, around) if around else sorted(taken)), settled


def _with_fixed(relaxation: Relaxation, fixed: Mapping[int, int]) -> Relaxed | None:
    """Return the relaxation with these options taken (1) or left out (0)."""
    for option, value in fixed.items():
        relaxation.fix(option, value)
    relaxed = relaxation.solve()
    for option in fixed:
        relaxation.free(option)
    return relaxed


def _worth_branching(choices: Options, relaxed: Relaxed, found: Sequence[int]) -> bool:
    asked = questions(choices, relaxed)
    return asked <= MAX_QUESTIONS or asked * (1 - choices.total(found) / relaxed.bound) <= MAX_MISSING


def _proven(choices: Options, found: Sequence[int], bound: float) -> bool:
    return choices.total(found) >= bound


def _by_root(choices: Options) -> list[int]:
    """Return the options that fit, in the order of weight / sqrt(racks).

    Unlike a rounded relaxation, this selection is never far from the optimum.
    """

    def score(option: int) -> float:
        return choices.weights[option] / math.sqrt(choices.groups[choices.owners[option]].racks)

    return packed(choices, sorted(range(len(choices)), key=score, reverse=True))


def _filled(choices: Options, selected: Sequence[int], feasibility: Feasibility) -> Selection:
    """Return the options as groups and splitters, extended by every group that still fits, heaviest first."""
    chosen = [(choices.groups[choices.owners[option]], choices.pieces[option]) for option in selected]
    return fill(chosen, sorted(choices.groups, key=lambda group: -group.weight), feasibility)

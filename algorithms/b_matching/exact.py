"""The exact allocation as an integer program: the reference for the other algorithms.

It takes seconds, where they take milliseconds. One binary variable for each option (a group with a set of splitters);
the rows are the budgets of the port vertices, the supply of each splitter size, and at most one option of a group. PuLP
solves it with HiGHS, or with CBC if HiGHS is not installed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import pulp

from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import CompetingGroup
from algorithms.b_matching.optimized import OptimizedSelection, bounded, total
from algorithms.b_matching.options import Options, options
from algorithms.b_matching.relaxation import to_whole_units

ABSOLUTE_GAP = 0.5
"""Absolute gap at which the solver may stop: weights are whole numbers, so none lies between."""

ROUNDING = 1e-12
"""Relative error of the solver's arithmetic: the bound is raised by it, never lowered."""


class MatchingSolverError(Exception):
    """The solver reports that the program is infeasible or unbounded.

    This is a fault of the solver: the empty selection is always feasible, and the weights are finite.
    """


def exact(groups: Sequence[CompetingGroup], feasibility: Feasibility, seconds: float) -> OptimizedSelection:
    """Return the best selection found within `seconds`, proven optimal if `certified`.

    Parameters
    ----------
    groups : sequence of Group
        The competing groups, in any order; all weights in the same unit.
    feasibility : Feasibility
        Free ports per vertex and splitters per size. Not modified.
    seconds : float
        Wall-clock limit of the solver.

    Returns
    -------
    Optimized
        Without a bound if a group has `covers.MAX_COVERS` or more minimal sets of splitters, or if CBC stops at the
        limit. The selection is empty if the solver finds none in time.

    Raises
    ------
    MatchingSolverError
        If the solver reports that the program is infeasible or unbounded.

    Notes
    -----
    Hypergraph b-matching is NP-hard: the time is exponential in the worst case. The integer program of Blast, section
    III-C, with one binary variable per option.

    Examples
    --------
    >>> from algorithms.b_matching.feasibility import Feasibility
    >>> from algorithms.b_matching.group import CompetingGroup, shared_ports
    >>> groups = [
    ...     CompetingGroup("wide", shared_ports(0, [1, 2, 3]), 4, 3, 900.0),
    ...     CompetingGroup("pair", shared_ports(3, [4]), 2, 1, 100.0),
    ... ]
    >>> free = Feasibility([1, 1, 1, 1, 1], {4: 1})
    >>> best = exact(groups, free, 10.0)
    >>> [group.name for group, splitters in best.selection], best.value, best.certified
    (['wide'], 900.0, True)
    """
    choices = options(groups, feasibility)
    if not len(choices):
        return OptimizedSelection([], 0.0, 0.0)
    in_units, grid = to_whole_units(choices)
    program, taken = _program(in_units)
    gaps = {"gapRel": 0.0, "gapAbs": ABSOLUTE_GAP}
    solver = pulp.HiGHS(msg=False, threads=1, timeLimit=seconds, **gaps)
    if not solver.available():
        solver = pulp.PULP_CBC_CMD(msg=False, threads=1, timeLimit=seconds, **gaps)
    program.solve(solver)
    if program.status not in {pulp.LpStatusOptimal, pulp.LpStatusNotSolved}:
        raise MatchingSolverError(f"{solver.name} ended with {pulp.LpStatus[program.status]}")
    selected = [j for j, variable in enumerate(taken) if (variable.value() or 0.0) > 0.5]
    selection = [(groups[choices.owners[j]], choices.pieces[j]) for j in selected]
    bound = _bound(program)
    if bound is None or not choices.complete:
        return OptimizedSelection(selection, total(selection), None)
    return bounded(selection, grid, math.floor(bound * (1 + ROUNDING)))


def _program(choices: Options) -> tuple[pulp.LpProblem, list[pulp.LpVariable]]:
    program = pulp.LpProblem("allocation", pulp.LpMaximize)
    taken = [program.add_variable(f"x{j}", cat=pulp.LpBinary) for j in range(len(choices))]
    program += pulp.lpSum(choices.weights[j] * variable for j, variable in enumerate(taken))
    at_vertex, of_group, of_size = (defaultdict[int, list[object]](list) for _ in range(3))
    for j, variable in enumerate(taken):
        of_group[choices.owners[j]].append(variable)
        for vertex in choices.vertices[j]:
            at_vertex[vertex].append(variable)
        for size, used in enumerate(choices.uses[j]):
            if used:
                of_size[size].append(used * variable)
    for vertex, terms in at_vertex.items():
        program += pulp.lpSum(terms) <= choices.budgets[vertex]
    for terms in of_group.values():
        program += pulp.lpSum(terms) <= 1
    for size, terms in of_size.items():
        program += pulp.lpSum(terms) <= choices.supply[size]
    return program, taken


def _bound(program: pulp.LpProblem) -> float | None:
    """Return the bound that the solver has proven, or None if it reports none."""
    if isinstance(program.solver, pulp.HiGHS):
        # PuLP passes a maximization to HiGHS as the minimization of the negative.
        return -float(program.solverModel.getInfo().mip_dual_bound)
    return float(pulp.value(program.objective)) if program.sol_status == pulp.LpSolutionOptimal else None

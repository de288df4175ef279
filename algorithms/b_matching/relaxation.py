"""The linear relaxation of the allocation: an upper bound, prices of ports and splitters, and fractions to round.

Maximise the weight of the options taken in fractions, subject to the budget of every port vertex, the supply of
every splitter size, and at most one option of a group. Where groups lie on neighbouring racks the rows are
(circular) intervals and the fractions come out (nearly) whole; elsewhere the prices still say which racks are worth
fighting for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import highspy
import numpy as np

from algorithms.b_matching.options import Options

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4
"""HiGHS's numbers for them."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The optimum of the relaxation.

    `bound` is no less than the weight of any allocation, `fractions[j]` how much of option j it takes and
    `profits[j]` the option's weight less the price of all that it uses. Any allocation that takes an option j with a
    negative profit weighs at most `bound + profits[j]`.
    """

    bound: float
    fractions: list[float]
    profits: list[float]


class Relaxation:
    """The relaxation in the solver. Options can be fixed and freed between solutions, which then cost a few pivots."""

    def __init__(self, options: Options, stop: Callable[[], bool]) -> None:
        """`stop` is asked once a pivot."""
        self._solver = _programme(options)
        self._solver.cbSimplexInterrupt.subscribe(lambda event: event.interrupt() if stop() else None)
        # Serving nobody is feasible, so the primal simplex starts without a first phase.
        self._solver.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX)

    def solve(self) -> Relaxed | None:
        """The optimum; None if `stop` said so first, or if nothing is feasible any more."""
        solver = self._solver
        solver.run()
        # The last basis stays dual feasible whatever is fixed.
        solver.setOptionValue("simplex_strategy", DUAL_SIMPLEX)
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = solver.getSolution()
        return Relaxed(solver.getInfo().objective_function_value, list(solution.col_value), list(solution.col_dual))

    def fix(self, option: int, fraction: float) -> None:
        """Take the option to this fraction from now on."""
        self._solver.changeColBounds(option, fraction, fraction)

    def free(self, option: int) -> None:
        """Undo `fix`."""
        self._solver.changeColBounds(option, 0.0, 1.0)


def _programme(options: Options) -> highspy.Highs:
    matrix, count = _matrix(options), len(options)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    # There is nothing here that presolving would pay for.
    solver.setOptionValue("presolve", "off")
    solver.passModel(
        count,
        len(matrix.limits),
        len(matrix.rows),
        int(highspy.MatrixFormat.kColwise),
        int(highspy.ObjSense.kMaximize),
        0.0,
        np.array(options.weights, np.float64),
        np.zeros(count),
        np.ones(count),
        np.full(len(matrix.limits), -np.inf),
        np.array(matrix.limits, np.float64),
        np.array(matrix.starts, np.int32),
        np.array(matrix.rows, np.int32),
        np.array(matrix.values, np.float64),
        np.zeros(count, np.int32),
    )
    return solver


@dataclass(frozen=True, slots=True)
class _Matrix:
    """Column by column: rows and values from `starts[j]` on; `limits` of the rows."""

    starts: list[int]
    rows: list[int]
    values: list[float]
    limits: list[int]


def _matrix(options: Options) -> _Matrix:
    limits = [*options.budgets, *options.supply]
    once = _several(options)
    row_of_group: dict[int, int] = {}
    starts, rows, values = [0], list[int](), list[float]()
    for j, owner in enumerate(options.owners):
        found = options.vertices[j]
        rows += found
        values += [1.0] * len(found)
        for size, used in enumerate(options.uses[j], len(options.budgets)):
            if used:
                rows.append(size)
                values.append(used)
        if owner in once:
            if owner not in row_of_group:
                row_of_group[owner] = len(limits)
                limits.append(1)
            rows.append(row_of_group[owner])
            values.append(1.0)
        starts.append(len(rows))
    return _Matrix(starts, rows, values, limits)


def _several(options: Options) -> set[int]:
    """Groups with several options that no single port keeps apart."""
    seen: set[int] = set()
    found: set[int] = set()
    for j, owner in enumerate(options.owners):
        if owner in seen and all(options.budgets[v] > 1 for v in options.vertices[j]):
            found.add(owner)
        seen.add(owner)
    return found

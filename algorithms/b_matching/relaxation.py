"""The linear relaxation of the allocation: an upper bound, prices of ports and splitters, and fractions to round.

Maximise the weight of the options taken in fractions, subject to the budget of every port vertex, the supply of
every splitter size, and at most one option of a group. Where groups lie on neighbouring racks the rows are
(circular) intervals and the fractions come out (nearly) whole; elsewhere the prices still say which racks are worth
fighting for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import highspy
import numpy as np
from numpy.typing import NDArray

from algorithms.b_matching.options import Options

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4
"""HiGHS's numbers for them."""

FEASIBLE = int(highspy.SolutionStatus.kSolutionStatusFeasible)


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The optimum of the relaxation, or where the solver had got to when it was stopped.

    `bound` is no less than the weight of any allocation, `fractions[j]` how much of option j is taken, `prices` are
    those of the rows of `matrix`, and `profits[j]` is the option's weight less the price of all that it uses. Any
    allocation that takes an option j with a negative profit weighs at most `bound + profits[j]`. Only if `optimal` do
    the fractions weigh as much as the bound.
    """

    bound: float
    fractions: list[float]
    profits: list[float]
    prices: list[float]
    optimal: bool


class Relaxation:
    """The relaxation in the solver. Options can be fixed and freed between solutions, which then cost a few pivots."""

    def __init__(self, options: Options, stop: Callable[[], bool]) -> None:
        """`stop` is asked once a pivot."""
        self._weights, self._matrix = np.array(options.weights, np.float64), matrix(options)
        self._solver = _programme(self._weights, self._matrix)
        self._solver.cbSimplexInterrupt.subscribe(lambda event: event.interrupt() if stop() else None)
        # Serving nobody is feasible, so the primal simplex starts without a first phase.
        self._solver.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX)

    def solve(self) -> Relaxed | None:
        """The optimum, or what is known when `stop` says so; None if no solution is: nothing is feasible any more,
        or `stop` came in a repair after `fix` (from then on nothing feasible is met on the way).
        """
        solver = self._solver
        solver.run()
        # The last basis stays dual feasible whatever is fixed.
        solver.setOptionValue("simplex_strategy", DUAL_SIMPLEX)
        solution, found = solver.getSolution(), solver.getInfo()
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            profits, prices = list(solution.col_dual), list(solution.row_dual)
            return Relaxed(found.objective_function_value, list(solution.col_value), profits, prices, True)
        if found.primal_solution_status != FEASIBLE:
            return None
        prices = [max(0.0, price) for price in solution.row_dual]
        bound, profits = self._priced(np.array(prices))
        return Relaxed(bound, list(solution.col_value), profits, prices, False)

    def fix(self, option: int, fraction: float) -> None:
        """Take the option to this fraction from now on."""
        self._solver.changeColBounds(option, fraction, fraction)

    def free(self, option: int) -> None:
        """Undo `fix`."""
        self._solver.changeColBounds(option, 0.0, 1.0)

    def _priced(self, prices: NDArray[np.float64]) -> tuple[float, list[float]]:
        """The bound and the profits at any prices of the rows (weak duality), whatever is fixed."""
        matrix = self._matrix
        columns = np.repeat(np.arange(len(self._weights)), np.diff(matrix.starts))
        costs = np.bincount(columns, prices[matrix.rows] * matrix.values, len(self._weights))
        profits = self._weights - costs
        return float(prices @ matrix.limits + np.maximum(0.0, profits).sum()), profits.tolist()


def _programme(weights: NDArray[np.float64], matrix: Matrix) -> highspy.Highs:
    count = len(weights)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    # There is nothing here that presolving would pay for.
    solver.setOptionValue("presolve", "off")
    # Nor that scaling would: coefficients are ones and small counts.
    solver.setOptionValue("simplex_scale_strategy", 0)
    solver.passModel(
        count,
        len(matrix.limits),
        len(matrix.rows),
        int(highspy.MatrixFormat.kColwise),
        int(highspy.ObjSense.kMaximize),
        0.0,
        weights,
        np.zeros(count),
        np.ones(count),
        np.full(len(matrix.limits), -np.inf),
        matrix.limits,
        matrix.starts,
        matrix.rows,
        matrix.values,
        np.zeros(count, np.int32),
    )
    return solver


@dataclass(frozen=True, slots=True)
class Matrix:
    """The constraints column by column: rows and values from `starts[j]` on; `limits` of the rows."""

    starts: NDArray[np.int32]
    rows: NDArray[np.int32]
    values: NDArray[np.float64]
    limits: NDArray[np.float64]


def matrix(options: Options) -> Matrix:
    """What limits the options: each vertex, then each size of splitters, then the groups that have several options
    and no single port to keep them to one.
    """
    once = {owner: number for number, owner in enumerate(sorted(_several(options)))}
    size, group = len(options.budgets), len(options.budgets) + len(options.supply)
    used = [(j, size + s, count) for j, uses in enumerate(options.uses) for s, count in enumerate(uses) if count]
    single = [(j, group + once[owner], 1) for j, owner in enumerate(options.owners) if owner in once] if once else []
    others = np.array([*used, *single], np.int32).reshape(-1, 3)
    degrees = np.fromiter(map(len, options.vertices), np.int32, len(options))
    ports = np.fromiter(chain.from_iterable(options.vertices), np.int32)
    columns = np.concatenate((np.repeat(np.arange(len(options), dtype=np.int32), degrees), others[:, 0]))
    order = np.argsort(columns, kind="stable")
    return Matrix(
        np.searchsorted(columns[order], np.arange(len(options) + 1)).astype(np.int32),
        np.concatenate((ports, others[:, 1]))[order],
        np.concatenate((np.ones(len(ports)), others[:, 2].astype(np.float64)))[order],
        np.array([*options.budgets, *options.supply, *(1 for _ in once)], np.float64),
    )


def _several(options: Options) -> set[int]:
    """Groups with several options that no single port keeps apart."""
    seen: set[int] = set()
    found: set[int] = set()
    for j, owner in enumerate(options.owners):
        if owner in seen and all(options.budgets[v] > 1 for v in options.vertices[j]):
            found.add(owner)
        seen.add(owner)
    return found

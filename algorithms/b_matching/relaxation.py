"""The linear relaxation of the allocation: an upper bound, prices of ports and splitters, and fractions to round.

Maximize the weight of fractionally taken options, subject to the budget of every port vertex, the supply of every
splitter size, and at most one option per group. If groups lie on neighboring racks, the rows are (circular) intervals
and the fractions are (nearly) whole; otherwise the prices still indicate which racks are contested.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain

import highspy
import numpy as np
from numpy.typing import NDArray

from algorithms.b_matching.grid import EXACT, WeightGrid, grid_of
from algorithms.b_matching.options import Options

SOLVER_BITS = 10
"""Binary exponent of the heaviest weight in the solver, whose tolerances are made for such numbers."""

PRICE_BITS = 20
"""Binary places of a price, if sums leave room: prices are mostly halves, and the solver's error is smaller."""

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4
"""HiGHS's numbers of the simplex strategies and of a feasible status."""

FEASIBLE = int(highspy.SolutionStatus.kSolutionStatusFeasible)


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The optimum of the relaxation, or the solver's state when it was stopped.

    `bound` is a whole number and no less than the weight of any allocation, `fractions[j]` is the share of option j
    that is taken, `prices` are those of the rows of `matrix`, and `profits[j]` is the option's weight less the price of
    the resources that it uses. Any allocation that takes an option j with a negative profit weighs at most `bound +
    profits[j]`: this is computed without rounding, whatever the solver's tolerances. Only if `optimal` do the fractions
    weigh as much as the prices (within those tolerances).
    """

    bound: float
    fractions: list[float]
    profits: list[float]
    prices: list[float]
    optimal: bool


class Relaxation:
    """The relaxation in the solver. Options can be fixed and freed between solutions, which then cost a few pivots.

    Parameters
    ----------
    options : Options
        At least one, with the weights of `to_whole_units`.
    stop : callable
        Called once per pivot, without arguments; the solver stops when it returns True.

    Raises
    ------
    ValueError
        If a weight is not a whole number.
    """

    def __init__(self, options: Options, stop: Callable[[], bool]) -> None:
        self._weights, self._matrix = np.array(options.weights, np.float64), matrix(options)
        heaviest = float(self._weights.max())
        if (self._weights != np.rint(self._weights)).any():
            raise ValueError("the weights of a relaxation are whole numbers, see `to_whole_units`")
        # The solver's tolerances are absolute. A power of two changes no digit.
        self._scale = 2.0 ** (SOLVER_BITS - math.ceil(math.log2(heaviest)))
        room = EXACT / (heaviest * (float(self._matrix.limits.sum()) + len(self._weights)))
        self._price_step = 2.0 ** -min(PRICE_BITS, max(0, math.floor(math.log2(room))))
        self._fixed: dict[int, int] = {}
        self._columns = np.repeat(np.arange(len(self._weights)), np.diff(self._matrix.starts))
        self._solver = _program(self._weights * self._scale, self._matrix)
        self._solver.cbSimplexInterrupt.subscribe(lambda event: event.interrupt() if stop() else None)
        # The empty selection is feasible, so the primal simplex starts without a first phase.
        self._solver.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX)

    def solve(self) -> Relaxed | None:
        """Return the optimum, or the current state if `stop` returns True.

        Returns
        -------
        Relaxed or None
            None if there is no solution: the problem is infeasible, or `stop` interrupted the dual simplex after `fix`,
            which passes through no feasible solution.
        """
        solver = self._solver
        solver.run()
        # The last basis stays dual feasible whatever is fixed.
        solver.setOptionValue("simplex_strategy", DUAL_SIMPLEX)
        solution = solver.getSolution()
        optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        if not optimal and solver.getInfo().primal_solution_status != FEASIBLE:
            return None
        prices = np.maximum(0.0, solution.row_dual) / self._scale
        # No row is worth more than the heaviest option, and any prices give a bound.
        prices = np.minimum(np.rint(prices / self._price_step) * self._price_step, self._weights.max())
        bound, profits = self._priced(prices)
        return Relaxed(bound, list(solution.col_value), profits.tolist(), prices.tolist(), optimal)

    def fix(self, option: int, taken: int) -> None:
        """Take the option, or leave it out, from now on.

        Parameters
        ----------
        option : int
            Number of the option.
        taken : int
            1 takes it, 0 leaves it out.
        """
        self._fixed[option] = taken
        self._solver.changeColBounds(option, taken, taken)

    def free(self, option: int) -> None:
        """Undo `fix`.

        Parameters
        ----------
        option : int
            Number of an option that is fixed.
        """
        del self._fixed[option]
        self._solver.changeColBounds(option, 0.0, 1.0)

    @property
    def feasible(self) -> bool:
        """True if the options that are fixed to 1 fit together."""
        taken = np.zeros(len(self._weights))
        taken[[option for option, value in self._fixed.items() if value]] = 1.0
        matrix = self._matrix
        used = np.bincount(matrix.rows, taken[self._columns] * matrix.values, len(matrix.limits))
        return bool((used <= matrix.limits).all())

    def _priced(self, prices: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the bound and the profits for any prices of the rows (weak duality)."""
        matrix = self._matrix
        costs = np.bincount(self._columns, prices[matrix.rows] * matrix.values, len(self._weights))
        profits = self._weights - costs
        earned = np.maximum(0.0, profits)
        if self._fixed:
            options = list(self._fixed)
            earned[options] = profits[options] * list(self._fixed.values())
        # The weight of every allocation is a whole number.
        return math.floor(float(prices @ matrix.limits + earned.sum())), profits


def to_whole_units(options: Options) -> tuple[Options, WeightGrid]:
    """Return the options with their weights in whole units, rounded up if necessary, and the grid.

    Parameters
    ----------
    options : Options
        At least one.

    Returns
    -------
    options, grid
        `grid.weight` converts a bound in units to a weight.

    Examples
    --------
    >>> from algorithms.b_matching.group import CompetingGroup
    >>> groups = (CompetingGroup("a", 1, 1, 1, 0.5), CompetingGroup("b", 2, 2, 1, 0.75))
    >>> uses, vertices = [(), ()], [[0], [1]]
    >>> options = Options(groups, [0, 1], [(), ()], uses, [1, 2], vertices, [0.5, 0.75], [1, 1], (), (), True)
    >>> to_whole_units(options)[0].weights
    [2.0, 3.0]
    """
    terms = sum(options.budgets) + sum(options.supply) + 2 * len(options)
    grid = grid_of(options.weights, terms)
    return replace(options, weights=grid.round_up(options.weights).tolist()), grid


def _program(weights: NDArray[np.float64], matrix: Matrix) -> highspy.Highs:
    count = len(weights)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    # Presolving costs more than it saves here.
    solver.setOptionValue("presolve", "off")
    # Coefficients are ones and small counts, so scaling is useless.
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
    """Return the constraint matrix of the options.

    The rows are each vertex, each splitter size, then each group that has several options and no single port that
    limits it to one of them.
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
    """Return the groups with several options that share no single port."""
    seen: set[int] = set()
    found: set[int] = set()
    for j, owner in enumerate(options.owners):
        if owner in seen and all(options.budgets[v] > 1 for v in options.vertices[j]):
            found.add(owner)
        seen.add(owner)
    return found

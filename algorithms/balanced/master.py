"""The best rates for given trees: a linear program that grows by the trees that are generated.

Maximize the sum of the rates, no row of `resources` used beyond its limit (section 3.1 of the paper, its Figure 3). The
prices of the rows identify trees that improve the plan: those whose arcs cost less than 1 together. Any prices, divided
by the cost of the cheapest tree at them, bound the rate of every plan (weak duality).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice

import highspy
import numpy as np

from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import MulticastPlan, Tree, kept_within
from algorithms.balanced.resources import Use, resources

PRIMAL_SIMPLEX = 4
"""HiGHS's number of the primal simplex."""

FINEST = 1e-10
"""The smallest tolerance that HiGHS accepts."""

NO_RATE = 1e-10
"""Share of the total rate below which the rate of a tree is the solver's rounding error."""


class TreeSolverError(RuntimeError):
    """A fault of this package: the solver failed on a program that has an optimum."""


class Master:
    """The program in the solver; it has only the rows that some tree uses."""

    def __init__(self, network: Network) -> None:
        self.resources = resources(network)
        self._uses: dict[Tree, Use] = {}
        self._rows: list[int] = []
        self._place_of = np.full(len(self.resources.limits), -1)
        self._amounts = np.zeros(0)
        self._solver = new_solver()
        # A solution stays feasible when trees are added.
        self._solver.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX)

    @property
    def rate(self) -> float:
        """The sum of the rates of the last solution, in the network's unit."""
        return float(self._amounts.sum()) * self.resources.unit

    def add(self, trees: Iterable[Tree]) -> int:
        """Add trees for the next solution; return how many of them are new."""
        before = len(self._uses)
        for tree in trees:
            if tree not in self._uses:
                self._uses[tree] = self.resources.use(tree)
        return len(self._uses) - before

    def _enter(self, uses: Sequence[Use]) -> None:
        """Add the columns of the trees with these uses to the solver."""
        self._add_rows(np.unique(np.concatenate([use.rows for use in uses])).tolist())
        count, ends = len(uses), np.cumsum([0, *(len(use.rows) for use in uses)])
        self._solver.addCols(
            count,
            np.ones(count),
            np.zeros(count),
            np.full(count, np.inf),
            int(ends[-1]),
            ends[:-1].astype(np.int32),
            np.concatenate([self._place_of[use.rows] for use in uses]).astype(np.int32),
            np.concatenate([use.amounts for use in uses]),
        )

    def _add_rows(self, used: Iterable[int]) -> None:
        fresh = [row for row in used if self._place_of[row] < 0]
        count = len(fresh)
        self._place_of[fresh] = range(len(self._rows), len(self._rows) + count)
        self._rows += fresh
        none = np.zeros(0, np.int32)
        lower, upper = np.full(count, -np.inf), self.resources.limits[fresh]
        self._solver.addRows(count, lower, upper, 0, np.zeros(count, np.int32), none, none.astype(np.float64))

    def solve(self) -> Floats:
        """Find the best rates for all trees that were added.

        Returns
        -------
        array of float
            The price of every row.

        Raises
        ------
        TreeSolverError
            If the solver ends without an optimum.
        """
        if fresh := list(islice(self._uses.values(), len(self._amounts), None)):
            self._enter(fresh)
        self._solver.run()
        status = self._solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise TreeSolverError(f"the solver ended with {self._solver.modelStatusToString(status)}")
        solution = self._solver.getSolution()
        self._amounts = np.maximum(0.0, solution.col_value)
        prices = np.zeros(len(self.resources.limits))
        prices[self._rows] = np.maximum(0.0, solution.row_dual)
        return prices

    def bound(self, prices: Floats, cheapest: float) -> float:
        """Return an upper bound of the rate of any plan, in the network's unit.

        It holds if no tree costs less than `cheapest` at these prices of the rows.
        """
        paid = prices > 0
        worth = float(prices[paid] @ self.resources.limits[paid])
        return worth / cheapest * self.resources.unit if cheapest > 0 else math.inf

    def plan(self) -> MulticastPlan:
        """Return the used trees, the fastest first, at rates that respect every limit."""
        # Trees added after the last solution have no rate yet.
        used = [
            (amount * self.resources.unit, tree)
            for tree, amount in zip(self._uses, self._amounts.tolist(), strict=False)
            if amount > NO_RATE * self._amounts.sum()
        ]
        used.sort(key=lambda item: -item[0])
        found = MulticastPlan(tuple(tree for _, tree in used), tuple(rate for rate, _ in used))
        return kept_within(self.resources.network, found)


def new_solver() -> highspy.Highs:
    """Return a silent solver that maximizes, with the tightest tolerances."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    # Presolve would prevent a warm start from the last basis, which needs a few steps only.
    solver.setOptionValue("presolve", "off")
    solver.setOptionValue("primal_feasibility_tolerance", FINEST)
    solver.setOptionValue("dual_feasibility_tolerance", FINEST)
    solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
    return solver

"""Max-min fair rates of flows that come and go."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from blast_sim.base.fair_solver import SOLVER, Solver
from blast_sim.fair.demands import Demands, check_links, checked_capacities
from blast_sim.fair.flow_table import FlowTable
from blast_sim.fair.paths import Numbers, Paths, Places
from blast_sim.fair.solvers import refilling


class FairShares:
    """The fair shares of these links. Asking for rates after a change finds again what the change can concern.

    Filling is a history of rising levels (rate / weight): a flow that goes leaves all below its own level as it was,
    one that comes all below the lowest level at which one of its links fills. Levels from there on are found again.
    """

    def __init__(self, capacities: ArrayLike, *, solver: Solver = SOLVER) -> None:
        """Create an idle network. Raises ValueError."""
        self._room = checked_capacities(capacities)
        self._table = FlowTable()
        self._refilling = refilling(solver, self._room, self._table)
        self._bound = np.inf
        self._new: list[Places] = []

    def __len__(self) -> int:
        return len(self._table)

    def add(
        self,
        paths: Paths,
        *,
        multiplicity: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        rate_caps: ArrayLike | None = None,
    ) -> Places:
        """Add flows (see `fair_rates`); return their ids, which may be ids of removed flows. Raises ValueError."""
        return self.add_demands(paths, Demands.of(len(paths), multiplicity, weights, rate_caps))

    def add_demands(self, paths: Paths, demands: Demands) -> Places:
        """Add flows with these demands; return their ids as `add` does."""
        check_links(paths, len(self._room))
        ids = self._table.add(paths, demands)
        self._new.append(ids)
        return ids

    def remove(self, ids: ArrayLike) -> None:
        """Remove flows. Raises KeyError for an unknown one."""
        removed = np.asarray(ids, np.int64)
        self._table.check(removed)
        self._bound = min(self._bound, self._refilling.removing(removed))
        self._table.remove(removed)

    def rates(self, ids: ArrayLike) -> Numbers:
        """Return the rate of each of these flows, which must be present."""
        if self._new or self._bound < np.inf:
            self._solve()
        chosen = np.asarray(ids, np.int64)
        return self._table.columns.levels[chosen] * self._table.weights[chosen]

    def _solve(self) -> None:
        new = np.concatenate([np.zeros(0, np.int64), *self._new])
        self._refilling.solve(self._bound, new[self._table.columns.alive[new]])
        self._bound = np.inf
        self._new = []

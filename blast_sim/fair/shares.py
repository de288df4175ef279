"""Max-min fair rates of flows that come and go."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from blast_sim.fair.compiling import SOLVER, Solver
from blast_sim.fair.flow_table import FlowTable
from blast_sim.fair.paths import Numbers, Paths, Places
from blast_sim.fair.rates import Demands, check_links, checked_capacities, filling


class FairShares:
    """The fair shares of these links, solved again when rates are asked for after a change."""

    def __init__(self, capacities: ArrayLike, *, solver: Solver = SOLVER) -> None:
        """An idle network. Raises ValueError."""
        self._room = checked_capacities(capacities)
        self._fill = filling(solver)
        self._table = FlowTable()
        self._changed = False

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
        """The ids of new flows (see `fair_rates`); an id is free for others after its removal. Raises ValueError."""
        check_links(paths, len(self._room))
        self._changed = True
        return self._table.add(paths, Demands.of(len(paths), multiplicity, weights, rate_caps))

    def remove(self, ids: ArrayLike) -> None:
        """Forget flows. Raises KeyError when one is not there."""
        self._changed = True
        self._table.remove(np.asarray(ids, np.int64))

    def rates(self, ids: ArrayLike) -> Numbers:
        """The rate of each of these flows, which must be there."""
        if self._changed:
            self._solve()
        chosen = np.asarray(ids, np.int64)
        return self._table.levels[chosen] * self._table.weights[chosen]

    def _solve(self) -> None:
        table = self._table
        table.compact()
        ids = table.ids
        table.levels[ids] = self._fill(
            self._room, table.paths(ids), table.weights[ids], table.multiplicity[ids], table.caps[ids]
        )
        self._changed = False

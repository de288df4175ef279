"""The compiled solver behind `fair_rates` and `FairShares`."""

from __future__ import annotations

import numpy as np

from blast_sim.fair import changes
from blast_sim.fair.demands import Demands
from blast_sim.fair.flow_table import Columns, FlowTable
from blast_sim.fair.members import Members, append, gather
from blast_sim.fair.paths import Numbers, Paths, Places
from blast_sim.fair.sweep import Work, refill

MIN_LATE = 4096
MAX_SOLVES = 64
"""Solves after which the residual capacities of links are summed again: rounding would reach a billionth of a small
rate.
"""


def fill(room: Numbers, paths: Paths, demands: Demands) -> Numbers:
    """Return the level of every flow."""
    flows = Columns.of(paths, demands)
    work = Work.of(room, len(paths), int(np.isfinite(demands.ceilings).sum()))
    work.chosen[:] = np.arange(len(paths))
    refill(flows, gather(flows, flows.alive, len(room), 0), work, len(paths))
    return flows.levels


class NumbaRefilling:
    """Levels of the flows of a table, found again from the lowest level that a change concerns."""

    def __init__(self, room: Numbers, table: FlowTable) -> None:
        self._room = room
        self._table = table
        self._late = self._dead = self._solves = 0
        self._members, self._work = self._built()

    def removing(self, ids: Places) -> float:
        """Prepare the removal of these flows; return the lowest level that it affects."""
        self._dead += int(self._table.columns.lengths[ids].sum())
        return changes.give_back(self._table.columns, self._work, ids)

    def solve(self, bound: float, new: Places) -> None:
        """Recompute the levels at and above `bound`, and the levels that new flows affect."""
        table = self._table
        uses = int(table.columns.lengths[new].sum())
        full = self._late + uses > len(self._members.late)
        stale = self._dead * 2 > len(self._members.block) + self._late
        self._solves += 1
        if full or stale or self._solves > MAX_SOLVES:
            self._members, self._work = self._built()
        else:
            self._late = append(self._members, table.columns, new, self._late)
        if len(self._work.chosen) < len(table.columns.starts):
            self._work = self._work.resized(*(len(table.columns.starts),) * 2)
        bound = min(bound, self._min_level(new))
        chosen = changes.choose(table.columns, self._work, table.ids, bound)
        refill(table.columns, self._members, self._work, chosen)

    def _min_level(self, new: Places) -> float:
        if len(new) * 2 > len(self._table):
            # Most flows are new: to search for unchanged levels would cost more than to recompute them.
            return 0.0
        return changes.min_filled_level(self._table.columns, self._members, self._work, self._room, new)

    def _built(self) -> tuple[Members, Work]:
        """Return a new index of the present flows, and the capacity that they leave on the links."""
        table = self._table
        table.recycle()
        flows, present = table.columns, table.present
        self._late = self._dead = self._solves = 0
        late = max(MIN_LATE, int(flows.lengths[present].sum()) // 4)
        work = Work.of(self._room, len(flows.starts), len(flows.starts))
        changes.take(flows, work, present)
        return gather(flows, flows.alive, len(self._room), late), work

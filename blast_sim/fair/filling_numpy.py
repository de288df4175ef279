"""Max-min fair shares by progressive filling, a round of numpy at a time.

The level of a link is what it has left, divided by the weights of its flows that have no rate yet; a flow can get no
more than its weight times the lowest level of its links. Filling link after link in order of their levels is the
textbook (Bertsekas and Gallager, Data Networks, section 6.5.2); here every round fills all links at once at which no
flow is held lower elsewhere, which gives the same rates (levels only rise) in few rounds.
"""

from __future__ import annotations

import numpy as np

from blast_sim.fair.demands import Demands
from blast_sim.fair.flow_table import FlowTable
from blast_sim.fair.paths import Links, Numbers, Paths, Places

ROUNDING = 1e-12
"""Links whose levels differ by rounding alone fill at the same time."""
STEPS = 4
"""Few suffice; a link whose level is still too low is looked at again."""


def fill(room: Numbers, paths: Paths, demands: Demands) -> Numbers:
    """Return the level of every flow."""
    return filled(room, paths, demands.shares, demands.ceilings)


def filled(room: Numbers, paths: Paths, shares: Numbers, ceilings: Numbers) -> Numbers:
    """Return the levels of flows with these shares per unit of level, up to their ceilings."""
    links = len(room)
    room = room.copy()
    levels = ceilings.copy()
    flows = np.flatnonzero(paths.lengths)
    active = paths.take(flows)
    shares = shares[flows]
    while len(flows):
        level, minima = _levels(active, room, shares, levels[flows])
        # A link is filled when it is the lowest of all of its flows.
        below = np.full(links, np.inf)
        _lower(below, active, minima)
        filled = np.where(below >= level, level, np.inf)
        done = (levels[flows] <= minima) | (np.minimum.reduceat(filled[active.links], active.offsets[:-1]) <= minima)
        levels[flows[done]] = minima[done]
        room -= _loads(active.take(done), (shares * minima)[done], links)
        kept = ~done
        flows, shares, active = flows[kept], shares[kept], active.take(kept)
    return levels


def _levels(active: Paths, room: Numbers, shares: Numbers, caps: Numbers) -> tuple[Numbers, Numbers]:
    """Return the level of every link (infinite where no flow is left), and the lowest one on each flow's path.

    The lowest level of a flow is also bounded by its cap.
    """
    claimed = _loads(active, shares, len(room))
    level = np.full(len(room), np.inf)
    np.divide(np.maximum(room, 0.0), claimed, out=level, where=claimed > 0)
    return level, np.minimum(np.minimum.reduceat(level[active.links], active.offsets[:-1]), caps)


def _lower(below: Numbers, active: Paths, minima: Numbers) -> None:
    np.minimum.at(below, active.links, np.repeat(minima, active.lengths))


def _loads(paths: Paths, amounts: Numbers, links: int) -> Numbers:
    """Return the load of these flows on every link."""
    loads: Numbers = np.bincount(paths.links, np.repeat(amounts, paths.lengths), links).astype(np.float64, copy=False)
    return loads


class NumpyRefilling:
    """Levels of the flows of a table, recomputed from the lowest level that a change affects."""

    def __init__(self, room: Numbers, table: FlowTable) -> None:
        self._room = room
        self._table = table

    def removing(self, ids: Places) -> float:
        """Prepare the removal of these flows; return the lowest level that it affects."""
        return float(self._table.columns.levels[ids].min(initial=np.inf))

    def solve(self, bound: float, new: Places) -> None:
        """Recompute the levels at and above `bound`, and the levels that new flows affect."""
        table = self._table
        table.recycle()
        flows = table.columns
        present = table.present
        bound = min(bound, self._min_level(present, new))
        again = flows.levels[present] >= bound * (1 - ROUNDING)
        kept, chosen = present[~again], present[again]
        room = self._room - _loads(table.paths(kept), flows.shares[kept] * flows.levels[kept], len(self._room))
        flows.levels[chosen] = filled(room, table.paths(chosen), flows.shares[chosen], flows.ceilings[chosen])

    def _min_level(self, present: Places, new: Places) -> float:
        """Return a level below which no link of the new flows fills."""
        if not len(new):
            return np.inf
        if len(new) * 2 > len(present):
            # Most flows are new: to look for what stays would cost more than to find it again.
            return 0.0
        changed = np.unique(self._table.paths(new).links).astype(np.int64)
        paths, flows = self._table.paths(present), self._table.columns
        shares, levels = flows.shares[present], flows.levels[present]
        owners = np.repeat(np.arange(len(present)), paths.lengths)
        on_changed = np.zeros(len(self._room), np.bool_)
        on_changed[changed] = True
        uses = on_changed[paths.links]
        owners, links = owners[uses], paths.links[uses]
        return self._filled_at(changed, links, shares[owners], levels[owners])

    def _filled_at(self, changed: Places, links: Links, shares: Numbers, levels: Numbers) -> float:
        """Return the lowest level at which a changed link fills, approached from below in `STEPS` steps.

        A link fills where the sum over its flows of share x min(level, own level) reaches its room.
        """
        level = np.zeros(len(self._room))
        for _ in range(STEPS):
            under = levels < level[links]
            below = np.bincount(links[under], (shares * levels)[under], len(level))
            above = np.bincount(links[~under], shares[~under], len(level))
            level[changed] = (self._room - below)[changed] / above[changed]
        return float(level[changed].min(initial=np.inf))

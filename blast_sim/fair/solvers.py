"""The two solvers: the same rates, in numpy or compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from blast_sim.fair import filling_numpy
from blast_sim.fair.compiling import Solver
from blast_sim.fair.demands import Demands
from blast_sim.fair.flow_table import FlowTable
from blast_sim.fair.paths import Numbers, Paths, Places


class Refilling(Protocol):
    """What follows the flows of a table."""

    def removing(self, ids: Places) -> float:
        """These flows are about to go. The lowest level that this concerns."""

    def solve(self, bound: float, new: Places) -> None:
        """Find the levels at and above `bound` again, and those that new flows concern."""


def filling(solver: Solver) -> Callable[[Numbers, Paths, Demands], Numbers]:
    """What finds the levels (rate / weight) of flows that are all there, from the room of the links."""
    if solver == "numpy":
        return filling_numpy.fill
    from blast_sim.fair import filling_numba

    return filling_numba.fill


def refilling(solver: Solver, room: Numbers, table: FlowTable) -> Refilling:
    """What finds the levels of the flows of this table again when some come or go."""
    if solver == "numpy":
        return filling_numpy.Refilling(room, table)
    from blast_sim.fair import filling_numba

    return filling_numba.Refilling(room, table)

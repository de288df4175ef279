"""The two solvers: the same rates, in numpy or compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from blast_sim.base.fair_solver import Solver
from blast_sim.fair import filling_numpy
from blast_sim.fair.demands import Demands
from blast_sim.fair.flow_table import FlowTable
from blast_sim.fair.paths import Numbers, Paths, Places


class Refilling(Protocol):
    """The interface of an incremental solver for a table of flows."""

    def removing(self, ids: Places) -> float:
        """Prepare the removal of these flows; return the lowest level that it affects."""

    def solve(self, bound: float, new: Places) -> None:
        """Recompute the levels at and above `bound`, and the levels that new flows affect."""


def filling(solver: Solver) -> Callable[[Numbers, Paths, Demands], Numbers]:
    """Return a function that computes the levels (rate / weight) of a fixed set of flows."""
    if solver == "numpy":
        return filling_numpy.fill
    from blast_sim.fair import filling_numba

    return filling_numba.fill


def refilling(solver: Solver, room: Numbers, table: FlowTable) -> Refilling:
    """Return an incremental solver for the levels of the flows of this table."""
    if solver == "numpy":
        return filling_numpy.NumpyRefilling(room, table)
    from blast_sim.fair import filling_numba

    return filling_numba.NumbaRefilling(room, table)

"""An upper bound for multicast to some hosts: what enters any set of hosts in which a receiver is.

Rates of paths are chosen so that as much as possible enters every such set, within all limits; no plan of trees is
faster. The sets are found as they are violated, by maximum flows from the root to each receiver, so that every step's
value is a bound already. With every host a receiver it is the optimum itself (Edmonds: Edge-disjoint branchings, 1973).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import highspy
import numpy as np

from algorithms.balanced.master import SolverFault, new_solver
from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import NOBODY
from algorithms.balanced.resources import resources

MISSING = 1e-7
"""Share of the rate that may be missing at a set before it becomes a row: what the solver's tolerance leaves."""

Residual = defaultdict[int, defaultdict[int, float]]
"""What more can go from a vertex to another."""


def cut_bound(network: Network) -> float:
    """No plan to the receivers is faster than this.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.

    Returns
    -------
    float
        In the network's unit; the optimum itself where every host receives.

    Raises
    ------
    SolverFault
        The linear program failed.

    Notes
    -----
    One linear program and a maximum flow for each receiver, as often as there are violated cuts. Edmonds,
    Edge-disjoint branchings, 1973.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> round(cut_bound(network), 6)
    10.0
    """
    program = CutProgram(network)
    while not program.finished:
        program.tighten()
    return program.bound


class CutProgram:
    """The program over the sets found so far: `bound` falls with each that is added, until it is `finished`."""

    def __init__(self, network: Network) -> None:
        self._network, self._unit = network, resources(network).unit
        self._starts, self._ends = np.nonzero(network.widths)
        self._solver = new_solver()
        most = network.size**3
        widths = np.minimum(network.widths[self._starts, self._ends] / self._unit, most)
        # The last column is the rate itself.
        for width in (*widths.tolist(), float(most)):
            self._solver.addVar(0.0, width)
        self._rate = len(widths)
        self._solver.changeColCost(self._rate, 1.0)
        for limits, hosts in ((network.out, self._starts), (network.into, self._ends)):
            for host in np.flatnonzero(limits < np.inf).tolist():
                self._add(np.flatnonzero(hosts == host), float(limits[host]) / self._unit)
        self._add_sets([{network.root}, *(set(range(network.size)) - {host} for host in network.receivers)])
        self.bound = math.inf
        self.finished = False

    def tighten(self) -> None:
        """Solve, and add the sets that too little enters. Raises SolverFault."""
        self._solver.run()
        status = self._solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverFault(f"the solver ended with {self._solver.modelStatusToString(status)}")
        flows = np.array(self._solver.getSolution().col_value)
        self.bound = float(flows[self._rate]) * self._unit
        violated = self._violated(flows)
        self.finished = not violated
        self._add_sets(violated)

    def _violated(self, flows: Floats) -> list[set[int]]:
        """Sets that hold the root, lack a receiver, and let out less than the rate."""
        wanted = float(flows[self._rate])
        carrying = flows[:-1] > 0
        arcs = list(
            zip(self._starts[carrying].tolist(), self._ends[carrying].tolist(), flows[:-1][carrying], strict=True)
        )
        found: list[set[int]] = []
        for receiver in self._network.receivers:
            for cut in _min_cuts(arcs, self._network.root, receiver, wanted):
                if cut not in found:
                    found.append(cut)
        return found

    def _add_sets(self, cuts: Iterable[set[int]]) -> None:
        for cut in cuts:
            inside = np.zeros(self._network.size, bool)
            inside[list(cut)] = True
            leaving = np.flatnonzero(inside[self._starts] & ~inside[self._ends])
            columns = np.append(leaving, self._rate).astype(np.int32)
            factors = np.append(-np.ones(len(leaving)), 1.0)
            self._solver.addRow(-np.inf, 0.0, len(columns), columns, factors)

    def _add(self, columns: np.ndarray[tuple[int], np.dtype[np.intp]], limit: float) -> None:
        self._solver.addRow(-np.inf, limit, len(columns), columns.astype(np.int32), np.ones(len(columns)))


def _nothing() -> Residual:
    return defaultdict(lambda: defaultdict(float))


def _min_cuts(arcs: Iterable[tuple[int, int, float]], root: int, sink: int, wanted: float) -> list[set[int]]:
    """Of the least cuts the one nearest to the root and the one nearest to the sink; none if `wanted` gets across.

    Each as the side of the root. Edmonds, Karp: Theoretical improvements in algorithmic efficiency for network flow
    problems. 1972.
    """
    left = _nothing()
    for start, end, capacity in arcs:
        left[start][end] += capacity
    flow, least = 0.0, MISSING * wanted
    while flow < wanted - least:
        before = _searched(left, root, least / 100, sink)
        if sink not in before:
            back = _nothing()
            for start, ends in left.items():
                for end, capacity in ends.items():
                    back[end][start] = capacity
            everybody = set(left) | set(back)
            return [set(before), everybody - set(_searched(back, sink, least / 100))]
        way = [sink]
        while way[-1] != root:
            way.append(before[way[-1]])
        steps = list(zip(way[1:], way, strict=False))
        amount = min(left[start][end] for start, end in steps)
        for start, end in steps:
            left[start][end] -= amount
            left[end][start] += amount
        flow += amount
    return []


def _searched(left: Residual, start: int, least: float, sink: int = NOBODY) -> dict[int, int]:
    """What a breadth-first search reaches over more than `least`, each with what it was reached from.

    It ends as soon as it reaches the sink.
    """
    before = {start: start}
    waiting = [start]
    for vertex in waiting:
        for end, capacity in left[vertex].items():
            if capacity > least and end not in before:
                before[end] = vertex
                if end == sink:
                    return before
                waiting.append(end)
    return before

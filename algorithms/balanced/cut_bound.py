"""An upper bound for multicast to some hosts: the rate into any set of hosts that contains a receiver.

A linear program chooses rates of paths so that as much as possible enters every such set, within all limits; no plan of
trees is faster. Violated sets are found by maximum flows from the root to each receiver, so that the value after every
step is a bound. If every host is a receiver, it is the optimum itself (Edmonds: Edge-disjoint branchings, 1973).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import highspy
import numpy as np

from algorithms.balanced.master import TreeSolverError, new_solver
from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import NO_HOST
from algorithms.balanced.resources import resources

MISSING = 1e-7
"""Share of the rate that may be missing at a set before it becomes a row: the solver's tolerance."""

Residual = defaultdict[int, defaultdict[int, float]]
"""Residual capacity from one vertex to another."""


def cut_bound(network: Network) -> float:
    """Return an upper bound of the rate of any plan to the receivers.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.

    Returns
    -------
    float
        In the network's unit; the optimum itself if every host receives.

    Raises
    ------
    TreeSolverError
        If the linear program fails.

    Notes
    -----
    One linear program and a maximum flow for each receiver, repeated while there are violated cuts. Edmonds,
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
    """The program over the sets found: `bound` falls with each added set, until it is `finished`."""

    def __init__(self, network: Network) -> None:
        self._network, self._unit = network, resources(network).unit
        self._starts, self._ends = np.nonzero(network.widths)
        self._solver = new_solver()
        max_width = network.size**3
        widths = np.minimum(network.widths[self._starts, self._ends] / self._unit, max_width)
        # The last column is the rate itself.
        for width in (*widths.tolist(), float(max_width)):
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
        """Solve the program, and add the violated sets.

        Raises
        ------
        TreeSolverError
            If the linear program fails.
        """
        self._solver.run()
        status = self._solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise TreeSolverError(f"the solver ended with {self._solver.modelStatusToString(status)}")
        flows = np.array(self._solver.getSolution().col_value)
        self.bound = float(flows[self._rate]) * self._unit
        violated = self._violated(flows)
        self.finished = not violated
        self._add_sets(violated)

    def _violated(self, flows: Floats) -> list[set[int]]:
        """Return sets that contain the root, lack a receiver, and let out less than the rate."""
        rate = float(flows[self._rate])
        carrying = flows[:-1] > 0
        arcs = list(
            zip(self._starts[carrying].tolist(), self._ends[carrying].tolist(), flows[:-1][carrying], strict=True)
        )
        found: list[set[int]] = []
        for receiver in self._network.receivers:
            for cut in _min_cuts(arcs, self._network.root, receiver, rate):
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


def _min_cuts(arcs: Iterable[tuple[int, int, float]], root: int, sink: int, rate: float) -> list[set[int]]:
    """Return the minimum cuts nearest to the root and nearest to the sink; none if a flow of `rate` exists.

    Each cut is the set on the root's side. Edmonds, Karp: Theoretical improvements in algorithmic efficiency for
    network flow problems. 1972.
    """
    left = _nothing()
    for start, end, capacity in arcs:
        left[start][end] += capacity
    flow, threshold = 0.0, MISSING * rate
    while flow < rate - threshold:
        before = _searched(left, root, threshold / 100, sink)
        if sink not in before:
            back = _nothing()
            for start, ends in left.items():
                for end, capacity in ends.items():
                    back[end][start] = capacity
            vertices = set(left) | set(back)
            return [set(before), vertices - set(_searched(back, sink, threshold / 100))]
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


def _searched(left: Residual, start: int, threshold: float, sink: int = NO_HOST) -> dict[int, int]:
    """Return the predecessor of each vertex that a breadth-first search reaches over capacities above `threshold`.

    The search ends as soon as it reaches the sink.
    """
    before = {start: start}
    waiting = [start]
    for vertex in waiting:
        for end, capacity in left[vertex].items():
            if capacity > threshold and end not in before:
                before[end] = vertex
                if end == sink:
                    return before
                waiting.append(end)
    return before

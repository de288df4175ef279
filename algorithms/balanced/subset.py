"""Multicast to some of the hosts, the others passing on where that helps: column generation and a certificate.

The cheapest tree to a subset is a Steiner tree, and NP-hard, so that trees come from a heuristic and the proof comes
from somewhere else: no plan is faster than `cut_bound` says, and rate / bound says how good the plan is for certain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from algorithms.balanced.column_generation import ColumnGeneration
from algorithms.balanced.cut_bound import CutProgram
from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import Plan, Tree
from algorithms.balanced.steiner import improved, steiner_tree

GAP = 5e-4
"""Share of the bound within which no better plan is looked for: the rest can take as long again."""

GAIN = 1e-6
"""Share of the rate that counts as a gain."""

PATIENCE = 8
"""Rounds without a gain after which none is expected."""

TRIES = 3
"""Trees at the prices of each solution, all but one with costs changed at random."""

SPREAD = 0.3
"""How much of its cost chance adds to an arc, at most."""


def subset(network: Network, stop: Callable[[], bool] = lambda: False) -> Plan:
    """A plan to the receivers alone, with its bound.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
        Hosts that are neither root nor receiver may pass on.
    stop : callable, optional
        Ends the search, when it says True, with what is found by then.

    Returns
    -------
    Plan
        Rate / bound says how good it is for certain.

    Raises
    ------
    SolverFault
        The linear program failed.

    Notes
    -----
    A Steiner tree (heuristic, for the best one is NP-hard) and a linear program for each tree that is added; the
    bound is `cut_bound`.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 4.0), ("a", "relay", 6.0), ("relay", "b", 6.0)]
    >>> plan = subset(NamedNetwork(["a", "b", "relay"], "a", links, receivers=["b"]).numbered())
    >>> round(plan.rate, 6), round(plan.bound, 6)
    (10.0, 10.0)
    """
    search = SubsetSearch(network)
    search.improve()
    while not search.finished and not stop():
        search.improve()
    return search.plan()


class SubsetSearch:
    """The search, step by step: `rate` rises and `bound` falls until they meet, or neither moves any more."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._generation = ColumnGeneration(network, self._cheapest)
        self._cuts = CutProgram(network)
        self._rng = np.random.default_rng(0)
        self._barren = 0

    @property
    def rate(self) -> float:
        """The rate of the best plan found so far."""
        return self._generation.master.rate

    @property
    def bound(self) -> float:
        """No plan is faster than this."""
        return self._cuts.bound

    @property
    def finished(self) -> bool:
        """Whether the plan is within `GAP` of the bound, or nothing better is to be expected."""
        return self._closed or (self._cuts.finished and self._barren >= PATIENCE)

    @property
    def _closed(self) -> bool:
        return self.rate >= self.bound * (1 - GAP)

    def improve(self) -> None:
        """Make more trees, and look for sets that bound them more tightly. Raises SolverFault."""
        if self._barren < PATIENCE:
            self._make_trees()
        if not self._closed and not self._cuts.finished:
            self._cuts.tighten()

    def _make_trees(self) -> None:
        before = self.rate
        master = self._generation.master
        costs = master.resources.arc_costs(self._generation.improve())
        self._barren = 0 if self.rate > before * (1 + GAIN) else self._barren + 1
        changed = (costs * (1 + SPREAD * self._rng.random(costs.shape)) for _ in range(TRIES - 1))
        master.add(self._improved(each) for each in [costs, *changed])

    def plan(self) -> Plan:
        """The best plan found so far."""
        plan = self._generation.master.plan()
        return replace(plan, bound=max(self.bound, plan.rate))

    def _improved(self, costs: Floats) -> Tree:
        return improved(costs, self._network.root, self._network.receivers, self._cheapest(costs))

    def _cheapest(self, costs: Floats) -> Tree:
        return steiner_tree(costs, self._network.root, self._network.receivers)

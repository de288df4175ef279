"""Multicast to some of the hosts, forwarded by others where that helps: column generation and a certificate.

The cheapest tree to a subset is a Steiner tree, which is NP-hard. So trees come from a heuristic, and `cut_bound`
proves an upper bound: rate / bound is a guaranteed quality of the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from algorithms.balanced.column_generation import ColumnGeneration
from algorithms.balanced.cut_bound import CutProgram
from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import MulticastPlan, Tree
from algorithms.balanced.steiner import improved, steiner_tree

GAP = 5e-4
"""Share of the bound within which the search ends: the rest can take as long again."""

GAIN = 1e-6
"""Share of the rate that counts as a gain."""

MAX_BARREN_ROUNDS = 8
"""Rounds without a gain after which the search ends."""

TRIES = 3
"""Trees at the prices of each solution, all but one with randomly changed costs."""

SPREAD = 0.3
"""Maximum share of its cost by which an arc is raised at random."""


def subset(network: Network, stop: Callable[[], bool] = lambda: False) -> MulticastPlan:
    """Return a plan to the receivers alone, with its bound.

    Parameters
    ----------
    network : Network
        Rates (n x n) and capacities (n) of n hosts in any one unit. Hosts that are neither root nor receiver may
        forward.
    stop : callable, optional
        Ends the search with the current result when it returns True.

    Returns
    -------
    Plan
        Rate / bound is its guaranteed quality.

    Raises
    ------
    SolverError
        If the linear program fails.

    Notes
    -----
    A Steiner tree (by a heuristic, because the best one is NP-hard) and a linear program for each added tree; the bound
    is `cut_bound`.

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
    """A stepwise search: `rate` rises and `bound` falls until they meet, or neither changes any more.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit. Hosts that are neither root nor receiver may forward.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._generation = ColumnGeneration(network, self._cheapest)
        self._cuts = CutProgram(network)
        self._rng = np.random.default_rng(0)
        self._barren = 0

    @property
    def rate(self) -> float:
        """The rate of the best plan found."""
        return self._generation.master.rate

    @property
    def bound(self) -> float:
        """An upper bound of the rate of any plan."""
        return self._cuts.bound

    @property
    def finished(self) -> bool:
        """True if the plan is within `GAP` of the bound, or no gain is expected."""
        return self._closed or (self._cuts.finished and self._barren >= MAX_BARREN_ROUNDS)

    @property
    def _closed(self) -> bool:
        return self.rate >= self.bound * (1 - GAP)

    def improve(self) -> None:
        """Generate more trees, and search sets with a tighter bound.

        Raises
        ------
        SolverError
            If a linear program fails.
        """
        if self._barren < MAX_BARREN_ROUNDS:
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

    def plan(self) -> MulticastPlan:
        """Return the best plan found.

        Returns
        -------
        Plan
            Its `bound` is the lowest bound found.
        """
        plan = self._generation.master.plan()
        return replace(plan, bound=max(self.bound, plan.rate))

    def _improved(self, costs: Floats) -> Tree:
        return improved(costs, self._network.root, self._network.receivers, self._cheapest(costs))

    def _cheapest(self, costs: Floats) -> Tree:
        return steiner_tree(costs, self._network.root, self._network.receivers)

"""Column generation: trees generated from prices, and the best rates over all generated trees."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from algorithms.balanced.bottleneck import bottleneck
from algorithms.balanced.fpfr import searches
from algorithms.balanced.master import Master
from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import Tree
from algorithms.balanced.rising_prices import RisingPrices

GAP = 1e-9
"""Share of the bound within which the search ends: the solver's tolerance."""

MIN_TREES = 8
"""Minimum number of trees between two solutions of the linear program, which takes as long as a few trees."""

CHAINS = 4
"""FPFR trees in the initial set: long chains, which price-based generation finds late."""

CheapestTree = Callable[[Floats], Tree]
"""(cost of every arc, n x n) -> a cheap tree to all receivers."""


class ColumnGeneration:
    """The linear program over all generated trees."""

    def __init__(self, network: Network, cheapest: CheapestTree) -> None:
        self.master = Master(network)
        self._rising = RisingPrices(self.master.resources)
        self._cheapest = cheapest
        self._trees_a_round = max(MIN_TREES, network.size // 4)
        self.master.add(bottleneck(network).trees)
        self.master.add(tree for tree, _ in islice(searches(network), CHAINS))

    def improve(self) -> Floats:
        """Generate trees at rising prices, and solve the program over all trees.

        Returns
        -------
        array of float
            The price of every row in the solution.

        Raises
        ------
        SolverError
            If the linear program fails.
        """
        resources = self.master.resources
        made = []
        for _ in range(self._trees_a_round):
            tree = self._cheapest(resources.arc_costs(self._rising.prices()))
            self._rising.add(resources.use(tree))
            made.append(tree)
        self.master.add(made)
        return self.master.solve()

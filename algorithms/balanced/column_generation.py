"""Trees made as prices ask for them, and the best rates over all that were made so far."""

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
"""Share of the bound within which the search for a better plan ends: what the solver's tolerance leaves."""

MIN_TREES = 8
"""As many trees or more are made between two solutions of the linear program, which takes as long as a few trees."""

CHAINS = 4
"""Trees of FPFR to start with: long chains, which cheapest trees come to late."""

CheapestTree = Callable[[Floats], Tree]
"""(cost of every arc, n x n) -> a tree to all receivers that costs little."""


class ColumnGeneration:
    """The linear program over the trees made so far."""

    def __init__(self, network: Network, cheapest: CheapestTree) -> None:
        self.master = Master(network)
        self._rising = RisingPrices(self.master.resources)
        self._cheapest = cheapest
        self._trees_a_round = max(MIN_TREES, network.size // 4)
        self.master.add(bottleneck(network).trees)
        self.master.add(tree for tree, _ in islice(searches(network), CHAINS))

    def improve(self) -> Floats:
        """Make trees at rising prices, and solve; the prices of the solution. Raises SolverFault."""
        resources = self.master.resources
        made = []
        for _ in range(self._trees_a_round):
            tree = self._cheapest(resources.arc_costs(self._rising.prices()))
            self._rising.add(resources.use(tree))
            made.append(tree)
        self.master.add(made)
        return self.master.solve()

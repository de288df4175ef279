"""The optimum over all trees to every host, in polynomial time: column generation with a bound at every step.

The paper (section 3.1) puts all n ** (n - 2) trees into its linear program. Here trees are added as they are needed:
the most useful tree is the cheapest arborescence at the program's prices, and if it costs at least 1, no other tree
improves the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from algorithms.balanced.arborescence import minimum_arborescence, total_cost
from algorithms.balanced.column_generation import GAP, ColumnGeneration
from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import MulticastPlan, Tree


def exact(network: Network, stop: Callable[[], bool] = lambda: False) -> MulticastPlan:
    """Return the plan of the highest rate, with a bound that proves it.

    Parameters
    ----------
    network : Network
        Rates (n x n) and capacities (n) of n hosts in any one unit. All hosts but the root must receive; otherwise use
        `subset`.
    stop : callable, optional
        Ends the search with the current result when it returns True.

    Returns
    -------
    Plan
        Its `bound` exceeds its rate by at most 1e-9 of itself, unless the search was stopped: the solver computes in
        floating point, and nothing closer is claimed.

    Raises
    ------
    ValueError
        If a host other than the root does not receive.
    SolverError
        If the linear program fails.

    Notes
    -----
    A minimum arborescence and a linear program for each added tree: polynomial in theory (ellipsoid method), about n
    steps in practice. Balanced multicasting, section 3.1, has all n ** (n - 2) trees in its program.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> plan = exact(network)
    >>> round(plan.rate, 6), round(plan.bound, 6)
    (10.0, 10.0)
    """
    search = ExactSearch(network)
    search.improve()
    while not search.finished and not stop():
        search.improve()
    return search.plan()


class ExactSearch:
    """A stepwise search: `rate` and `bound` approach each other until it is `finished`.

    Parameters
    ----------
    network : Network
        n hosts, all of which but the root must receive; rates (n x n) and capacities (n) in any one unit.

    Raises
    ------
    ValueError
        If a host other than the root does not receive: use `subset`.
    """

    def __init__(self, network: Network) -> None:
        if not network.to_all:
            raise ValueError("some hosts do not receive: that is for subset")
        self._root = network.root
        self._generation = ColumnGeneration(network, self._cheapest)
        self.bound = math.inf
        self.finished = False

    @property
    def rate(self) -> float:
        """The rate of the best plan found."""
        return self._generation.master.rate

    def improve(self) -> None:
        """Generate more trees, and update the bound.

        Raises
        ------
        SolverError
            If the linear program fails.
        """
        master = self._generation.master
        prices = self._generation.improve()
        costs = master.resources.arc_costs(prices)
        tree = self._cheapest(costs)
        self.bound = min(self.bound, master.bound(prices, total_cost(costs, tree)))
        self.finished = self.bound * (1 - GAP) <= self.rate or not master.add([tree])

    def plan(self) -> MulticastPlan:
        """Return the best plan found.

        Returns
        -------
        Plan
            Its `bound` is the lowest bound found.
        """
        plan = self._generation.master.plan()
        return replace(plan, bound=max(self.bound, plan.rate))

    def _cheapest(self, costs: Floats) -> Tree:
        return tuple(minimum_arborescence(costs, self._root))

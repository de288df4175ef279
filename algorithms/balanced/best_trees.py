"""Plans of few trees: every tree costs its sender connections and memory, and the last ones add little rate.

The best choice is NP-hard, because a single tree already is (section 2.3 of the paper). Two heuristics are compared.
One repeatedly removes from a given plan the tree that it uses least, with the best rates for the others each time. The
other builds one wide tree after the other from the residual capacity of paths and access links.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from algorithms.balanced.master import Master
from algorithms.balanced.network import DisconnectedError, Network
from algorithms.balanced.plan import NO_HOST, MulticastPlan, Tree, loads, max_rate, pruned

ROUNDING = 1e-12
"""Share of a limit below which a residual is rounding error."""

THIN = 0.02
"""Share of the total rate below which a tree costs a transfer more than it adds: hosts forward whole blocks, and on a
thin tree a block takes seconds per hop.
"""


def best_trees(network: Network, plan: MulticastPlan, max_trees: int) -> MulticastPlan:
    """Return `plan` if it has at most `max_trees` trees, otherwise the best plan found that has.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    plan : Plan
        The fastest tree first.
    max_trees : int
        Maximum number of trees, at least 1.

    Returns
    -------
    Plan
        With the bound of the given plan; the difference is what the limit costs.

    Raises
    ------
    SolverError
        If the linear program fails.

    Notes
    -----
    One linear program for each tree that is removed. The best choice is NP-hard (balanced multicasting, section 2.3),
    and this is a heuristic.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> best_trees(network, MulticastPlan(((-1, 0, 1), (-1, 2, 0)), (5.0, 5.0)), 1).trees
    ((-1, 0, 1),)
    """
    if len(plan.trees) <= max_trees:
        return plan
    fewer = max((thinned(network, plan, max_trees), _wide(network, max_trees)), key=lambda found: found.rate)
    return MulticastPlan(fewer.trees, fewer.rates, plan.bound)


def thinned(network: Network, plan: MulticastPlan, max_trees: int) -> MulticastPlan:
    """Repeatedly remove the tree that is used least.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    plan : Plan
        The fastest tree first.
    max_trees : int
        Maximum number of trees.

    Returns
    -------
    Plan
        The other trees at their best rates, with the bound of the given plan.

    Raises
    ------
    SolverError
        If the linear program fails.

    Notes
    -----
    One linear program for each tree that is removed.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> thinned(network, MulticastPlan(((-1, 0, 1), (-1, 2, 0)), (6.0, 4.0)), 1).trees
    ((-1, 0, 1),)
    """
    left = plan
    while len(left.trees) > max_trees:
        # Plans list the fastest tree first.
        left = _rated(network, left.trees[:-1])
    return MulticastPlan(left.trees, left.rates, plan.bound)


def without_thin(network: Network, plan: MulticastPlan) -> MulticastPlan:
    """Remove the trees that are too thin to speed up a transfer: below `THIN` of the plan's rate.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    plan : Plan
        The fastest tree first.

    Returns
    -------
    Plan
        With the bound of the given plan.

    Raises
    ------
    SolverError
        If the linear program fails.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> len(without_thin(network, MulticastPlan(((-1, 0, 1), (-1, 2, 0)), (9.9999, 0.0001))).trees)
    1
    """
    return thinned(network, plan, sum(rate >= THIN * plan.rate for rate in plan.rates))


def _wide(network: Network, max_trees: int) -> MulticastPlan:
    left: Network | None = network
    trees: list[Tree] = []
    while left is not None and len(trees) < max_trees:
        trees.append(_wide_tree(left))
        left = _without(left, trees[-1])
    return _rated(network, trees)


def _wide_tree(network: Network) -> Tree:
    """Return a tree that adds the host with the widest path and share of its parent's access link at each step."""
    parents, children = np.full(network.size, NO_HOST), np.zeros(network.size)
    outside = np.ones(network.size, bool)
    outside[network.root] = False
    missing = set(network.receivers)
    while missing:
        shares = np.minimum(network.widths, (network.out / (children + 1))[:, None])
        shares[outside] = 0.0
        shares[:, ~outside] = 0.0
        parent, host = np.unravel_index(int(shares.argmax()), shares.shape)
        parents[host], outside[host] = parent, False
        children[parent] += 1
        missing.discard(int(host))
    return pruned(parents.tolist(), network.receivers)


def _without(network: Network, tree: Tree) -> Network | None:
    """Return the network less the tree at its maximum rate, or None if that disconnects a receiver."""
    alone = MulticastPlan((tree,), (max_rate(network, tree),))
    left = (
        np.where(load < (1 - ROUNDING) * limit, limit - load, 0.0)
        for load, limit in zip(loads(network, alone), (network.rates, network.out, network.into), strict=True)
    )
    try:
        return Network(network.hosts, network.root, network.receivers, *left)
    except DisconnectedError:
        return None


def _rated(network: Network, trees: Iterable[Tree]) -> MulticastPlan:
    """Return the plan with the best rates for these trees."""
    master = Master(network)
    master.add(trees)
    master.solve()
    return master.plan()

"""A plan of few trees: every tree costs its sender connections and memory, and the last ones bring little.

To choose them best is NP-hard, as one tree already is (section 2.3 of the paper). Two ways are tried. One leaves
out of a given plan the tree that it uses least, again and again, with the best rates for the others each time. The
other makes one wide tree after the other out of what is left of paths and access links.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from algorithms.balanced.master import Master
from algorithms.balanced.network import Disconnected, Network
from algorithms.balanced.plan import NOBODY, Plan, Tree, loads, max_rate, pruned

ROUNDING = 1e-12
"""Share of a limit below which what is left of it is rounding."""

THIN = 0.02
"""Share of the whole rate below which a tree costs a transfer more than it brings: a block passes an edge when it is
whole, and over a thin tree that takes seconds at every host."""


def best_trees(network: Network, plan: Plan, most: int) -> Plan:
    """`plan` where it has no more than `most` trees, and otherwise the best one found that has not.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    plan : Plan
        The fastest tree first.
    most : int
        Trees that there may be, from 1 on.

    Returns
    -------
    Plan
        With the bound of the given plan: what is lost is what lies between.

    Raises
    ------
    SolverFault
        The linear program failed.

    Notes
    -----
    One linear program for each tree that is left out. The best choice is NP-hard (balanced multicasting, section
    2.3), and this is a heuristic.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> best_trees(network, Plan(((-1, 0, 1), (-1, 2, 0)), (5.0, 5.0)), 1).trees
    ((-1, 0, 1),)
    """
    if len(plan.trees) <= most:
        return plan
    fewer = max((thinned(network, plan, most), _wide(network, most)), key=lambda found: found.rate)
    return Plan(fewer.trees, fewer.rates, plan.bound)


def thinned(network: Network, plan: Plan, most: int) -> Plan:
    """Leave out the tree that is used least, again and again.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    plan : Plan
        The fastest tree first.
    most : int
        Trees that there may be.

    Returns
    -------
    Plan
        The others at their best rates, with the bound of the given plan.

    Raises
    ------
    SolverFault
        The linear program failed.

    Notes
    -----
    One linear program for each tree that is left out.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> thinned(network, Plan(((-1, 0, 1), (-1, 2, 0)), (6.0, 4.0)), 1).trees
    ((-1, 0, 1),)
    """
    left = plan
    while len(left.trees) > most:
        # The fastest comes first.
        left = _rated(network, left.trees[:-1])
    return Plan(left.trees, left.rates, plan.bound)


def without_thin(network: Network, plan: Plan) -> Plan:
    """Leave out the trees that are too thin for a transfer to gain by them: under `THIN` of the plan's rate.

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
    SolverFault
        The linear program failed.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> len(without_thin(network, Plan(((-1, 0, 1), (-1, 2, 0)), (9.9999, 0.0001))).trees)
    1
    """
    return thinned(network, plan, sum(rate >= THIN * plan.rate for rate in plan.rates))


def _wide(network: Network, most: int) -> Plan:
    left: Network | None = network
    trees: list[Tree] = []
    while left is not None and len(trees) < most:
        trees.append(_wide_tree(left))
        left = _without(left, trees[-1])
    return _rated(network, trees)


def _wide_tree(network: Network) -> Tree:
    """Host after host joins where its share of the parent's access link and its path are widest."""
    parents, children = np.full(network.size, NOBODY), np.zeros(network.size)
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
    """What the tree at its highest rate leaves, None if that connects the receivers no more."""
    alone = Plan((tree,), (max_rate(network, tree),))
    left = (
        np.where(load < (1 - ROUNDING) * limit, limit - load, 0.0)
        for load, limit in zip(loads(network, alone), (network.rates, network.out, network.into), strict=True)
    )
    try:
        return Network(network.hosts, network.root, network.receivers, *left)
    except Disconnected:
        return None


def _rated(network: Network, trees: Iterable[Tree]) -> Plan:
    """The best rates for these trees."""
    master = Master(network)
    master.add(trees)
    master.solve()
    return master.plan()

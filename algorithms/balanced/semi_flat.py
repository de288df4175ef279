"""The semi-flat tree (section 4.1 of the paper): of least height over living links, as wide as a greedy choice gets."""

from __future__ import annotations

import numpy as np

from algorithms.balanced.network import Network
from algorithms.balanced.plan import NO_HOST, MulticastPlan, Tree, max_rate, pruned


def semi_flat(network: Network) -> MulticastPlan:
    """Return one tree, built level by level: every host joins the parent with the most capacity left for a child.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.

    Returns
    -------
    Plan
        One tree of least height, without a bound.

    Notes
    -----
    O(n ** 2 * height). Balanced multicasting, section 4.1.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> semi_flat(network)
    MulticastPlan(trees=((-1, 0, 0),), rates=(5.0,), bound=None)
    """
    tree = semi_flat_tree(network)
    return MulticastPlan((tree,), (max_rate(network, tree),))


def semi_flat_tree(network: Network) -> Tree:
    """Return the tree of `semi_flat` without its rate."""
    parents = np.full(network.size, NO_HOST)
    children = np.zeros(network.size)
    level, outside = [network.root], set(range(network.size)) - {network.root}
    while not outside.isdisjoint(network.receivers):
        joined = []
        for host in sorted(outside):
            living = [parent for parent in level if network.widths[parent, host] > 0]
            if living:
                shares = np.minimum(network.rates[living, host], network.out[living] / (children[living] + 1))
                parents[host] = living[int(shares.argmax())]
                children[parents[host]] += 1
                joined.append(host)
        level = joined
        outside.difference_update(joined)
    return pruned(parents.tolist(), network.receivers)

"""The semi-flat tree (section 4.1 of the paper): of least height over living links, as wide as a greedy choice gets."""

from __future__ import annotations

import numpy as np

from algorithms.balanced.network import Network
from algorithms.balanced.plan import NOBODY, Plan, Tree, highest_rate, pruned


def semi_flat(network: Network) -> Plan:
    """One tree, level by level: every host joins the parent that has the most left for one more child."""
    tree = semi_flat_tree(network)
    return Plan((tree,), (highest_rate(network, tree),))


def semi_flat_tree(network: Network) -> Tree:
    """The tree of `semi_flat`."""
    parents = np.full(network.size, NOBODY)
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

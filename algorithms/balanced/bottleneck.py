"""The maximum-bottleneck tree: its narrowest path is as wide as any tree's (section 2.3 of the paper).

Prim's algorithm with the widest path first, after Cohen and Kaempfer: A unicast-based approach for streaming
multicast. INFOCOM 2001. Access links that several children share are not part of that choice.
"""

from __future__ import annotations

import numpy as np

from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import NOBODY, Plan, Tree, highest_rate, pruned


def bottleneck(network: Network) -> Plan:
    """One tree over the widest paths, at the highest rate that access links leave it."""
    tree = widest_tree(network, np.where(network.widths > 0, network.rates, 0.0))
    return Plan((tree,), (highest_rate(network, tree),))


def widest_tree(network: Network, widths: Floats) -> Tree:
    """The tree to all receivers whose least of `widths` (n x n, 0 where there is no path) is as large as possible."""
    parents = np.full(network.size, NOBODY)
    best = widths[network.root].copy()
    source = np.full(network.size, network.root)
    best[network.root] = -1.0
    missing = set(network.receivers)
    while missing:
        host = int(best.argmax())
        parents[host] = source[host]
        missing.discard(host)
        best[host] = -1.0
        wider = (best >= 0) & (widths[host] > best)
        best[wider] = widths[host, wider]
        source[wider] = host
    return pruned(parents.tolist(), network.receivers)

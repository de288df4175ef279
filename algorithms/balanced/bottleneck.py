"""The maximum-bottleneck tree: its narrowest path is as wide as any tree's (section 2.3 of the paper).

Prim's algorithm with the widest path first, after Cohen and Kaempfer: A unicast-based approach for streaming multicast.
INFOCOM 2001. The choice ignores that several children share an access link.
"""

from __future__ import annotations

import numpy as np

from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import NO_HOST, MulticastPlan, Tree, max_rate, pruned


def bottleneck(network: Network) -> MulticastPlan:
    """Return one tree over the widest paths, at the highest rate that access links allow.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.

    Returns
    -------
    Plan
        One tree, without a bound.

    Notes
    -----
    O(n ** 2). Balanced multicasting, section 2.3; Cohen and Kaempfer, INFOCOM 2001.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> bottleneck(network)
    MulticastPlan(trees=((-1, 0, 0),), rates=(5.0,), bound=None)
    """
    tree = widest_tree(network, np.where(network.widths > 0, network.rates, 0.0))
    return MulticastPlan((tree,), (max_rate(network, tree),))


def widest_tree(network: Network, widths: Floats) -> Tree:
    """Return the tree to all receivers whose smallest width is as large as possible.

    Parameters
    ----------
    network : Network
        n hosts, the root and the receivers among them.
    widths : array of float, n x n
        0 if there is no path.

    Returns
    -------
    Tree
        The parent of each host, `NO_HOST` (-1) for the root and for hosts that are left out.

    Notes
    -----
    O(n ** 2): Prim's algorithm with the widest path first.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> widest_tree(network, network.widths)
    (-1, 0, 0)
    """
    parents = np.full(network.size, NO_HOST)
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

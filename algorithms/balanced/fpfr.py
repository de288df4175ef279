"""The trees of Fast Parallel File Replication: depth-first searches over what earlier trees have left.

Izmailov, Ganguly, Tu: Fast Parallel File Replication in Data Grid. GGF-10, 2004; section 2.3 of the paper. Each tree
reserves its bottleneck on all of its paths, until no search reaches everybody. Access links are not looked at. The
order of the search is not given there; here the widest path goes first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import NOBODY, Plan, Tree, ends, pruned

ROUNDING = 1e-12
"""Share of a path's rate below which what is left of it is rounding."""


def fpfr(network: Network) -> Plan:
    """The trees at the rates that they assume: together they may be more than access links carry.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.

    Returns
    -------
    Plan
        Without a bound.

    Notes
    -----
    At most n ** 2 searches of O(n ** 2) each, since each uses up a path. Izmailov, Ganguly, Tu, GGF-10, 2004.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> fpfr(network).rates
    (10.0, 10.0)
    """
    found = list(searches(network))
    return Plan(tuple(tree for tree, _ in found), tuple(rate for _, rate in found))


def searches(network: Network) -> Iterator[tuple[Tree, float]]:
    """One tree after the other, with the rate that it reserves.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.

    Yields
    ------
    (Tree, float)
        The parents of all hosts, and the width of the narrowest path among what earlier trees have left.

    Notes
    -----
    O(n ** 2) for each.

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> next(searches(network))
    ((-1, 0, 1), 10.0)
    """
    left = np.where(network.widths > 0, network.rates, 0.0)
    while (tree := _search(network, left)) is not None:
        heads, tails = ends(tree)
        reserved = float(left[tails, heads].min())
        yield tree, reserved
        left[tails, heads] -= reserved
        left[left <= ROUNDING * network.rates] = 0.0


def _search(network: Network, left: Floats) -> Tree | None:
    parents = [NOBODY] * network.size
    ahead = left.copy()
    ahead[:, network.root] = 0.0
    missing, way = set(network.receivers), [network.root]
    while missing and way:
        host = way[-1]
        following = int(ahead[host].argmax())
        if ahead[host, following] <= 0:
            way.pop()
            continue
        ahead[:, following] = 0.0
        parents[following] = host
        missing.discard(following)
        way.append(following)
    return None if missing else pruned(parents, network.receivers)

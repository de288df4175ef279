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
    """The trees at the rates that they assume: together they may be more than access links carry."""
    found = list(searches(network))
    return Plan(tuple(tree for tree, _ in found), tuple(rate for _, rate in found))


def searches(network: Network) -> Iterator[tuple[Tree, float]]:
    """One tree after the other, with the rate that it reserves."""
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

"""Fast Parallel File Replication (FPFR): trees by repeated depth-first search over the bandwidth that is left.

Izmailov, Ganguly, Tu: Fast Parallel File Replication in Data Grid. GGF-10, 2004; section 2.3 of the paper on balanced
multicasting. Each tree reserves its bottleneck bandwidth on all of its paths, and the searches end when no tree spans
all receivers. FPFR ignores access links.

Neither paper defines which path a search tries first, and results depend on it. `Order` has three rules:

- `index`: the host with the lowest index, as an implementation without a rule of its own does.
- `random`: any host with bandwidth left, drawn at each step of each search from a seeded generator.
- `widest`: the path with the most bandwidth left, the lowest index among equals.

`widest` is the default, since it needs no seed and depends on the numbering of hosts only between equal paths; the
exact search starts from its trees. It is the weakest of the three for FPFR on the random networks of
`docs/explanation/balanced-multicast.md` and so flatters whatever is compared with FPFR: a comparison shows all three.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Literal, get_args

import numpy as np

from algorithms.balanced.network import Floats, Network
from algorithms.balanced.plan import NO_HOST, MulticastPlan, Tree, ends, pruned

ROUNDING = 1e-12
"""Share of a path's rate below which the bandwidth left is a rounding error."""

Order = Literal["index", "random", "widest"]
"""Rule by which a search picks the next host."""

ORDERS: tuple[Order, ...] = get_args(Order)
DEFAULT_ORDER: Order = "widest"

_Choice = Callable[[Floats], int]
"""Bandwidth left from one host to each unvisited host -> the host to visit next (any host if all have 0)."""


def fpfr(network: Network, order: Order = DEFAULT_ORDER, seed: int = 0) -> MulticastPlan:
    """Return the trees of FPFR at the rates that it reserves: together they may exceed access links.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    order : {"index", "random", "widest"}, optional
        Rule by which a search picks the next host.
    seed : int, optional
        Seed of the order `random`; the others ignore it.

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
    found = list(searches(network, order, seed))
    return MulticastPlan(tuple(tree for tree, _ in found), tuple(rate for _, rate in found))


def searches(network: Network, order: Order = DEFAULT_ORDER, seed: int = 0) -> Iterator[tuple[Tree, float]]:
    """Yield one tree after the other, with the rate that it reserves.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    order : {"index", "random", "widest"}, optional
        Rule by which a search picks the next host.
    seed : int, optional
        Seed of the order `random`; the others ignore it.

    Yields
    ------
    (Tree, float)
        The parents of all hosts, and the bandwidth left on the narrowest of its paths.

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
    choose = _choice(order, seed)
    left = np.where(network.widths > 0, network.rates, 0.0)
    while (tree := _search(network, left, choose)) is not None:
        heads, tails = ends(tree)
        reserved = float(left[tails, heads].min())
        yield tree, reserved
        left[tails, heads] -= reserved
        left[left <= ROUNDING * network.rates] = 0.0


def _choice(order: Order, seed: int) -> _Choice:
    if order == "index":
        return lambda widths: int((widths > 0).argmax())
    if order == "widest":
        return lambda widths: int(widths.argmax())
    draw = random.Random(seed)
    return lambda widths: draw.choice(np.flatnonzero(widths > 0).tolist() or [0])


def _search(network: Network, left: Floats, choose: _Choice) -> Tree | None:
    parents = [NO_HOST] * network.size
    ahead = left.copy()
    ahead[:, network.root] = 0.0
    missing, way = set(network.receivers), [network.root]
    while missing and way:
        host = way[-1]
        following = choose(ahead[host])
        if ahead[host, following] <= 0:
            way.pop()
            continue
        ahead[:, following] = 0.0
        parents[following] = host
        missing.discard(following)
        way.append(following)
    return None if missing else pruned(parents, network.receivers)

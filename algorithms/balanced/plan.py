"""The result of a method: trees, the rate of each, and an upper bound if the method proves one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from algorithms.balanced.network import Floats, Network

NO_HOST = -1
"""The parent of the root, and of hosts that a tree leaves out."""

Tree = tuple[int, ...]
"""The parent of every host."""


@dataclass(frozen=True, slots=True)
class MulticastPlan:
    """Trees and their rates, all used at the same time.

    Parameters
    ----------
    trees : tuple of Tree
        Each lists the parents of all hosts.
    rates : tuple of float
        Rate of each tree, in the network's unit.
    bound : float, optional
        No plan has a higher rate than this; None: unknown.
    """

    trees: tuple[Tree, ...]
    rates: tuple[float, ...]
    bound: float | None = None

    @property
    def rate(self) -> float:
        """The rate at which every receiver gets data, in the network's unit."""
        return sum(self.rates)


def edges(tree: Tree) -> Iterator[tuple[int, int]]:
    """Return the pairs of sender and receiver of a tree.

    Parameters
    ----------
    tree : Tree
        The parent of each host, `NO_HOST` (-1) for the root and for hosts that are left out.

    Returns
    -------
    iterator of (int, int)
        Sender and receiver, in the order of the receivers. O(n) in total.

    Examples
    --------
    >>> list(edges((-1, 0, 1)))
    [(0, 1), (1, 2)]
    """
    return ((parent, host) for host, parent in enumerate(tree) if parent != NO_HOST)


def children(tree: Tree) -> dict[int, list[int]]:
    """Return the children of each host that has any.

    Parameters
    ----------
    tree : Tree
        The parent of each host, `NO_HOST` (-1) for the root and for hosts that are left out.

    Returns
    -------
    dict of int to list of int
        Computed in O(n).

    Examples
    --------
    >>> children((-1, 0, 0, 1))
    {0: [1, 2], 1: [3]}
    """
    found: dict[int, list[int]] = {}
    for parent, host in edges(tree):
        found.setdefault(parent, []).append(host)
    return found


def paths(tree: Tree, root: int) -> Iterator[list[int]]:
    """Yield paths down to the leaves that together cover every edge once.

    Parameters
    ----------
    tree : Tree
        The parent of each host, `NO_HOST` (-1) for the root and for hosts that are left out.
    root : int
        The root of the tree.

    Yields
    ------
    list of int
        Hosts from parent to child. O(n) in total.

    Examples
    --------
    >>> list(paths((-1, 0, 0, 1), 0))
    [[0, 1, 3], [0, 2]]
    """
    below = children(tree)
    starts = [[root, child] for child in reversed(below[root])]
    while starts:
        path = starts.pop()
        while next_hosts := below.get(path[-1]):
            starts += [[path[-1], child] for child in reversed(next_hosts[1:])]
            path.append(next_hosts[0])
        yield path


def pruned(tree: Sequence[int], receivers: Collection[int]) -> Tree:
    """Return the tree without branches that lead to no receiver."""
    kept = [NO_HOST] * len(tree)
    for receiver in receivers:
        host = receiver
        while kept[host] == NO_HOST and tree[host] != NO_HOST:
            kept[host] = tree[host]
            host = tree[host]
    return tuple(kept)


def max_rate(network: Network, tree: Tree) -> float:
    """Return the rate of a tree alone on the network: its slowest edge, with access links shared evenly.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    tree : Tree
        The parent of each host, `NO_HOST` (-1) for the root and for hosts that are left out.

    Returns
    -------
    float
        In the network's unit. O(n).

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> max_rate(network, (-1, 0, 0)), max_rate(network, (-1, 0, 1))
    (5.0, 10.0)
    """
    heads, tails = ends(tree)
    shares = network.out[tails] / np.bincount(tails, minlength=network.size)[tails]
    return float(np.minimum(np.minimum(network.rates[tails, heads], shares), network.into[heads]).min())


def ends(tree: Sequence[int]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the hosts that a tree enters, and the parent of each."""
    parents = np.asarray(tree, np.intp)
    heads = np.flatnonzero(parents != NO_HOST)
    return heads, parents[heads]


def loads(network: Network, plan: MulticastPlan) -> tuple[Floats, Floats, Floats]:
    """Return the load of the plan on every path (n x n), and the rates that every host sends and receives."""
    numbers, heads, tails = _all_ends(plan)
    on_paths = np.zeros((network.size, network.size))
    np.add.at(on_paths, (tails, heads), np.array(plan.rates)[numbers])
    return on_paths, on_paths.sum(axis=1), on_paths.sum(axis=0)


def kept_within(network: Network, plan: MulticastPlan) -> MulticastPlan:
    """Scale the plan down so that it respects every limit: a solver exceeds limits by its tolerance.

    Parameters
    ----------
    network : Network
        n hosts; rates (n x n) and capacities (n) in any one unit.
    plan : Plan
        A plan whose rates may exceed limits.

    Returns
    -------
    Plan
        The same trees, none faster than before.

    Notes
    -----
    O(n ** 2 + trees * n).

    Examples
    --------
    >>> from algorithms.balanced.named_network import NamedNetwork
    >>> links = [("a", "b", 10.0), ("a", "c", 10.0), ("b", "c", 10.0), ("c", "b", 10.0)]
    >>> network = NamedNetwork("abc", "a", links, out={"a": 10.0}).numbered()
    >>> kept_within(network, MulticastPlan(((-1, 0, 0),), (10.0,))).rates
    (5.0,)
    """
    # A load on a path without capacity exceeds it infinitely.
    with np.errstate(divide="ignore"):
        on_paths, sent, received = (
            np.maximum(1.0, np.divide(load, limit, out=np.ones_like(load), where=load > 0))
            for load, limit in zip(loads(network, plan), (network.rates, network.out, network.into), strict=True)
        )
    numbers, heads, tails = _all_ends(plan)
    over = np.ones(len(plan.trees))
    np.maximum.at(over, numbers, np.maximum(on_paths, np.maximum(sent[:, None], received[None, :]))[tails, heads])
    return replace(plan, rates=tuple((np.array(plan.rates) / over).tolist()))


def _all_ends(plan: MulticastPlan) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return, for every edge of every tree, the tree's number, the receiving host and the sending host."""
    parents = np.array(plan.trees, np.intp)
    numbers, heads = np.nonzero(parents != NO_HOST)
    return numbers, heads, parents[numbers, heads]

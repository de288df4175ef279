"""Trees without lost hosts: their children move to the next ancestor that is reachable."""

from __future__ import annotations

from collections.abc import Collection

from blast_transport.links.dialling import SOURCE
from blast_transport.transports.choices import Tree

Edge = tuple[str, str]
"""(parent, child)."""


def pruned(tree: Tree, members: Collection[str], broken: Collection[Edge]) -> Tree | None:
    """Return the tree over `members` only, without the `broken` edges; None if it is empty.

    A host that no ancestor can reach moves to any host of the tree that is not below it, and is left out if there is
    none.
    """
    there = [host for host in _from_above(tree) if host in members]
    parents: dict[str, str] = {}
    for host in there:
        if (parent := _ancestor(tree, host, parents, broken)) is not None:
            parents[host] = parent
    for host in [host for host in there if host not in parents]:
        if (parent := next((other for other in parents if (other, host) not in broken), None)) is not None:
            parents[host] = parent
    return Tree(tree.rate, parents) if parents else None


def _ancestor(tree: Tree, host: str, placed: Collection[str], broken: Collection[Edge]) -> str | None:
    """Return the nearest ancestor that is present and reachable."""
    parent = tree.parents[host]
    while (parent not in placed and parent != SOURCE) or (parent, host) in broken:
        if parent == SOURCE:
            return None
        parent = tree.parents[parent]
    return parent


def _from_above(tree: Tree) -> list[str]:
    """Yield the hosts of the tree, each after its parent."""
    ordered: dict[str, None] = {}
    for host in tree.parents:
        way = [host]
        while way[-1] != SOURCE and way[-1] not in ordered:
            way.append(tree.parents[way[-1]])
        ordered.update(dict.fromkeys(reversed(way)))
    return [host for host in ordered if host != SOURCE]

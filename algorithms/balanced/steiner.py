"""A cheap tree from a root to some vertices, over others where that is cheaper (Steiner arborescence, NP-hard).

Takahashi, Matsuyama: An approximate solution for the Steiner problem in graphs. 1980: the terminal nearest to the tree
joins it over its shortest path. Then the best arborescence over the same vertices replaces the result.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from algorithms.balanced.arborescence import NoArborescenceError, minimum_arborescence, total_cost
from algorithms.balanced.network import Floats
from algorithms.balanced.plan import NO_HOST, Tree, pruned

Chosen = NDArray[np.bool_]
"""A mask of the vertices of a tree."""

ROUNDING = 1e-12
"""Smaller gains are rounding; without this bound, two trees of equal cost could replace each other forever."""


def steiner_tree(costs: Floats, root: int, terminals: Collection[int]) -> Tree:
    """Return a cheap tree from `root` to all `terminals`, over other vertices if that is cheaper.

    Parameters
    ----------
    costs : array of float, n x n
        `costs[i, j]` is the cost of the arc from i to j, infinite if there is none.
    root : int
        The root of the tree.
    terminals : collection of int
        Vertices to reach; a path to each of them must exist.

    Returns
    -------
    Tree
        n parents, `NO_HOST` (-1) for the root and for vertices that the tree leaves out.

    Notes
    -----
    O(terminals * n ** 2), and an arborescence. No bound in directed graphs (NP-hard). Takahashi and Matsuyama, 1980.

    Examples
    --------
    >>> import numpy as np
    >>> inf = np.inf
    >>> costs = np.array([[inf, 1.0, 9.0], [inf, inf, 1.0], [inf, inf, inf]])
    >>> tuple(int(parent) for parent in steiner_tree(costs, 0, [2]))
    (-1, 0, 1)
    """
    return _over(costs, root, terminals, _joined(costs, root, terminals))


def improved(costs: Floats, root: int, terminals: Collection[int], tree: Tree) -> Tree:
    """Return the tree after all exchanges that reduce its cost, each of which adds or removes one vertex."""
    best, cost = tree, total_cost(costs, tree)
    fixed, place, tried = {root, *terminals}, 0, 0
    while tried < len(costs):
        if place not in fixed:
            vertices = _vertices(best, root)
            vertices[place] = not vertices[place]
            with suppress(NoArborescenceError):
                changed = _over(costs, root, terminals, vertices)
                if (less := total_cost(costs, changed)) < cost * (1 - ROUNDING):
                    best, cost, tried = changed, less, 0
        place, tried = (place + 1) % len(costs), tried + 1
    return best


def _vertices(tree: Tree, root: int) -> Chosen:
    vertices: Chosen = np.array(tree) != NO_HOST
    vertices[root] = True
    return vertices


def _over(costs: Floats, root: int, terminals: Collection[int], chosen: Chosen) -> Tree:
    """Return the cheapest tree over these vertices, without branches that lead to no terminal."""
    vertices = np.flatnonzero(chosen)
    inner = minimum_arborescence(costs[np.ix_(vertices, vertices)], int(np.searchsorted(vertices, root)))
    parents = np.full(len(costs), NO_HOST)
    parents[vertices] = [NO_HOST if parent == NO_HOST else int(vertices[parent]) for parent in inner]
    return pruned(parents.tolist(), terminals)


def _joined(costs: Floats, root: int, terminals: Collection[int]) -> Chosen:
    """Return the vertices of the tree of shortest paths, by Dijkstra's search with joined vertices at distance 0."""
    size = len(costs)
    distances, waiting = np.full(size, np.inf), np.full(size, np.inf)
    distances[root] = waiting[root] = 0.0
    before, joined = [NO_HOST] * size, np.zeros(size, bool)
    joined[root] = True
    missing = set(terminals)
    while missing:
        vertex = int(waiting.argmin())
        if vertex in missing:
            missing.remove(vertex)
            while not joined[vertex]:
                joined[vertex] = True
                distances[vertex] = waiting[vertex] = 0.0
                vertex = before[vertex]
            continue
        waiting[vertex] = np.inf
        reached = distances[vertex] + costs[vertex]
        for nearer in np.flatnonzero(reached < distances).tolist():
            distances[nearer] = waiting[nearer] = reached[nearer]
            before[nearer] = vertex
    return joined

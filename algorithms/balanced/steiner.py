"""A cheap tree from a root to some vertices, over others where that is cheaper (Steiner arborescence, NP-hard).

Takahashi, Matsuyama: An approximate solution for the Steiner problem in graphs. 1980: the terminal that is nearest to
the tree joins it over its shortest path. The best arborescence over the same vertices replaces what came of it.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from algorithms.balanced.arborescence import minimum_arborescence
from algorithms.balanced.network import Floats
from algorithms.balanced.plan import NOBODY, Tree, pruned


def steiner_tree(costs: Floats, root: int, terminals: Collection[int]) -> Tree:
    """A tree from `root` to all `terminals`, every one of which can be reached; `costs` as for an arborescence."""
    vertices = np.flatnonzero(_joined(costs, root, terminals))
    inner = minimum_arborescence(costs[np.ix_(vertices, vertices)], int(np.searchsorted(vertices, root)))
    parents = np.full(len(costs), NOBODY)
    parents[vertices] = [NOBODY if parent == NOBODY else int(vertices[parent]) for parent in inner]
    return pruned(parents.tolist(), terminals)


def _joined(costs: Floats, root: int, terminals: Collection[int]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which vertices the tree of shortest paths has: Dijkstra's search, in which what joins is at distance 0."""
    size = len(costs)
    distances, waiting = np.full(size, np.inf), np.full(size, np.inf)
    distances[root] = waiting[root] = 0.0
    before, joined = [NOBODY] * size, np.zeros(size, bool)
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

"""The minimum-cost arborescence: the tree from a root to every vertex whose arcs have the least total cost.

Edmonds: Optimum branchings. 1967; in the form that grows paths, after Gabow, Galil, Spencer and Tarjan: Efficient
algorithms for finding minimum spanning trees in undirected and directed graphs. 1986. From every vertex a path follows
the cheapest entering arcs backwards until it meets a vertex that is already joined to the root. If the path meets
itself, the cycle becomes one vertex, whose entering arcs cost their difference to the arcs that they replace. The row
operations are numpy's, so that a graph of 128 vertices takes a fraction of a millisecond.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from algorithms.balanced.network import Floats
from algorithms.balanced.plan import NO_HOST


class NoArborescenceError(ValueError):
    """Some vertex cannot be reached from the root."""


def minimum_arborescence(costs: Floats, root: int) -> list[int]:
    """Return the parent of every vertex in the cheapest tree from `root` to all vertices.

    Parameters
    ----------
    costs : array of float, n x n
        `costs[i, j]` is the cost of the arc from i to j, infinite if there is none; negative costs are not needed.
    root : int
        The root of the tree.

    Returns
    -------
    list of int
        n parents; that of the root is `plan.NO_HOST` (-1).

    Raises
    ------
    NoArborescenceError
        If some vertex cannot be reached.

    Notes
    -----
    At most O(n ** 2) operations on rows of numpy, usually O(n). Edmonds 1967; in the form of Gabow, Galil, Spencer and
    Tarjan 1986, doi:10.1007/BF02579168.

    Examples
    --------
    >>> import numpy as np
    >>> inf = np.inf
    >>> minimum_arborescence(np.array([[inf, 1.0, 5.0], [inf, inf, 1.0], [inf, 1.0, inf]]), 0)
    [-1, 0, 1]
    """
    contraction = _Contraction(costs)
    settled = {root}
    for start in range(len(costs)):
        settled.update(contraction.path_back(start, settled))
    return contraction.expanded(root)


class _Contraction:
    """Vertices, and cycles that were contracted to vertices (numbers from `len(costs)` on).

    `entering[v, i]` is the cost of the cheapest arc from the original vertex i into v; if v is a cycle, `choices[v]` is
    the member of v that the arc enters.
    """

    def __init__(self, costs: Floats) -> None:
        size = len(costs)
        self._size = size
        self._entering = np.empty((2 * size, size))
        self._entering[:size] = costs.T
        np.fill_diagonal(self._entering, np.inf)
        self._sources: list[int] = self._entering[:size].argmin(axis=1).tolist()
        self._cheapest: list[float] = self._entering[:size].min(axis=1).tolist()
        self._top = list(range(size))
        self._within = [[vertex] for vertex in range(size)]
        self._members: dict[int, list[int]] = {}
        self._choices: dict[int, NDArray[np.intp]] = {}

    def path_back(self, start: int, settled: set[int]) -> list[int]:
        """Return the vertices on the backward path from `start` to the first settled one, cycles contracted.

        Raises
        ------
        NoArborescenceError
            If some vertex on the path cannot be reached from the root.
        """
        path: list[int] = []
        places: dict[int, int] = {}
        vertex = self._top[start]
        while vertex not in settled:
            if vertex in places:
                at = places[vertex]
                for passed in path[at:]:
                    del places[passed]
                path[at:], vertex = [], self._contracted(path[at:])
                continue
            if self._cheapest[vertex] == np.inf:
                raise NoArborescenceError("some vertices cannot be reached from the root")
            places[vertex] = len(path)
            path.append(vertex)
            vertex = self._top[self._sources[vertex]]
        return path

    def _contracted(self, cycle: list[int]) -> int:
        fresh = self._size + len(self._members)
        # Cost that an arc adds if it replaces the member's own arc.
        more = self._entering[cycle] - np.array([[self._cheapest[member]] for member in cycle])
        within = [vertex for member in cycle for vertex in self._within[member]]
        entering = np.minimum.reduce(more)
        entering[within] = np.inf
        self._entering[fresh] = entering
        self._choices[fresh] = more.argmin(axis=0)
        self._sources.append(int(entering.argmin()))
        self._cheapest.append(float(entering[self._sources[-1]]))
        self._within.append(within)
        self._members[fresh] = cycle
        for vertex in within:
            self._top[vertex] = fresh
        return fresh

    def expanded(self, root: int) -> list[int]:
        """Return the parents: the arc into a cycle replaces the arc into one member, the other members keep theirs."""
        parents = [NO_HOST] * self._size
        waiting = [vertex for vertex in dict.fromkeys(self._top) if vertex != root]
        while waiting:
            vertex = waiting.pop()
            source = self._sources[vertex]
            while vertex >= self._size:
                entered = self._members[vertex][self._choices[vertex][source]]
                waiting += (member for member in self._members[vertex] if member != entered)
                vertex = entered
            parents[vertex] = source
        return parents


def total_cost(costs: Floats, parents: Sequence[int]) -> float:
    """Return the total cost of the arcs of a tree."""
    heads = np.flatnonzero(np.asarray(parents) != NO_HOST)
    return float(costs[np.asarray(parents)[heads], heads].sum())

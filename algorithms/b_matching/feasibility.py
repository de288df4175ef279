"""Free resources of one optical switch as the matching models them: ports by vertex, splitters by size.

Sets of vertices are integers (see `group`), so that the test whether every rack of a group has a free port is one AND
operation. Elements that are quarantined, absent or reserved are not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from algorithms.b_matching.group import CompetingGroup
from algorithms.b_matching.port_counts import PortCounts
from algorithms.splitter_tree import choose_splitters

Pieces = tuple[int, ...]
"""The fan-outs of the splitters of one tree."""

Choose = Callable[[int, Mapping[int, int]], Pieces | None]
"""(leaves, free splitters by fan-out) -> the fan-outs of the splitters to take for a tree with that many leaves, or
None.
"""


def by_count(max_splitters_per_tree: int | None = None) -> Choose:
    """Return a rule that chooses splitters by count alone (Blast, section III-C, constraint 1).

    Parameters
    ----------
    max_splitters_per_tree : int, optional
        Maximum number of splitters in a tree, the paper's k; None: no limit.

    Returns
    -------
    Choose
        (leaves, free splitters by fan-out) -> fan-outs of the splitters to take, or None.

    Examples
    --------
    >>> by_count()(3, {4: 2}), by_count()(5, {4: 2}), by_count(max_splitters_per_tree=1)(5, {4: 2})
    ((4,), (4, 4), None)
    """
    return partial(choose_splitters, max_splitters_per_tree=max_splitters_per_tree)


class Feasibility:
    """Free ports and splitters, and a test whether a group fits.

    Parameters
    ----------
    budgets : sequence of int
        Number of free ports of each vertex.
    pool : mapping of int to int
        Fan-out to the number of free splitters.
    choose : Choose, optional
        Rule that chooses the splitters of a tree; None: `by_count()`.

    Attributes
    ----------
    full : int
        Vertices without a free port, as bits.
    pool : mapping of int to int
        Fan-out to the number of free splitters, 0 for other fan-outs.
    """

    __slots__ = ("_choose", "_left", "full", "pool")

    def __init__(self, budgets: Sequence[int], pool: Mapping[int, int], choose: Choose | None = None) -> None:
        self._left = PortCounts(budgets)
        self._choose = choose or by_count()
        self.pool = defaultdict(int, pool)
        self.full = self._left.empty

    @property
    def open(self) -> int:
        """Vertices with a free port, as bits."""
        return self._left.open

    def copy(self) -> Feasibility:
        """Return an independent copy.

        Returns
        -------
        Feasibility
            With the same free resources and the same rule.
        """
        other = Feasibility.__new__(Feasibility)
        other._left, other._choose = self._left.copy(), self._choose
        other.pool, other.full = self.pool.copy(), self.full
        return other

    def choosing(self, choose: Choose) -> Feasibility:
        """Return a copy that chooses the splitters of a tree by another rule.

        Parameters
        ----------
        choose : Choose
            The rule of the copy.

        Returns
        -------
        Feasibility
            With the same free resources.
        """
        other = self.copy()
        other._choose = choose
        return other

    def fit(self, group: CompetingGroup) -> Pieces | None:
        """Return the splitters that would serve `group` now.

        Parameters
        ----------
        group : Group
            The group to test; it takes one port at each of its vertices.

        Returns
        -------
        Pieces or None
            Fan-outs, empty for a plain cross-connect; None if the group does not fit.
        """
        return None if self.full & group.ports else self.splitters(group.leaves)

    def splitters(self, leaves: int) -> Pieces | None:
        """Return the splitters that a tree would take now.

        Parameters
        ----------
        leaves : int
            Number of leaves of the tree.

        Returns
        -------
        Pieces or None
            Fan-outs, empty for a single leaf; None if the rule finds no tree with the free splitters.
        """
        return () if leaves <= 1 else self._choose(leaves, self.pool)

    def left(self, vertex: int) -> int:
        """Return the number of free ports of a vertex.

        Parameters
        ----------
        vertex : int
            Number of the port vertex, from 0.

        Returns
        -------
        int
            Negative if ports failed while a group uses them.
        """
        return self._left[vertex]

    def take(self, group: CompetingGroup, pieces: Pieces) -> None:
        """Reserve the resources of a group.

        Parameters
        ----------
        group : Group
            The group to serve.
        pieces : Pieces
            Fan-outs of the splitters of its tree.

        Raises
        ------
        IndexError
            If the group has a vertex that does not exist.
        """
        self._left.take(group.ports)
        self.full = self._left.empty
        for fan_out in pieces:
            self.pool[fan_out] -= 1

    def give_back(self, group: CompetingGroup, pieces: Pieces) -> int:
        """Undo `take`.

        Parameters
        ----------
        group : Group
            The group that was served.
        pieces : Pieces
            Fan-outs of the splitters of its tree.

        Returns
        -------
        int
            Vertices that had no free port and now have one, as bits.

        Raises
        ------
        IndexError
            If the group has a vertex that does not exist.
        """
        freed = self._left.give_back(group.ports)
        self.full = self._left.empty
        for fan_out in pieces:
            self.pool[fan_out] += 1
        return freed

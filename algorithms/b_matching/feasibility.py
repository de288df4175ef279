"""What is left of one optical switch as the matching sees it: ports by vertex, splitters by size.

Sets of vertices are integers (see `group`), so that "has every rack of this group a free port" is one AND, however
many racks there are. Elements that are quarantined, away or held are simply not counted in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from algorithms.b_matching.group import Group
from algorithms.b_matching.port_counts import PortCounts
from algorithms.splitter_tree import choose_splitters

Pieces = tuple[int, ...]
"""The splitters of one tree, by their ways."""

Choose = Callable[[int, Mapping[int, int]], Pieces | None]
"""(leaves, free splitters by ways) -> the splitters to take for a tree with that many leaves, or None."""


def by_count(max_splitters_per_tree: int | None = None) -> Choose:
    """Choose by the counting rule alone (Blast, section III-C, constraint 1), at most `max_splitters_per_tree` in a
    tree.

    Parameters
    ----------
    max_splitters_per_tree : int, optional
        The paper's k; None: no limit.

    Returns
    -------
    Choose
        (leaves, pool of ways to counts) -> ways of the splitters to take, or None.

    Examples
    --------
    >>> by_count()(3, {4: 2}), by_count()(5, {4: 2}), by_count(max_splitters_per_tree=1)(5, {4: 2})
    ((4,), (4, 4), None)
    """
    return partial(choose_splitters, max_splitters_per_tree=max_splitters_per_tree)


class Feasibility:
    """Free ports and splitters, and which groups still fit.

    `budgets[v]` is the number of free ports of vertex v, `pool` maps ways to free splitters, `choose` builds trees.
    """

    __slots__ = ("_choose", "_left", "full", "pool")

    def __init__(self, budgets: Sequence[int], pool: Mapping[int, int], choose: Choose | None = None) -> None:
        self._left = PortCounts(budgets)
        self._choose = choose or by_count()
        self.pool = defaultdict(int, pool)
        self.full = self._left.empty

    def copy(self) -> Feasibility:
        """The same, to try something on."""
        other = Feasibility.__new__(Feasibility)
        other._left, other._choose = self._left.copy(), self._choose
        other.pool, other.full = self.pool.copy(), self.full
        return other

    def choosing(self, choose: Choose) -> Feasibility:
        """The same, with another rule for the splitters of a tree."""
        other = self.copy()
        other._choose = choose
        return other

    def fit(self, group: Group) -> Pieces | None:
        """The splitters that would serve `group` now (none for a plain cross-connect), or None if it does not fit."""
        return None if self.full & group.ports else self.splitters(group.leaves)

    def splitters(self, leaves: int) -> Pieces | None:
        """The splitters that a tree with so many leaves would take now, or None if there are not enough."""
        return () if leaves <= 1 else self._choose(leaves, self.pool)

    def left(self, vertex: int) -> int:
        """How many ports this vertex has left."""
        return self._left[vertex]

    def take(self, group: Group, pieces: Pieces) -> None:
        """Account for `group` being served with `pieces`."""
        self._left.take(group.ports)
        self.full = self._left.empty
        for fan_out in pieces:
            self.pool[fan_out] -= 1

    def give_back(self, group: Group, pieces: Pieces) -> int:
        """Undo `take`; the vertices that had been full and are no more."""
        freed = self._left.give_back(group.ports)
        self.full = self._left.empty
        for fan_out in pieces:
            self.pool[fan_out] += 1
        return freed

"""Free resources of one optical switch as the matching models them: ports by vertex, splitters by size.

Sets of vertices are integers (see `group`), so that the test whether every rack of a group has a free port is one AND
operation. Elements that are quarantined, absent or reserved are not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from algorithms.b_matching.group import Group
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

    `budgets[v]` is the number of free ports of vertex v, `pool` maps fan-out to free splitters, `choose` builds trees.
    """

    __slots__ = ("_choose", "_left", "full", "pool")

    def __init__(self, budgets: Sequence[int], pool: Mapping[int, int], choose: Choose | None = None) -> None:
        self._left = PortCounts(budgets)
        self._choose = choose or by_count()
        self.pool = defaultdict(int, pool)
        self.full = self._left.empty

    def copy(self) -> Feasibility:
        """Return an independent copy."""
        other = Feasibility.__new__(Feasibility)
        other._left, other._choose = self._left.copy(), self._choose
        other.pool, other.full = self.pool.copy(), self.full
        return other

    def choosing(self, choose: Choose) -> Feasibility:
        """Return a copy that chooses the splitters of a tree by another rule."""
        other = self.copy()
        other._choose = choose
        return other

    def fit(self, group: Group) -> Pieces | None:
        """Return the splitters that would serve `group` now (none for a plain cross-connect), or None if it does not
        fit.
        """
        return None if self.full & group.ports else self.splitters(group.leaves)

    def splitters(self, leaves: int) -> Pieces | None:
        """Return the splitters that a tree with `leaves` leaves would take now, or None if there are not enough."""
        return () if leaves <= 1 else self._choose(leaves, self.pool)

    def left(self, vertex: int) -> int:
        """Return the number of free ports of a vertex."""
        return self._left[vertex]

    def take(self, group: Group, pieces: Pieces) -> None:
        """Reserve the resources of `group`, served with `pieces`."""
        self._left.take(group.ports)
        self.full = self._left.empty
        for fan_out in pieces:
            self.pool[fan_out] -= 1

    def give_back(self, group: Group, pieces: Pieces) -> int:
        """Undo `take`; return the vertices that were full and no longer are, as bits."""
        freed = self._left.give_back(group.ports)
        self.full = self._left.empty
        for fan_out in pieces:
            self.pool[fan_out] += 1
        return freed

"""Small counts of many vertices, changed for a whole set of vertices at once.

Counts are bit-sliced: plane k is an integer that holds bit k of every vertex's count. Subtracting one at each vertex of
a set is then a subtraction with borrow over the planes: a few operations on whole integers, however large the set.
"""

from __future__ import annotations

from collections.abc import Sequence

from algorithms.b_matching.group import members


class PortCounts:
    """The number of free ports of each vertex; `empty` is the set of vertices with none, as bits.

    A count may go below zero (a port fails while a group uses it); negative counts are stored apart as debts.
    """

    __slots__ = ("_debts", "_everyone", "_indebted", "_planes", "empty")

    def __init__(self, counts: Sequence[int]) -> None:
        self._everyone = (1 << len(counts)) - 1
        self._debts = {vertex: -count for vertex, count in enumerate(counts) if count < 0}
        self._indebted = sum(1 << vertex for vertex in self._debts)
        whole = [max(0, count) for count in counts]
        self._planes = [_plane(whole, k) for k in range(max(whole, default=0).bit_length())]
        self.empty = _plane([count == 0 for count in whole], 0)

    @property
    def open(self) -> int:
        """Vertices with a positive count, as bits."""
        return self._everyone ^ self.empty

    def copy(self) -> PortCounts:
        """Return an independent copy."""
        other = PortCounts.__new__(PortCounts)
        other._everyone, other.empty, other._indebted = self._everyone, self.empty, self._indebted
        other._planes, other._debts = self._planes[:], self._debts.copy()
        return other

    def __getitem__(self, vertex: int) -> int:
        if vertex in self._debts:
            return -self._debts[vertex]
        return sum((plane >> vertex & 1) << k for k, plane in enumerate(self._planes))

    def take(self, vertices: int) -> None:
        """Subtract one at each vertex of the set.

        Parameters
        ----------
        vertices : int
            A bit for each vertex.

        Raises
        ------
        IndexError
            If the set has a vertex that does not exist.
        """
        if vertices > self._everyone:
            raise IndexError(f"there is no vertex {vertices.bit_length() - 1}")
        if short := vertices & self.empty:
            vertices ^= short
            self._indebted |= short
            for vertex in members(short):
                self._debts[vertex] = self._debts.get(vertex, 0) + 1
        left = 0
        for k, plane in enumerate(self._planes):
            self._planes[k] = after = plane ^ vertices
            vertices &= after
            left |= after
        self.empty = self._everyone ^ left

    def give_back(self, vertices: int) -> int:
        """Add one at each vertex of the set.

        Parameters
        ----------
        vertices : int
            A bit for each vertex.

        Returns
        -------
        int
            Vertices that were empty and no longer are, as bits.

        Raises
        ------
        IndexError
            If the set has a vertex that does not exist.
        """
        if vertices > self._everyone:
            raise IndexError(f"there is no vertex {vertices.bit_length() - 1}")
        if indebted := vertices & self._indebted:
            vertices ^= indebted
            self._pay(indebted)
        freed = self.empty & vertices
        self.empty ^= freed
        for k, plane in enumerate(self._planes):
            self._planes[k] = plane ^ vertices
            vertices &= plane
        if vertices:
            self._planes.append(vertices)
        return freed

    def _pay(self, indebted: int) -> None:
        for vertex in members(indebted):
            self._debts[vertex] -= 1
            if not self._debts[vertex]:
                del self._debts[vertex]
                self._indebted ^= 1 << vertex


def _plane(counts: Sequence[int], k: int) -> int:
    """Return bit k of every count."""
    return int("".join("01"[count >> k & 1] for count in reversed(counts)) or "0", 2)

"""Sets of count vectors as integers: a bit for every vector, so that adding two sets is a series of shifts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

Vector = tuple[int, ...]


class CountsBox:
    """Vectors from zero to `maxima`; vectors whose weighted sum exceeds `heaviest` are excluded.

    A vector's bit is its place in a box twice as wide, so that the sum of two vectors never overflows into a neighbor.
    """

    def __init__(self, maxima: Vector, weights: Vector, heaviest: int | None = None) -> None:
        self.maxima = maxima
        self._strides = tuple(itertools.accumulate((2 * n + 1 for n in maxima[:-1]), lambda x, y: x * y, initial=1))
        self._mask = 0
        for vector in itertools.product(*(range(n + 1) for n in maxima)):
            if heaviest is None or sum(w * n for w, n in zip(weights, vector, strict=True)) <= heaviest:
                self._mask |= 1 << self.bit(vector)

    def bit(self, vector: Vector) -> int:
        """Return the place of a vector."""
        return sum(n * stride for n, stride in zip(vector, self._strides, strict=False))

    def vector(self, bit: int) -> Vector:
        """Return the vector at a place."""
        found = []
        for stride in reversed(self._strides[: len(self.maxima)]):
            count, bit = divmod(bit, stride)
            found.append(count)
        return tuple(reversed(found))

    def sums(self, first: int, second: int) -> int:
        """Return every sum of a vector of one set and a vector of the other."""
        fewer, more = sorted((first, second), key=int.bit_count)
        found = 0
        for bit in bits_of(fewer):
            found |= more << bit
        return found & self._mask

    def add_one(self, index: int, vectors: int) -> int:
        """Return the vectors with one more at `index`."""
        return (vectors << self._strides[index]) & self._mask

    def less_one(self, index: int, bit: int) -> int | None:
        """Return the place of the vector with one less at `index`, or None if it has none."""
        return bit - self._strides[index] if self.vector(bit)[index] else None

    def difference(self, bit: int, other: int) -> int | None:
        """Return the place of the difference of two vectors, or None if it is negative anywhere."""
        mine, theirs = self.vector(bit), self.vector(other)
        return bit - other if all(a >= b for a, b in zip(mine, theirs, strict=True)) else None


def bits_of(vectors: int) -> Iterator[int]:
    """Yield the places that are set, lowest first.

    Parameters
    ----------
    vectors : int
        A set as bits.

    Yields
    ------
    int
        Place of a set bit. O(length of the integer) for all of them.

    Examples
    --------
    >>> list(bits_of(0b1010))
    [1, 3]
    """
    # A scan of the text is linear; `x & -x` would copy the integer for every bit.
    for place, digit in enumerate(reversed(bin(vectors)[2:])):
        if digit == "1":
            yield place


class CountPacking:
    """Count vectors as integers that are compared by one subtraction: a borrow clears the guard bit above its count."""

    def __init__(self, maxima: Vector) -> None:
        widths = [n.bit_length() + 1 for n in maxima]
        ends = list(itertools.accumulate(widths))
        self.shifts = tuple(end - width for end, width in zip(ends, widths, strict=True))
        self.guards = sum(1 << (end - 1) for end in ends)

    def pack(self, vector: Vector) -> int:
        """Return the vector as an integer, guards not set."""
        return sum(n << shift for n, shift in zip(vector, self.shifts, strict=True))

    def covers(self, more: int, less: int) -> bool:
        """Return whether no count in `less` exceeds that in `more`."""
        return ((more | self.guards) - less) & self.guards == self.guards

"""Which segments of a transfer are held: the one structure that every carrier fills."""

from __future__ import annotations

from collections.abc import Iterator

Range = tuple[int, int]
"""(first segment, number of segments)."""


class Bitmap:
    """A set of segment numbers from 0 to `size` - 1."""

    # One byte a segment: bytearray's own search and count then run at memory speed, which bits in Python cannot.
    __slots__ = ("_marks", "held", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0
        self._marks = bytearray(size)

    def __contains__(self, index: int) -> bool:
        return self._marks[index] != 0

    def add(self, index: int) -> bool:
        """Add one segment; False if it was held already."""
        if self._marks[index]:
            return False
        self._marks[index] = 1
        self.held += 1
        return True

    def add_range(self, first: int, count: int) -> None:
        """Add `count` segments from `first` on."""
        stop = first + count
        if first < 0 or count < 0 or stop > self.size:
            raise IndexError(f"segments {first} to {stop} are not in 0 to {self.size}")
        self.held += count - self._marks.count(1, first, stop)
        self._marks[first:stop] = b"\x01" * count

    def discard(self, index: int) -> None:
        """Remove one segment, if it is held."""
        self.held -= self._marks[index]
        self._marks[index] = 0

    def first_missing(self, start: int = 0) -> int:
        """The lowest segment from `start` on that is not held, or `size`."""
        found = self._marks.find(0, start)
        return self.size if found < 0 else found

    def first_held(self, start: int = 0) -> int:
        """The lowest segment from `start` on that is held, or `size`."""
        found = self._marks.find(1, start)
        return self.size if found < 0 else found

    def missing(self, start: int, stop: int) -> Iterator[Range]:
        """The gaps between `start` and `stop` (exclusive), in order, each as long as it can be."""
        first = self.first_missing(start)
        while first < stop:
            end = min(self.first_held(first), stop)
            yield first, end - first
            first = self.first_missing(end)

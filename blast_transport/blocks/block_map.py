"""Which blocks of a transfer are held: the one structure that every transport fills."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

Range = tuple[int, int]
"""(first, number)."""

_GROWTH = 1 << 12
"""Marks to add at once to the map of a stream, whose size is unknown."""


def runs_of(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield increasing numbers as runs (first, stop) of consecutive ones."""
    begin = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
            yield numbers[begin], numbers[place - 1] + 1
            begin = place


class _Missing(Protocol):
    def missing(self, start: int, stop: int) -> Iterator[Range]:
        """Yield the missing blocks, as a `BlockMap` does."""


def count_held(held: _Missing, ranges: Iterable[Range]) -> int:
    """Return how many of the blocks in `ranges` are held."""
    return sum(
        count - sum(number for _, number in held.missing(first, first + count)) for first, count in ranges if count
    )


class BlockMap:
    """A set of block numbers. It grows as they come, so that a stream needs no size."""

    # One byte a block: bytearray's own search and count then run at memory speed, which bits in Python cannot.
    __slots__ = ("_marks", "held")

    def __init__(self) -> None:
        self.held = 0
        self._marks = bytearray()

    def __contains__(self, block: int) -> bool:
        return block < len(self._marks) and self._marks[block] != 0

    def add(self, block: int) -> bool:
        """Add one block; return false if it was held already."""
        if block >= len(self._marks):
            self._grow(block + 1)
        if self._marks[block]:
            return False
        self._marks[block] = 1
        self.held += 1
        return True

    def add_range(self, first: int, count: int) -> None:
        """Add `count` blocks from `first` on."""
        stop = first + count
        if stop > len(self._marks):
            self._grow(stop)
        self.held += count - self._marks.count(1, first, stop)
        self._marks[first:stop] = b"\x01" * count

    def discard(self, block: int) -> None:
        """Remove one block, if it is held."""
        if block in self:
            self._marks[block] = 0
            self.held -= 1

    def cut(self, stop: int) -> None:
        """Remove every block from `stop` on."""
        self.held -= self._marks.count(1, stop)
        del self._marks[stop:]

    def intersect(self, other: BlockMap) -> None:
        """Remove every block that `other` does not hold."""
        # Marks are 0 or 1: one operation on all of them costs what copying them does.
        size = min(len(self._marks), len(other._marks))
        both = int.from_bytes(self._marks[:size], "little") & int.from_bytes(other._marks[:size], "little")
        self._marks = bytearray(both.to_bytes(size, "little"))
        self.held = self._marks.count(1)

    def first(self) -> int | None:
        """Return the first held block, if any."""
        found = self._marks.find(1)
        return None if found < 0 else found

    def first_held(self, start: int, stop: int) -> int:
        """Return the first held block from `start` on, at most `stop`."""
        found = self._marks.find(1, start, stop)
        return stop if found < 0 else found

    def first_missing(self, start: int = 0) -> int:
        """Return the first block from `start` on that is not held."""
        found = self._marks.find(0, start)
        return max(start, len(self._marks)) if found < 0 else found

    def ranges(self) -> Iterator[Range]:
        """Yield the held blocks as ranges in order."""
        yield from self._runs(1, 0, len(self._marks))

    def missing(self, start: int, stop: int) -> Iterator[Range]:
        """Yield the missing blocks from `start` to before `stop`, as ranges in order."""
        # A stream may have 2^27 blocks, so blocks after the last mark are not checked one by one.
        end = max(start, self._marks.rfind(1, start, stop) + 1)
        yield from self._runs(0, start, end)
        if end < stop:
            yield end, stop - end

    def _runs(self, value: int, start: int, stop: int) -> Iterator[Range]:
        position = self._marks.find(value, start, stop)
        while position >= 0:
            end = self._marks.find(1 - value, position, stop)
            if end < 0:
                end = stop
            yield position, end - position
            position = self._marks.find(value, end, stop)

    def _grow(self, size: int) -> None:
        self._marks += bytes(max(size, len(self._marks) + _GROWTH) - len(self._marks))

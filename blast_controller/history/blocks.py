"""Consecutive moments as one text: their times, their numbers of changed rows, the names of these, and their deltas.

Columns instead of complete lines: similar data is adjacent, which reduces the size to a third.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from blast_controller.history.compression import DecompressionError
from blast_controller.history.deltas import changed, delta
from blast_controller.history.encoder import Difference, Rows
from blast_controller.history.lines import from_lines, to_lines

LATEST = 1 << 62
"""Microseconds."""


class Stamp(NamedTuple):
    """When a moment was: microseconds on the core's clock, and since 1970."""

    now: int
    wall: int


def stamp_of(now: float, wall: float) -> Stamp:
    """Convert from seconds."""
    return Stamp(round(now * 1e6), round(wall * 1e6))


@dataclass
class BlockText:
    """Moments that become one block."""

    stamps: list[Stamp] = field(default_factory=list)
    _counts: list[str] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _deltas: list[str] = field(default_factory=list)
    size: int = 0
    """About the length of the text."""

    @property
    def changes(self) -> int:
        """Return the total number of row changes."""
        return len(self._names)

    def add(self, stamp: Stamp, difference: Difference, before: Rows) -> None:
        """Add a moment, whose rows were `before`."""
        self.stamps.append(stamp)
        self._counts.append(str(len(difference)))
        # In order, so that what comes together goes in the same order.
        for name in sorted(difference):
            line = delta(name, before.get(name), difference[name])
            self._names.append(name)
            self._deltas.append(line)
            self.size += len(name) + len(line) + 2

    def extend(self, later: BlockText) -> None:
        """Add all moments of a later one."""
        self.stamps += later.stamps
        self._counts += later._counts
        self._names += later._names
        self._deltas += later._deltas
        self.size += later.size

    def text(self) -> str:
        """Return all of it."""
        times = _times(self.stamps)
        head = f"{len(self.stamps)} {self.changes}"
        return "\n".join([head, *times, *self._counts, *to_lines(self._names), *self._deltas])


def _times(stamps: list[Stamp]) -> Iterator[str]:
    """Yield each time relative to the previous one, in microseconds.

    It is the step of the core's clock and, if it differs, by how much more the other clock advanced.
    """
    before = stamps[0] if stamps else Stamp(0, 0)
    for stamp in stamps:
        now, wall = stamp.now - before.now, stamp.wall - before.wall
        yield str(now) if now == wall else f"{now} {wall - now}"
        before = stamp


class RecordedBlock:
    """A block that is read; the time of its first moment is stored separately.

    Raises DecompressionError, as `play` does.
    """

    def __init__(self, text: str, first: Stamp) -> None:
        head, *lines = text.split("\n")
        try:
            moments, changes = (int(number) for number in head.split(" "))
            if min(moments, changes) < 0 or len(lines) != 2 * (moments + changes):
                raise DecompressionError("a block's number of lines differs from its header")
            self.stamps = list(_stamps(lines[:moments], first))
            self._counts = [int(count) for count in lines[moments : 2 * moments]]
        except ValueError as error:
            raise DecompressionError("a block's numbers are malformed") from error
        names = 2 * moments
        self._names = from_lines(lines[names : names + changes])
        self._deltas = lines[names + changes :]
        if sum(self._counts) != changes or min(self._counts, default=0) < 0:
            raise DecompressionError("a block's number of changes differs from its header")

    def play(self, rows: Rows, moments: int) -> None:
        """Apply this number of moments to the rows."""
        count = sum(self._counts[:moments])
        for name, line in zip(self._names[:count], self._deltas[:count], strict=True):
            row = changed(name, rows.get(name), line)
            if row is None:
                rows.pop(name, None)
            else:
                rows[name] = row

    def changes_at(self) -> list[int]:
        """Return the number of rows that each moment changes."""
        return self._counts


def _stamps(lines: list[str], first: Stamp) -> Iterator[Stamp]:
    now, wall = first
    for line in lines:
        step, _, more = line.partition(" ")
        now += int(step)
        wall += int(step) + (int(more) if more else 0)
        if max(abs(now), abs(wall)) > LATEST:
            raise DecompressionError("a moment's time is malformed")
        yield Stamp(now, wall)

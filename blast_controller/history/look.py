"""One look into a recording's file: rows of its tables with valid values, or DamagedRecordingError."""

from __future__ import annotations

import sqlite3
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar, get_type_hints

from blast_controller.history.activity import ActivityPiece
from blast_controller.history.blocks import RecordedBlock, Stamp
from blast_controller.history.compression import DecompressionError, unpacked
from blast_controller.history.errors import DamagedRecordingError
from blast_controller.history.files import MOMENTS
from blast_controller.history.past import RecordedRun
from blast_controller.store.checksums import body_digest, digest_of

T = TypeVar("T")


class BlockRow(NamedTuple):
    """Moments `first` to `last`, the first of them at `now` and `wall` (microseconds); `begin` and `end` bound all."""

    first: int
    last: int
    run: int
    now: int
    wall: int
    begin: int
    end: int
    changes: int

    @property
    def stamp(self) -> Stamp:
        """Return the time of the first moment."""
        return Stamp(self.now, self.wall)


class BaseRow(NamedTuple):
    """All rows as of this moment, which is in no block where `alone`."""

    sequence: int
    run: int
    now: int
    wall: int
    changes: int
    alone: int


class RunRow(NamedTuple):
    """A run; times are microseconds."""

    number: int
    first: int
    last: int
    began: int
    seen: int
    epoch: int
    release: str
    instance: str
    reason: str


class RecordingQueries:
    """Queries of a recording's tables. The methods raise DamagedRecordingError, sqlite3.Error."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def blocks(self, rest: str, *values: int) -> list[BlockRow]:
        """Read blocks by the rest of a query."""
        return self._rows(BlockRow, f"SELECT * FROM block {rest}", values)

    def block(self, rest: str, *values: int) -> BlockRow | None:
        """Return the first of them."""
        return next(iter(self.blocks(f"{rest} LIMIT 1", *values)), None)

    def base(self, rest: str, *values: int) -> BaseRow | None:
        """Return the first of such bases."""
        return next(iter(self._rows(BaseRow, f"SELECT * FROM base {rest} LIMIT 1", values)), None)

    def runs(self, rest: str, *values: int) -> list[RecordedRun]:
        """Read runs by the rest of a query."""
        rows = self._rows(RunRow, f"SELECT * FROM run {rest}", values)
        return [
            RecordedRun(
                number=row.number,
                first=row.first,
                began=row.began / 1e6,
                seen=row.seen / 1e6,
                epoch=row.epoch,
                release=row.release,
                instance=row.instance,
                reason=row.reason,
            )
            for row in rows
        ]

    def pieces(self, begin: int, end: int) -> list[ActivityPiece]:
        """Return the activity between two wall times."""
        blocks = self.blocks("WHERE most >= ? AND least <= ?", begin, end)
        bases = self._rows(BaseRow, "SELECT * FROM base WHERE alone AND wall BETWEEN ? AND ?", (begin, end))
        return [
            *(ActivityPiece(one.begin, one.end, one.last - one.first + 1, one.changes) for one in blocks),
            *(ActivityPiece(one.wall, one.wall, 1, one.changes) for one in bases),
        ]

    def check(self) -> None:
        """Compare every row but the bodies with its digest, and look whether one is missing."""
        runs = self._rows(RunRow, "SELECT * FROM run ORDER BY number", ())
        bases = self._rows(BaseRow, "SELECT * FROM base ORDER BY sequence", ())
        blocks = self.blocks("")
        numbers = [run.number for run in runs]
        if sorted({one.run for one in bases} | {one.run for one in blocks}) != numbers:
            raise DamagedRecordingError(self._path, "a run is missing")
        if runs and (not bases or _moments(bases, blocks) != (bases[0].sequence, runs[-1].last)):
            raise DamagedRecordingError(self._path, "moments are missing")

    def bodies(self, owner: int, kind: int) -> list[bytes]:
        """Return the bodies of a base or block of one kind."""
        query = "SELECT data, left, digest FROM body WHERE owner = ? AND kind = ? ORDER BY number"
        found = self._connection.execute(query, (owner, kind)).fetchall()
        for place, (data, left, digest) in enumerate(found):
            if left != len(found) - place or digest != body_digest(owner, kind, left, data):
                raise DamagedRecordingError(self._path, "a body has changed, or is missing")
        return [data for data, _, _ in found]

    def read(self, row: BlockRow) -> RecordedBlock:
        """Return the moments of a block."""
        try:
            block = RecordedBlock(only(self.bodies(row.first, MOMENTS)), row.stamp)
        except DecompressionError as error:
            raise DamagedRecordingError(self._path, str(error)) from error
        if len(block.stamps) != row.last - row.first + 1:
            raise DamagedRecordingError(self._path, "a block has a wrong number of moments")
        return block

    def _rows(self, kind: type[T], query: str, values: tuple[int, ...]) -> list[T]:
        types = list(get_type_hints(kind).values())
        found = self._connection.execute(query, values).fetchall()
        for *row, digest in found:
            if not all(isinstance(value, expected) for value, expected in zip(row, types, strict=True)):
                raise DamagedRecordingError(self._path, "a value in it has a wrong type")
            if digest != digest_of(*row):
                raise DamagedRecordingError(self._path, "a value in it has changed")
        return [kind(*row) for *row, _ in found]


def _moments(bases: list[BaseRow], blocks: list[BlockRow]) -> tuple[int, int] | None:
    """Return the first and the last of the moments that bases and blocks have without a gap; None if there is one."""
    spans = [(one.first, one.last) for one in blocks] + [(one.sequence, one.sequence) for one in bases if one.alone]
    if not bases[0].alone:
        # It ends a block that was dropped.
        spans.append((bases[0].sequence, bases[0].sequence))
    spans.sort()
    is_whole = all(before[1] + 1 == after[0] for before, after in pairwise(spans))
    return (spans[0][0], spans[-1][1]) if is_whole else None


def only(bodies: list[bytes]) -> str:
    """Return the text of the only body. Raises DecompressionError."""
    if len(bodies) != 1:
        raise DecompressionError("a block does not have exactly one body")
    return unpacked(bodies[0])

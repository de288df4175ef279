"""One look into a recording's file: rows of its tables, whose values are what they should be, or Damaged."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple, TypeVar, get_type_hints

from blast_controller.recording.activity import Piece
from blast_controller.recording.blocks import Block, Stamp
from blast_controller.recording.compression import Unreadable, unpacked
from blast_controller.recording.errors import Damaged
from blast_controller.recording.files import MOMENTS
from blast_controller.recording.past import Run

T = TypeVar("T")


class BlockRow(NamedTuple):
    """Moments `first` to `last`, the first of them at `now` and `wall` (microseconds)."""

    first: int
    last: int
    run: int
    now: int
    wall: int

    @property
    def stamp(self) -> Stamp:
        """When the first moment was."""
        return Stamp(self.now, self.wall)


class BaseRow(NamedTuple):
    """All rows are kept as of this moment."""

    sequence: int
    run: int
    now: int
    wall: int


_BLOCK, _BASE = "SELECT first, last, run, now, wall FROM block", "SELECT sequence, run, now, wall FROM base"
_RUN = "SELECT number, first, began / 1e6, seen / 1e6, epoch, release, instance, reason FROM run"


class Look:
    """What a connection shows. Raises Damaged, and what SQLite does."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def blocks(self, rest: str, *values: int) -> list[BlockRow]:
        """Blocks, by the rest of a query."""
        return self._rows(BlockRow, f"{_BLOCK} {rest}", values)

    def block(self, rest: str, *values: int) -> BlockRow | None:
        """The first of them."""
        return next(iter(self.blocks(f"{rest} LIMIT 1", *values)), None)

    def base(self, rest: str, *values: int) -> BaseRow | None:
        """The first of such bases."""
        return next(iter(self._rows(BaseRow, f"{_BASE} {rest} LIMIT 1", values)), None)

    def runs(self, rest: str, *values: int) -> list[Run]:
        """Runs."""
        return self._rows(Run, f"{_RUN} {rest}", values)

    def pieces(self, begin: int, end: int) -> list[Piece]:
        """What happened between two wall times."""
        query = (
            "SELECT least, most, last - first + 1, changes FROM block WHERE most >= ?1 AND least <= ?2 "
            "UNION ALL SELECT wall, wall, 1, changes FROM base WHERE alone AND wall BETWEEN ?1 AND ?2"
        )
        return self._rows(Piece, query, (begin, end))

    def bodies(self, owner: int, kind: int) -> list[bytes]:
        """What a base or block holds of a kind."""
        query = "SELECT data FROM body WHERE owner = ? AND kind = ? ORDER BY number"
        found = [data for (data,) in self._connection.execute(query, (owner, kind))]
        if not all(isinstance(data, bytes) for data in found):
            raise Damaged(self._path, "a body is none")
        return found

    def read(self, row: BlockRow) -> Block:
        """The moments of a block."""
        try:
            block = Block(only(self.bodies(row.first, MOMENTS)), row.stamp)
        except Unreadable as error:
            raise Damaged(self._path, str(error)) from error
        if len(block.stamps) != row.last - row.first + 1:
            raise Damaged(self._path, "a block has not as many moments as it should")
        return block

    def _rows(self, kind: type[T], query: str, values: tuple[int, ...]) -> list[T]:
        types = list(get_type_hints(kind).values())
        found = self._connection.execute(query, values).fetchall()
        for row in found:
            if not all(isinstance(value, wanted) for value, wanted in zip(row, types, strict=True)):
                raise Damaged(self._path, "a value in it is of another kind")
        return [kind(*row) for row in found]


def only(bodies: list[bytes]) -> str:
    """The text of the only body. Raises Unreadable."""
    if len(bodies) != 1:
        raise Unreadable("a block has not one body")
    return unpacked(bodies[0])

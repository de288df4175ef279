"""Writes a recording: a base of all rows, then blocks of moments, and another base when these have grown too much.

Moments since the latest block are stored as pieces, one for each flush; a block replaces its pieces. Every block has
its net change, so that a reader can skip blocks quickly.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from blast_controller.core.model.age_clock import AgeClock
from blast_controller.history.blocks import BlockText, Stamp
from blast_controller.history.compression import packed, packed_for_speed, packed_soon
from blast_controller.history.encoder import Difference, Rows
from blast_controller.history.errors import MissingRecordingError, RecordingInUseError
from blast_controller.history.files import ALL, MOMENTS, NET, open_to_write, typed_faults
from blast_controller.history.images import TEXT_BYTES, image_texts
from blast_controller.history.retention import MICROSECONDS_PER_DAY, Keep, RetainedGroup
from blast_controller.store.checksums import body_digest, digest_of
from blast_controller.store.errors import JournalLockedError, NotAccessibleError
from blast_controller.store.lock import FileLock

BLOCK_BYTES = 4 << 20
"""Of text; some ten times less in the file."""
MAX_PIECES = 600
LONGEST_BLOCK = MICROSECONDS_PER_DAY // 24
NETS_PER_BASE = 3.0
"""The maximum size of all nets since a base, as a multiple of the base's size."""
LONGEST_GROUP = MICROSECONDS_PER_DAY // 4
SHARE_OF_GROUP = 1 / 8
"""The maximum share of a group in all bytes: groups are dropped as a whole, so they must be small."""
MAX_VACUUMED = 2000
"""Pages returned to the disk at a time when the file may shrink."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The recording controller: its epoch, release and instance, and why the run begins."""

    epoch: int
    release: str
    instance: str
    reason: str


class Writer:
    """Sole writer of a file, used by one thread.

    All methods but `close` raise RecordingError, after which the writer can only be closed.
    """

    def __init__(self, path: Path, keep: Keep) -> None:
        self.path = path
        self.bytes = 0
        """The size of the file without its free pages."""
        self._keep = keep
        self._lock = FileLock(path)
        try:
            self._lock.acquire()
        except JournalLockedError as fault:
            raise RecordingInUseError(path, f"by process {fault.pid}" if fault.pid else "by another process") from fault
        except NotAccessibleError as fault:
            raise MissingRecordingError(path, f"no file can be created in {path.parent}") from fault
        try:
            self._connection = open_to_write(path)
            with typed_faults(path):
                self._run, self._sequence = self._latest()
                (newest,) = self._connection.execute("SELECT max(wall) FROM base").fetchone()
                self._ages = AgeClock(newest and newest / 1e6)
        except BaseException:
            self._lock.release()
            raise
        self._rows: Rows = {}
        self._base_bytes = self._nets_bytes = self._group_bytes = self._base_now = 0
        self._block, self._pending, self._pieces = BlockText(), BlockText(), 0
        self._run_row: tuple[int | str, ...] = ()
        self._before: Difference = {}
        """Rows that the block has changed, as they were before."""

    def _latest(self) -> tuple[int, int]:
        query = (
            "SELECT (SELECT coalesce(max(number), 0) FROM run), "
            "max((SELECT coalesce(max(last), 0) FROM block), (SELECT coalesce(max(sequence), 0) FROM base))"
        )
        run, sequence = self._connection.execute(query).fetchone()
        return int(run), int(sequence)

    def close(self) -> None:
        """Let go of the file."""
        with suppress(sqlite3.Error):
            self._connection.close()
        self._lock.release()

    # ---------------------------------------------------------------------------------------------- moments

    def begin(self, stamp: Stamp, rows: Rows, facts: RunFacts) -> None:
        """Begin a run with these rows."""
        self._close_block(stamp.wall)
        self._run += 1
        with self._transaction():
            self._run_row = (
                self._run,
                self._sequence + 1,
                self._sequence + 1,
                stamp.wall,
                stamp.wall,
                facts.epoch,
                facts.release,
                facts.instance,
                facts.reason,
            )
            self._insert_row("run", self._run_row)
            self._alone(stamp, rows, len(rows))
        self._trim(stamp.wall)

    def append(self, stamp: Stamp, difference: Difference) -> None:
        """Append a moment; the next `flush` writes it to disk."""
        size = sum(len(name) + len(row or "") for name, row in difference.items())
        if size > TEXT_BYTES:
            self._close_block(stamp.wall)
            self._take(difference)
            with self._transaction():
                self._alone(stamp, self._rows, len(difference))
                self._update_run(stamp.wall)
            return
        for name in difference:
            self._before.setdefault(name, self._rows.get(name))
        self._pending.add(stamp, difference, self._rows)
        self._take(difference)
        self._sequence += 1
        if self._is_block_full(stamp):
            self._close_block(stamp.wall)

    def flush(self, wall: int) -> None:
        """Let everything be in the file that has come up to this wall time."""
        pending = self._pending
        with self._transaction():
            if pending.stamps:
                first = self._sequence - len(pending.stamps) + 1
                self._insert_block(first, pending)
                self._insert(first, MOMENTS, [packed_soon(pending.text())])
                self._pieces += 1
            self._update_run(wall)
        self._block.extend(pending)
        self._pending = BlockText()

    def _take(self, difference: Difference) -> None:
        for name, row in difference.items():
            if row is None:
                self._rows.pop(name, None)
            else:
                self._rows[name] = row

    # ----------------------------------------------------------------------------------------------- blocks

    def _begin_block(self) -> None:
        self._block, self._pending, self._pieces = BlockText(), BlockText(), 0
        self._before = {}

    def _is_block_full(self, stamp: Stamp) -> bool:
        first = (self._block.stamps or self._pending.stamps)[0]
        return (
            self._block.size + self._pending.size > BLOCK_BYTES
            or self._pieces >= MAX_PIECES
            or abs(stamp.now - first.now) > LONGEST_BLOCK
        )

    def _close_block(self, wall: int) -> None:
        """Replace the pieces by one block, and add a base if it is due."""
        self._block.extend(self._pending)
        block = self._block
        if not block.stamps:
            return
        first = self._sequence - len(block.stamps) + 1
        body = packed(block.text())
        net = {name: row for name, old in self._before.items() if (row := self._rows.get(name)) != old}
        nets = [packed_for_speed(text) for text in image_texts(net)]
        with self._transaction():
            self._connection.execute("DELETE FROM body WHERE owner >= ?", (first,))
            self._connection.execute("DELETE FROM block WHERE first >= ?", (first,))
            self._insert_block(first, block)
            self._insert(first, MOMENTS, [body])
            self._insert(first, NET, nets)
            self._nets_bytes += sum(map(len, nets))
            self._group_bytes += len(body) + sum(map(len, nets))
            self._update_run(wall)
            if self._is_time_for_a_base(block.stamps[-1]):
                self._insert_base(block.stamps[-1], self._rows, None)
        self._begin_block()
        self._trim(wall)

    def _insert_block(self, first: int, block: BlockText) -> None:
        walls = [stamp.wall for stamp in block.stamps]
        last = first + len(walls) - 1
        values = (first, last, self._run, *block.stamps[0], min(walls), max(walls), block.changes)
        self._insert_row("block", values)

    def _insert_row(self, table: str, values: Sequence[int | str]) -> None:
        marks = ", ".join("?" * (len(values) + 1))
        self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", (*values, digest_of(*values)))

    def _update_run(self, wall: int) -> None:
        """Record that the run has been seen until `wall`, and that all of its moments are in the file."""
        number, first, _, began, _, *facts = self._run_row
        self._run_row = (number, first, self._sequence, began, wall, *facts)
        query = "UPDATE run SET last = ?, seen = ?, digest = ? WHERE number = ?"
        self._connection.execute(query, (self._sequence, wall, digest_of(*self._run_row), number))

    def _insert(self, owner: int, kind: int, bodies: Sequence[bytes]) -> None:
        rows = [
            (owner, kind, body, left, body_digest(owner, kind, left, body))
            for left, body in zip(range(len(bodies), 0, -1), bodies, strict=True)
        ]
        self._connection.executemany("INSERT INTO body (owner, kind, data, left, digest) VALUES (?, ?, ?, ?, ?)", rows)

    # ------------------------------------------------------------------------------------------------ bases

    def _is_time_for_a_base(self, stamp: Stamp) -> bool:
        return (
            self._nets_bytes > NETS_PER_BASE * self._base_bytes
            or self._group_bytes > SHARE_OF_GROUP * self._keep.bytes
            or abs(stamp.now - self._base_now) > LONGEST_GROUP
        )

    def _alone(self, stamp: Stamp, rows: Rows, changes: int) -> None:
        """Write a moment as a separate base, since it changes (nearly) all rows."""
        self._rows = dict(rows)
        self._sequence += 1
        self._begin_block()
        self._insert_base(stamp, rows, changes)

    def _insert_base(self, stamp: Stamp, rows: Rows, changes: int | None) -> None:
        bodies = [packed_for_speed(text) for text in image_texts(rows)]
        self._insert_row("base", (self._sequence, self._run, *stamp, changes or 0, int(changes is not None)))
        self._insert(self._sequence, ALL, bodies)
        self._base_bytes = self._group_bytes = sum(map(len, bodies))
        self._nets_bytes, self._base_now = 0, stamp.now

    # ------------------------------------------------------------------------------------------- what to keep

    def _trim(self, wall: int) -> None:
        """Drop the oldest group; of groups that are only too old one at a time, to keep delays short."""
        wall = int(self._ages.now(wall / 1e6, time.monotonic()) * 1e6)
        self.bytes = self._used()
        while (oldest := self._oldest()) is not None and self._keep.is_over(oldest, self.bytes, wall):
            too_large = self.bytes > self._keep.bytes
            self._drop_before(oldest.first)
            self.bytes = self._used()
            if not too_large:
                break
        with typed_faults(self.path):
            free = self._pragma("freelist_count")
            if free * self._pragma("page_size") > SHARE_OF_GROUP * self._keep.bytes:
                self._connection.execute(f"PRAGMA incremental_vacuum({MAX_VACUUMED})").fetchall()

    def _oldest(self) -> RetainedGroup | None:
        """Return the oldest group that is followed by another, as the sequence from which on things stay."""
        with typed_faults(self.path):
            bases = self._connection.execute("SELECT sequence, wall FROM base ORDER BY sequence LIMIT 2").fetchall()
            if len(bases) < 2:
                return None
            (_, wall), (following, _) = bases
            query = "SELECT max(most) FROM block WHERE first <= ?"
            (newest,) = self._connection.execute(query, (following,)).fetchone()
        return RetainedGroup(following, max(wall, newest if newest is not None else wall))

    def _drop_before(self, base: int) -> None:
        with self._transaction():
            # The block that ends at a base goes with those before it.
            self._connection.execute("DELETE FROM body WHERE owner < ? OR (owner = ? AND kind <> ?)", (base, base, ALL))
            self._connection.execute("DELETE FROM block WHERE first <= ?", (base,))
            self._connection.execute("DELETE FROM base WHERE sequence < ?", (base,))
            query = "DELETE FROM run WHERE number < (SELECT run FROM base WHERE sequence = ?)"
            self._connection.execute(query, (base,))

    def _used(self) -> int:
        with typed_faults(self.path):
            return (self._pragma("page_count") - self._pragma("freelist_count")) * self._pragma("page_size")

    def _pragma(self, name: str) -> int:
        (value,) = self._connection.execute(f"PRAGMA {name}").fetchone()
        return int(value)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with typed_faults(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    with suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
                raise

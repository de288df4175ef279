"""The journal in one SQLite file: write-ahead log, every commit synced (synchronous = FULL), one writer.

Only `COMMIT` waits for the disk. Trimming of the history does not wait, and checkpoints of the log mostly run beside
the commits; both are `compact`, called by a separate thread.

Rows are written and read in batches: for each statement and each fetched row, Python releases its lock and regains it
only when a busy thread yields, which takes longer than writing a hundred rows.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain as joined
from pathlib import Path
from typing import TypeVar

from blast_controller.core.model.records import Body, Record
from blast_controller.store.checksums import Sum, chained, thing_digest
from blast_controller.store.contents import StateRow
from blast_controller.store.errors import DamagedJournalError, JournalNotOpenError, NotAccessibleError
from blast_controller.store.files import create, typed_faults, wal_of
from blast_controller.store.holdings import Changes, Holdings
from blast_controller.store.interface import Entry, Loaded
from blast_controller.store.lock import FileLock
from blast_controller.store.reader import JournalReader
from blast_controller.store.retention import BYTES_BESIDE_BODY, RetainedEntry, Retention, size_of
from blast_controller.store.rows import EPOCH_KEY, EPOCH_KIND, EPOCH_NOTE, Row, decode, encode, to_row
from blast_controller.store.schema import CHAIN, ENTRY, STATE, TRIMMED, check_is_ours, check_is_whole
from blast_controller.store.sqlite_file import connect
from blast_controller.store.sqlite_rows import rows
from blast_controller.store.witness import Witness

T = TypeVar("T")

INSERT_ENTRIES = f"INSERT INTO journal ({ENTRY}, digest) VALUES {{}}"
INSERT_STATE = (
    "INSERT INTO state (first, kind, key, body, digest) VALUES {} "
    "ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body, digest = excluded.digest"
)
UPDATE_META = "INSERT OR REPLACE INTO meta (name, value) VALUES {}"
DELETE_STATE = (
    "WITH forgotten (kind, key) AS (VALUES {}) "
    "DELETE FROM state WHERE first IN (SELECT state.first FROM forgotten CROSS JOIN state USING (kind, key))"
)
DELETE_HELD = "DELETE FROM held WHERE element IN (VALUES {})"
INSERT_HELD = "INSERT INTO held (element, reservation) VALUES {}"
MAX_ROWS = 200
"""Of one statement."""
ENTRY_BYTES = f"COALESCE(LENGTH(body), 0) + {BYTES_BESIDE_BODY}"
TRIM_BATCH = 500
"""Entries dropped at a time: a few milliseconds at most for which a commit may have to wait."""
LONGEST_UNCARRIED = 1000
"""Entries that wait in the write-ahead log while there is history to drop."""
LONGEST_LOG = 1000
"""The size of the write-ahead log, in pages of 4 KiB, at which it is restarted."""


@dataclass(slots=True)
class _OpenedFile:
    """The connections of an open store, and where its history stands.

    `upkeep` writes without waiting for the disk. `history_bytes` is the size that the history is reckoned at.
    `carried_over` is the latest entry that need no longer be looked for in the write-ahead log. `state` and `chain` are
    the digests of the state and of the latest entry; `things` has `first` and the digest of each thing that is there.
    """

    writer: sqlite3.Connection
    upkeep: sqlite3.Connection
    reader: JournalReader
    holdings: Holdings
    epoch: int
    newest: int
    history_bytes: int
    witness: Witness
    state: Sum
    chain: int
    things: dict[tuple[str, str], tuple[int, int]]
    carried_over: int = 0


@dataclass(frozen=True, slots=True)
class _Commit:
    """The changes of a commit: the digests after it, and the changed objects; None: a removed one."""

    state: int
    chain: int
    things: dict[tuple[str, str], tuple[int, int] | None]


class SqliteStore:
    """A Store in the file `path`. `on_commit` receives the seconds that each commit waited for the disk.

    Its next epoch is at least `min_epoch`: see `blast journal take-over`.
    """

    def __init__(
        self,
        path: Path,
        retention: Retention | None = None,
        on_commit: Callable[[float], None] = lambda seconds: None,
        min_epoch: int = 0,
    ) -> None:
        self.path = path.resolve()
        self._min_epoch = min_epoch
        self.last_commit_seconds = 0.0
        self._retention = retention or Retention()
        self._on_commit = on_commit
        self._writing = threading.Lock()
        self._compacting = threading.Lock()
        self._opened: _OpenedFile | None = None
        self._to_close = ExitStack()

    # ------------------------------------------------------------------------------------------ open, close

    def open(self) -> Loaded:
        """Lock and open the file; create it on the first start.

        Raises JournalLockedError, NotAccessibleError, DamagedJournalError, JournalSchemaError, DiskFullError,
        DiskFailedError.
        """
        with ExitStack() as undo, typed_faults(self.path):
            lock = FileLock(self.path)
            lock.acquire()
            undo.callback(lock.release)
            is_new = self._create_if_missing()
            writer = self._connect(undo, synchronous="FULL")
            check_is_ours(writer, self.path)
            check_is_whole(writer, self.path)
            latest = writer.execute("SELECT at FROM journal ORDER BY sequence DESC LIMIT 1").fetchone()
            state, total, things = self._load(writer)
            holdings = Holdings(dict(writer.execute("SELECT element, reservation FROM held")))
            epoch, newest, chain = self._count_epoch(writer)
            witness = Witness(self.path)
            undo.callback(witness.close)
            witness.note(newest)
            (size,) = writer.execute(f"SELECT TOTAL({ENTRY_BYTES}) FROM journal").fetchone()
            upkeep = self._connect(undo, synchronous="NORMAL")
            # It is called again soon and must not delay commits for a reader.
            upkeep.execute("PRAGMA busy_timeout = 0")
            # Even without its log the file is then no older than this opening, and no epoch comes twice.
            upkeep.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            reader = JournalReader(self.path)
            undo.callback(reader.close)
            self._to_close = undo.pop_all()
        self._opened = _OpenedFile(
            writer, upkeep, reader, holdings, epoch, newest, int(size), witness, total, chain, things
        )
        return Loaded(epoch, state, is_new, written=latest[0] if latest else None)

    def close(self) -> None:
        """Carry the log over into the file and let go of it."""
        with self._compacting, self._writing:
            self._opened = None
            self._to_close.close()

    def _create_if_missing(self) -> bool:
        if self.path.exists():
            if not self.path.is_file():
                raise NotAccessibleError(self.path, "it is not a file")
            if self.path.stat().st_size == 0:
                raise DamagedJournalError(self.path, "it is empty")
            return False
        if wal_of(self.path).exists():
            raise DamagedJournalError(self.path, "it is missing, but its -wal file exists")
        create(self.path)
        return True

    def _connect(self, undo: ExitStack, synchronous: str) -> sqlite3.Connection:
        connection = connect(self.path, "rw")
        undo.callback(connection.close)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    def _load(
        self, connection: sqlite3.Connection
    ) -> tuple[dict[str, dict[str, Body]], Sum, dict[tuple[str, str], tuple[int, int]]]:
        """Load the state, the sum of its digests, and `things`; verify all digests of the journal."""
        state: dict[str, dict[str, Body]] = {}
        things: dict[tuple[str, str], tuple[int, int]] = {}
        try:
            for row in rows(connection, self.path):
                if isinstance(row, StateRow):
                    state.setdefault(row.kind, {})[row.key] = decode(row.body)
        except ValueError as error:
            raise DamagedJournalError(self.path, "a row of the state is not valid JSON") from error
        for kind, key, first, digest in connection.execute("SELECT kind, key, first, digest FROM state"):
            things[kind, key] = first, digest
        (total,) = connection.execute("SELECT value FROM meta WHERE name = ?", (STATE,)).fetchone()
        return state, Sum(total), things

    def _count_epoch(self, connection: sqlite3.Connection) -> tuple[int, int, int]:
        """Return the epoch that begins, the sequence of its first entry, and the digest of that."""

        def count() -> tuple[int, int, int]:
            raised = "UPDATE meta SET value = max(value + 1, ?) WHERE name = 'epoch' RETURNING value"
            found = connection.execute(raised, (self._min_epoch,))
            values = [value for (value,) in found]
            if not values:
                raise DamagedJournalError(self.path, "its epoch is missing")
            (newest,) = connection.execute("SELECT coalesce(max(sequence), 0) FROM journal").fetchone()
            (before,) = connection.execute("SELECT value FROM meta WHERE name = ?", (CHAIN,)).fetchone()
            body = encode({"epoch": values[0]})
            entry = (newest + 1, time.time(), values[0], EPOCH_KIND, EPOCH_KEY, EPOCH_NOTE, body)
            chain = chained(before, entry)
            _execute(connection, INSERT_ENTRIES, [(*entry, chain)])
            _execute(connection, UPDATE_META, [(CHAIN, chain)])
            return values[0], newest + 1, chain

        return self._transact(connection, count)

    # ------------------------------------------------------------------------------------------------ commit

    def commit(self, records: Sequence[Record], at: float) -> None:
        """Write all records or none, durably."""
        rows = [to_row(record) for record in records]
        if not rows:
            return
        with self._writing, typed_faults(self.path):
            opened = self._current()
            changes = opened.holdings.changes(rows)
            done = self._transact(opened.writer, lambda: _write(opened, rows, changes, at))
            _remember(opened, done)
            opened.holdings.apply(changes)
            opened.newest += len(rows)
            opened.witness.note(opened.newest)
            opened.history_bytes += sum(size_of(row.body) for row in rows)
        self._on_commit(self.last_commit_seconds)

    def _transact(self, connection: sqlite3.Connection, write: Callable[[], T]) -> T:
        written, self.last_commit_seconds = _transact(connection, write)
        return written

    # ----------------------------------------------------------------------------------------------- history

    def journal(self, after_sequence: int, limit: int) -> list[Entry]:
        """Read at most `limit` entries after `after_sequence`, oldest first; from any thread."""
        return self._current().reader.read(after_sequence, limit)

    def compact(self, at: float) -> bool:
        """Drop a batch of history, carry the log over into the file; return true if there is more to drop."""
        with self._compacting, typed_faults(self.path):
            opened = self._current()
            with self._writing:
                more = self._trim(opened, at)
            if opened.newest - opened.carried_over >= (LONGEST_UNCARRIED if more else 1):
                self._carry_over(opened)
            return more

    def _trim(self, opened: _OpenedFile, at: float) -> bool:
        lines = f"SELECT sequence, at, {ENTRY_BYTES} AS size FROM journal ORDER BY sequence LIMIT ?"
        query = f"SELECT json_group_array(json_array(sequence, at, size)) FROM ({lines})"
        (found,) = opened.upkeep.execute(query, (TRIM_BATCH,)).fetchone()
        oldest = [RetainedEntry(*line) for line in decode(found)]
        last = self._retention.last_expired(oldest, opened.newest, opened.history_bytes, at)
        if last:
            _transact(opened.upkeep, lambda: _drop(opened.upkeep, last))
            opened.history_bytes -= sum(line.size for line in oldest if line.sequence <= last)
        return len(oldest) == TRIM_BATCH and last == oldest[-1].sequence

    def _carry_over(self, opened: _OpenedFile) -> None:
        newest = opened.newest
        _, pages, carried_over = opened.upkeep.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if carried_over == pages:
            opened.carried_over = newest
        # With a commit always under way the log would never be found all carried over, and grow for ever.
        if pages >= LONGEST_LOG:
            with self._writing:
                opened.upkeep.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()

    def _current(self) -> _OpenedFile:
        if self._opened is None:
            raise JournalNotOpenError
        return self._opened


def _transact(connection: sqlite3.Connection, write: Callable[[], T]) -> tuple[T, float]:
    """Write all or nothing; return what `write` does, and the seconds that the commit took."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        written = write()
        started = time.perf_counter()
        connection.execute("COMMIT")
    except BaseException:
        # SQLite rolls back by itself after some errors; another error here would hide the first.
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise
    return written, time.perf_counter() - started


def _drop(connection: sqlite3.Connection, last: int) -> None:
    """Drop the history up to this entry, whose digest stays."""
    digest = "(SELECT digest FROM journal WHERE sequence = ?)"
    connection.execute(f"UPDATE meta SET value = {digest} WHERE name = ?", (last, TRIMMED))
    connection.execute("DELETE FROM journal WHERE sequence <= ?", (last,))


def _write(opened: _OpenedFile, rows: Sequence[Row], changes: Changes, at: float) -> _Commit:
    chain = opened.chain
    kept: dict[tuple[str, str], tuple[int, Row]] = {}
    forgotten: dict[tuple[str, str], None] = {}
    entries = []
    for sequence, row in enumerate(rows, opened.newest + 1):
        name = (row.kind, row.key)
        if row.body is None:
            kept.pop(name, None)
            forgotten[name] = None
        else:
            first, _ = kept.get(name, (sequence, row))
            kept[name] = (first, row)
        entry = (sequence, float(at), opened.epoch, row.kind, row.key, row.note, row.body)
        chain = chained(chain, entry)
        entries.append((*entry, chain))
    things: dict[tuple[str, str], tuple[int, int] | None] = dict.fromkeys(forgotten)
    written = []
    for name, (first, row) in kept.items():
        # A thing that is there keeps its place, unless this commit forgets it first.
        place = opened.things[name][0] if name in opened.things and name not in forgotten else first
        digest = thing_digest(place, *name, row.body or "", row.elements)
        things[name] = place, digest
        written.append((first, *name, row.body, digest))
    _execute(opened.writer, DELETE_HELD, [(element,) for element in changes if element in opened.holdings])
    _execute(opened.writer, INSERT_HELD, [change for change in changes.items() if change[1] is not None])
    _execute(opened.writer, DELETE_STATE, list(forgotten))
    _execute(opened.writer, INSERT_STATE, written)
    _execute(opened.writer, INSERT_ENTRIES, entries)
    state = Sum(opened.state.total)
    removed = [opened.things[name][1] for name in things if name in opened.things]
    state.change(removed, (digest for *_, digest in written))
    _execute(opened.writer, UPDATE_META, [(STATE, state.total), (CHAIN, chain)])
    return _Commit(state.total, chain, things)


def _remember(opened: _OpenedFile, done: _Commit) -> None:
    opened.state.total, opened.chain = done.state, done.chain
    for name, thing in done.things.items():
        if thing is None:
            opened.things.pop(name, None)
        else:
            opened.things[name] = thing


def _execute(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Carry out a statement for all rows, whose values take the place of `{}` in it."""
    for begin in range(0, len(rows), MAX_ROWS):
        some = rows[begin : begin + MAX_ROWS]
        row = f"({', '.join('?' * len(some[0]))})"
        connection.execute(statement.format(", ".join([row] * len(some))), list(joined.from_iterable(some)))

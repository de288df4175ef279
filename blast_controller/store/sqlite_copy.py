"""Copies a journal out of an SQLite file, and into one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path

from blast_controller.store.checksums import Sum, chained, thing_digest
from blast_controller.store.contents import Contents, JournalExistsError, StateRow, Written
from blast_controller.store.errors import DamagedJournalError, NotAccessibleError
from blast_controller.store.files import create, typed_faults, wal_of
from blast_controller.store.lock import FileLock
from blast_controller.store.schema import CHAIN, STATE, check_is_ours, check_is_whole
from blast_controller.store.sqlite_file import connect
from blast_controller.store.sqlite_rows import rows

MANY = 1000
"""Rows written at a time."""


@contextmanager
def contents_of_file(path: Path) -> Iterator[Contents]:
    """Yield the present contents of a journal, also while a controller writes to it.

    Raises NotAccessibleError, DamagedJournalError, JournalSchemaError.
    """
    # Exclude the caller's block: its faults are not the file's.
    with ExitStack() as undo:
        with typed_faults(path):
            if not path.is_file():
                raise NotAccessibleError(path, "there is no such file")
            connection = undo.enter_context(closing(connect(path, "ro")))
            connection.execute("BEGIN")
            check_is_ours(connection, path)
            check_is_whole(connection, path)
            found = connection.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
            if found is None:
                raise DamagedJournalError(path, "its epoch is missing")
            (epoch,) = found
            (sequence,) = connection.execute("SELECT coalesce(max(sequence), 0) FROM journal").fetchone()
        yield Contents(epoch, sequence, _rows(connection, path))


def copy_into_file(path: Path, contents: Contents) -> None:
    """Make a journal of these contents, which appears whole or not at all.

    Raises JournalExistsError, JournalLockedError, NotAnExportError, JournalError.
    """
    with typed_faults(path):
        _check_nothing_there(path)
        lock = FileLock(path)
        lock.acquire()
        try:
            _check_nothing_there(path)
            create(path, lambda connection: _fill(connection, contents))
        finally:
            lock.release()


def _check_nothing_there(path: Path) -> None:
    if path.exists() or wal_of(path).exists():
        raise JournalExistsError(path)


def _rows(connection: sqlite3.Connection, path: Path) -> Iterator[StateRow | Written]:
    with typed_faults(path):
        yield from rows(connection, path)


def _fill(connection: sqlite3.Connection, contents: Contents) -> None:
    connection.execute("BEGIN IMMEDIATE")
    state, chain = Sum(), 0
    while some := list(islice(contents.rows, MANY)):
        things = [(*row[:4], thing_digest(*row)) for row in some if isinstance(row, StateRow)]
        state.change((), (digest for *_, digest in things))
        entries = []
        for row in some:
            if isinstance(row, Written):
                chain = chained(chain, row)
                entries.append((*row, chain))
        connection.executemany("INSERT INTO state VALUES (?, ?, ?, ?, ?)", things)
        held = [(element, row.key) for row in some if isinstance(row, StateRow) for element in row.elements]
        connection.executemany("INSERT INTO held VALUES (?, ?)", held)
        connection.executemany("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?)", entries)
    known = {"epoch": contents.epoch, STATE: state.total, CHAIN: chain}
    connection.executemany("UPDATE meta SET value = ? WHERE name = ?", [(value, name) for name, value in known.items()])
    connection.execute("COMMIT")

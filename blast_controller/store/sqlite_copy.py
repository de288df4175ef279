"""Copies a journal out of an SQLite file, and into one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path

from blast_controller.store.contents import AlreadyThere, Contents, Thing, Written
from blast_controller.store.errors import NotAccessible
from blast_controller.store.files import create, typed_faults, wal_of
from blast_controller.store.interface import RESERVATION
from blast_controller.store.lock import FileLock
from blast_controller.store.schema import check_is_ours, check_is_whole
from blast_controller.store.sqlite_file import connect

MANY = 1000
"""Rows written at a time."""


@contextmanager
def contents_of_file(path: Path) -> Iterator[Contents]:
    """A journal as it is now, also while a controller writes on. Raises NotAccessible, Damaged, NewerSchema."""
    # Not around what is done with the contents: whose faults are not the file's.
    with ExitStack() as undo:
        with typed_faults(path):
            if not path.is_file():
                raise NotAccessible(path, "there is no such file")
            connection = undo.enter_context(closing(connect(path, "ro")))
            connection.execute("BEGIN")
            check_is_ours(connection, path)
            check_is_whole(connection, path)
            (epoch,) = connection.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
            (sequence,) = connection.execute("SELECT coalesce(max(sequence), 0) FROM journal").fetchone()
        yield Contents(epoch, sequence, _rows(connection, path))


def copy_into_file(path: Path, contents: Contents) -> None:
    """Make a journal of these contents, which appears whole or not at all.

    Raises AlreadyThere, Locked, NotACopy, StoreFault.
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
        raise AlreadyThere(path)


def _rows(connection: sqlite3.Connection, path: Path) -> Iterator[Thing | Written]:
    with typed_faults(path):
        yield from _all_rows(connection)


def _all_rows(connection: sqlite3.Connection) -> Iterator[Thing | Written]:
    held: dict[str, set[str]] = {}
    for element, reservation in connection.execute("SELECT element, reservation FROM held"):
        held.setdefault(reservation, set()).add(element)
    for first, kind, key, body in connection.execute("SELECT first, kind, key, body FROM state ORDER BY first"):
        yield Thing(first, kind, key, body, frozenset(held.get(key, ()) if kind == RESERVATION else ()))
    fields = "sequence, at, epoch, kind, key, note, body"
    yield from map(Written._make, connection.execute(f"SELECT {fields} FROM journal ORDER BY sequence"))


def _fill(connection: sqlite3.Connection, contents: Contents) -> None:
    connection.execute("BEGIN IMMEDIATE")
    while rows := list(islice(contents.rows, MANY)):
        things = [row for row in rows if isinstance(row, Thing)]
        entries = [row for row in rows if isinstance(row, Written)]
        connection.executemany("INSERT INTO state VALUES (?, ?, ?, ?)", [thing[:4] for thing in things])
        held = [(element, thing.key) for thing in things for element in thing.elements]
        connection.executemany("INSERT INTO held VALUES (?, ?)", held)
        connection.executemany("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)", entries)
    connection.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (contents.epoch,))
    connection.execute("COMMIT")

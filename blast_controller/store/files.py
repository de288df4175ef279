"""Journals as SQLite files: making a new one that is never seen half made, and what can be wrong with one."""

from __future__ import annotations

import glob
import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

from blast_controller.store.errors import (
    DamagedJournalError,
    DiskFailedError,
    DiskFullError,
    JournalLockedError,
    NotAccessibleError,
)
from blast_controller.store.schema import make_tables
from blast_controller.store.sqlite_file import SqliteFaults, connect, typed

_FAULTS = SqliteFaults(
    inaccessible=NotAccessibleError,
    in_use=lambda path, _: JournalLockedError(path, None),
    damaged=DamagedJournalError,
    full=lambda path, _: DiskFullError(path),
    failed=DiskFailedError,
)


def typed_faults(path: Path) -> AbstractContextManager[None]:
    """Turn sqlite3.Error and OSError into subclasses of JournalError about the journal `path`."""
    return typed(path, _FAULTS)


def create(path: Path, fill: Callable[[sqlite3.Connection], None] = lambda connection: None) -> None:
    """Make a journal, empty but for what `fill` puts in. It appears under its name whole and durable.

    So an empty file is always a damage. Raises sqlite3.Error, OSError, and what `fill` does.
    """
    unfinished = path.with_name(path.name + ".new")
    # A rollback journal left by a crash would be applied to the new file.
    _remove(unfinished)
    try:
        # Readable for the owner only, from the first byte on.
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(connect(unfinished, "rw")) as connection:
            make_tables(connection)
            fill(connection)
            connection.execute("PRAGMA journal_mode = WAL")
        _sync(unfinished)
        unfinished.rename(path)
    except BaseException:
        _remove(unfinished)
        raise
    _sync(path.parent)


def _remove(unfinished: Path) -> None:
    for left_over in unfinished.parent.glob(glob.escape(unfinished.name) + "*"):
        left_over.unlink()


def wal_of(path: Path) -> Path:
    """Return the write-ahead log of an SQLite file."""
    return path.with_name(path.name + "-wal")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

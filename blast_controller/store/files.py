"""SQLite files: connecting, making a new one that is never seen half made, and SQLite's errors as typed faults."""

from __future__ import annotations

import glob
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from blast_controller.store.errors import Damaged, DiskFailed, DiskFull, Locked, NotAccessible, StoreFault
from blast_controller.store.schema import migrate

BUSY_SECONDS = 2.0
"""How long to wait for somebody with an SQLite shell in the file before giving up."""

_FAULTS: Mapping[int, Callable[[Path, str], StoreFault]] = {
    sqlite3.SQLITE_FULL: lambda path, _: DiskFull(path),
    sqlite3.SQLITE_IOERR: DiskFailed,
    sqlite3.SQLITE_READONLY: NotAccessible,
    sqlite3.SQLITE_CANTOPEN: NotAccessible,
    sqlite3.SQLITE_PERM: NotAccessible,
    sqlite3.SQLITE_AUTH: NotAccessible,
    sqlite3.SQLITE_BUSY: lambda path, _: Locked(path, None),
    sqlite3.SQLITE_LOCKED: lambda path, _: Locked(path, None),
    sqlite3.SQLITE_CORRUPT: Damaged,
    sqlite3.SQLITE_NOTADB: Damaged,
    # What the controller can get wrong is caught before: a constraint is broken by rows that it did not write.
    sqlite3.SQLITE_CONSTRAINT: Damaged,
    # Tables or columns that should be there are missing.
    sqlite3.SQLITE_ERROR: Damaged,
}


@contextmanager
def typed_faults(path: Path) -> Iterator[None]:
    """Turn sqlite3.Error and OSError into StoreFaults about the journal `path`."""
    try:
        yield
    except sqlite3.Error as error:
        # The low byte is the kind of error, the rest its detail.
        kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF
        raise _FAULTS.get(kind, DiskFailed)(path, str(error)) from error
    except PermissionError as error:
        raise NotAccessible(path, error.strerror or str(error)) from error
    except OSError as error:
        raise DiskFailed(path, error.strerror or str(error)) from error


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection usable from every thread (one at a time), transactions explicit. `mode` is ro, rw or rwc.

    Raises sqlite3.Error.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def create(path: Path, fill: Callable[[sqlite3.Connection], None] = lambda connection: None) -> None:
    """Make a journal, empty but for what `fill` puts in. It appears under its name whole and durable.

    So an empty file is always a damage. Raises sqlite3.Error, OSError, and what `fill` does.
    """
    unfinished = path.with_name(path.name + ".new")
    # A rollback journal left by a crash would be applied to the new file.
    for left_over in path.parent.glob(glob.escape(unfinished.name) + "*"):
        left_over.unlink()
    with closing(connect(unfinished, "rwc")) as connection:
        migrate(connection)
        fill(connection)
        connection.execute("PRAGMA journal_mode = WAL")
    unfinished.chmod(0o600)
    _sync(unfinished)
    unfinished.rename(path)
    _sync(path.parent)


def wal_of(path: Path) -> Path:
    """The write-ahead log of an SQLite file."""
    return path.with_name(path.name + "-wal")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The SQLite file of a recording: its tables, connecting to it, and SQLite's errors as sentences."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from blast_controller.history.errors import (
    DamagedRecordingError,
    MissingRecordingError,
    RecordingFormatError,
    RecordingInUseError,
    RecordingStorageError,
)
from blast_controller.store.sqlite_file import SqliteFaults, connect, typed

APPLICATION_ID = 0x424C5352
"""Marks an SQLite file as a recording of Blast ("BLSR")."""
FORMAT = 2
"""Version of the tables below; a file of another version is refused."""
PAGE_BYTES = 8192
"""A compressed block has some kilobytes: larger pages need fewer overflow pages."""

TABLES = (
    # Each row ends with the digest of its values, since SQLite finds a broken page and not a changed value.
    # One run for each time that recording began: a start of the controller, or the end of a pause. It has the moments
    # `first` to `last`, so that a lost row is missed.
    "CREATE TABLE run (number INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, "
    "began INTEGER NOT NULL, seen INTEGER NOT NULL, epoch INTEGER NOT NULL, release TEXT NOT NULL, "
    "instance TEXT NOT NULL, reason TEXT NOT NULL, digest INTEGER NOT NULL) STRICT",
    # All rows as of a moment, which is in no block where `alone`. Times are microseconds.
    "CREATE TABLE base (sequence INTEGER PRIMARY KEY, run INTEGER NOT NULL, now INTEGER NOT NULL, "
    "wall INTEGER NOT NULL, changes INTEGER NOT NULL, alone INTEGER NOT NULL, digest INTEGER NOT NULL) STRICT",
    # Consecutive moments; `now` and `wall` are those of the first, `least` and `most` bound all.
    "CREATE TABLE block (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, run INTEGER NOT NULL, "
    "now INTEGER NOT NULL, wall INTEGER NOT NULL, least INTEGER NOT NULL, most INTEGER NOT NULL, "
    "changes INTEGER NOT NULL, digest INTEGER NOT NULL) STRICT",
    # The contents of bases and blocks are separate: finding a moment then reads little. `left` counts the bodies of the
    # same owner and kind from this one on; the digest is that of owner, kind, `left` and data.
    "CREATE TABLE body (number INTEGER PRIMARY KEY, owner INTEGER NOT NULL, kind INTEGER NOT NULL, "
    "data BLOB NOT NULL, left INTEGER NOT NULL, digest INTEGER NOT NULL) STRICT",
    "CREATE INDEX body_of ON body (owner, kind)",
)
MOMENTS, NET, ALL = 1, 2, 3
"""Kinds of body: a block's moments, what a block comes to, and a base's rows."""

_FAULTS = SqliteFaults(
    inaccessible=MissingRecordingError,
    in_use=RecordingInUseError,
    damaged=DamagedRecordingError,
    full=RecordingStorageError,
    failed=RecordingStorageError,
)


@contextmanager
def typed_faults(path: Path) -> Iterator[None]:
    """Turn sqlite3.Error, OSError and UnicodeDecodeError into subclasses of RecordingError."""
    with typed(path, _FAULTS):
        try:
            yield
        except UnicodeDecodeError as error:
            # SQLite's message about the damage may contain invalid text itself.
            raise DamagedRecordingError(path, "it contains text that is not UTF-8") from error


def open_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection that writes nothing, for one thread at a time. Raises RecordingError."""
    if not path.is_file():
        raise MissingRecordingError(path, "there is no such file")
    return _checked(path, "ro")


def open_to_write(path: Path) -> sqlite3.Connection:
    """Return a connection for one thread at a time; the file is made where there is none. Raises RecordingError."""
    if not path.exists():
        _create(path)
    connection = _checked(path, "rw")
    # A machine crash may lose the latest seconds, but the file stays consistent.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {4 << 20}")
    return connection


def _create(path: Path) -> None:
    """Create the file atomically."""
    unfinished = path.with_name(path.name + ".new")
    with typed_faults(path):
        unfinished.unlink(missing_ok=True)
        unfinished.touch(mode=0o600)
        with closing(connect(unfinished, "rw")) as connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            for table in TABLES:
                connection.execute(table)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("PRAGMA journal_mode = WAL")
        unfinished.rename(path)


def _checked(path: Path, mode: str) -> sqlite3.Connection:
    with typed_faults(path):
        connection = connect(path, mode)
        try:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if mark != APPLICATION_ID or version == 0:
                raise DamagedRecordingError(path, "it is not a recording of Blast")
            if version != FORMAT:
                raise RecordingFormatError(path, version, FORMAT)
        except BaseException:
            connection.close()
            raise
        return connection

"""The tables of the SQLite journal."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from blast_controller.store.errors import DamagedJournalError, JournalSchemaError

APPLICATION_ID = 0x424C5354
"""Marks an SQLite file as a journal of Blast ("BLST")."""

ENTRY = "sequence, at, epoch, kind, key, note, body"
"""The columns of an entry of the history, in the order in which it is digested."""
STATE, CHAIN, TRIMMED = "state", "chain", "trimmed"
"""Names in `meta`: the sum of the state's digests, and the digests of the latest entry and of the last trimmed one (0:
none)."""


SCHEMA = 3
"""Raised by every change of a table or of a body in it; tests/data/journal has a journal of this number."""
TABLES = (
    # `first` is the sequence of the entry that inserted the row: the order of insertion.
    "CREATE TABLE state (first INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, "
    "digest INTEGER NOT NULL, UNIQUE (kind, key)) STRICT",
    "CREATE TABLE journal (sequence INTEGER PRIMARY KEY, at REAL NOT NULL, epoch INTEGER NOT NULL, "
    "kind TEXT NOT NULL, key TEXT NOT NULL, note TEXT NOT NULL, body TEXT, digest INTEGER NOT NULL) STRICT",
    # Invariant I1: no element in two live reservations.
    "CREATE TABLE held (element TEXT PRIMARY KEY, reservation TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE INDEX held_by_reservation ON held (reservation)",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    f"INSERT INTO meta VALUES ('epoch', 0), ('{STATE}', 0), ('{CHAIN}', 0), ('{TRIMMED}', 0)",
)


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty file. Raises sqlite3.Error."""
    for statement in TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def check_is_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse files that this release cannot read.

    Raises DamagedJournalError for another program's file, JournalSchemaError, sqlite3.Error.
    """
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if mark != APPLICATION_ID or version == 0:
        raise DamagedJournalError(path, "it does not carry the mark of a journal of Blast")
    if version != SCHEMA:
        raise JournalSchemaError(path, version, SCHEMA)


def check_is_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Look at every page. Raises DamagedJournalError, sqlite3.Error."""
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise DamagedJournalError(path, verdict.splitlines()[-1])

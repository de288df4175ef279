"""The tables of the SQLite journal, as steps from each version of the schema to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from blast_controller.store.checksums import MODULUS, chained, thing_digest
from blast_controller.store.errors import Damaged, NewerSchema
from blast_controller.store.interface import RESERVATION

APPLICATION_ID = 0x424C5354
"""Marks an SQLite file as a journal of Blast ("BLST")."""

Step = tuple[str | Callable[[sqlite3.Connection], None], ...]
"""Statements, and functions where SQL does not suffice."""


ENTRY = "sequence, at, epoch, kind, key, note, body"
"""The columns of an entry of the history, in the order in which it is digested."""
STATE, CHAIN, TRIMMED = "state", "chain", "trimmed"
"""Names in `meta`: what the digests of the state add up to, and the digests of the latest entry and of the last one
that was dropped (0: none)."""


def _add_digests(connection: sqlite3.Connection) -> None:
    """Take what is there for what was written."""
    held: dict[str, set[str]] = {}
    for element, reservation in connection.execute("SELECT element, reservation FROM held"):
        held.setdefault(reservation, set()).add(element)
    state = 0
    for first, kind, key, body in connection.execute("SELECT first, kind, key, body FROM state").fetchall():
        digest = thing_digest(first, kind, key, body, held.get(key, ()) if kind == RESERVATION else ())
        connection.execute("UPDATE state SET digest = ? WHERE first = ?", (digest, first))
        state = (state + digest) % MODULUS
    chain = 0
    for entry in connection.execute(f"SELECT {ENTRY} FROM journal ORDER BY sequence").fetchall():
        chain = chained(chain, entry)
        connection.execute("UPDATE journal SET digest = ? WHERE sequence = ?", (chain, entry[0]))
    connection.executemany("INSERT INTO meta VALUES (?, ?)", [(STATE, state), (CHAIN, chain), (TRIMMED, 0)])


STEPS: tuple[Step, ...] = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        # `first` is the sequence of the entry that inserted the row: the order of insertion.
        "CREATE TABLE state (first INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, "
        "UNIQUE (kind, key)) STRICT",
        "CREATE TABLE journal (sequence INTEGER PRIMARY KEY, at REAL NOT NULL, epoch INTEGER NOT NULL, "
        "kind TEXT NOT NULL, key TEXT NOT NULL, note TEXT NOT NULL, body TEXT) STRICT",
        # Invariant I1: no element in two live reservations.
        "CREATE TABLE held (element TEXT PRIMARY KEY, reservation TEXT NOT NULL) STRICT, WITHOUT ROWID",
        "CREATE INDEX held_by_reservation ON held (reservation)",
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
        "INSERT INTO meta VALUES ('epoch', 0)",
    ),
    (
        "ALTER TABLE state ADD COLUMN digest INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE journal ADD COLUMN digest INTEGER NOT NULL DEFAULT 0",
        _add_digests,
    ),
)
"""`STEPS[n]` takes schema n to schema n + 1; schema 0 is an empty file. Only ever append to it."""


def migrate(connection: sqlite3.Connection, steps: Sequence[Step] = STEPS) -> None:
    """Bring the tables to the latest version, each step whole or not at all. Raises sqlite3.Error."""
    for version in range(_version(connection), len(steps)):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for step in steps[version]:
                if callable(step):
                    step(connection)
                else:
                    connection.execute(step)
            connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def check_is_ours(connection: sqlite3.Connection, path: Path, known: int = len(STEPS)) -> None:
    """Refuse what this release cannot read. Raises Damaged for another program's file, NewerSchema, sqlite3.Error."""
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    version = _version(connection)
    if mark != APPLICATION_ID or version == 0:
        raise Damaged(path, "it does not carry the mark of a journal of Blast")
    if version > known:
        raise NewerSchema(path, version, known)


def check_is_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Look at every page. Raises Damaged, sqlite3.Error."""
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise Damaged(path, verdict.splitlines()[-1])


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version

"""Reads all rows of a journal in SQLite, each compared with what was written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from blast_controller.store.checksums import Sum, chained, thing_digest
from blast_controller.store.contents import StateRow, Written
from blast_controller.store.errors import DamagedJournalError
from blast_controller.store.interface import RESERVATION
from blast_controller.store.schema import CHAIN, ENTRY, STATE, TRIMMED
from blast_controller.store.witness import read_witness, witness_file


def rows(connection: sqlite3.Connection, path: Path) -> Iterator[StateRow | Written]:
    """Yield the state in the order of `first`, then the history. Raises DamagedJournalError, sqlite3.Error.

    The comparison with the digests is complete only if the iterator is read to its end.
    """
    meta: dict[str, int] = dict(connection.execute("SELECT name, value FROM meta"))
    yield from _state(connection, path, meta.get(STATE))
    yield from _history(connection, path, meta)


def _state(connection: sqlite3.Connection, path: Path, written: int | None) -> Iterator[StateRow]:
    held: dict[str, set[str]] = {}
    for element, reservation in connection.execute("SELECT element, reservation FROM held"):
        held.setdefault(reservation, set()).add(element)
    found = Sum()
    digest = "NULL" if written is None else "digest"
    for first, kind, key, body, digest_written in connection.execute(
        f"SELECT first, kind, key, body, {digest} FROM state ORDER BY first"
    ):
        elements = frozenset(held.pop(key, ()) if kind == RESERVATION else ())
        computed = thing_digest(first, kind, key, body, elements)
        if digest_written not in (None, computed):
            raise DamagedJournalError(path, f"the {kind} {key!r} is changed")
        found.change((), [computed])
        yield StateRow(first, kind, key, body, elements)
    if held:
        raise DamagedJournalError(path, f"the reservation {next(iter(held))}, which holds elements, is missing")
    if written not in (None, found.total):
        raise DamagedJournalError(path, "rows of its state are missing or outdated")


def _history(connection: sqlite3.Connection, path: Path, meta: dict[str, int]) -> Iterator[Written]:
    has_digests = CHAIN in meta
    chain, entry = meta.get(TRIMMED, 0), None
    for *fields, written in connection.execute(
        f"SELECT {ENTRY}, {'digest' if has_digests else 'NULL'} FROM journal ORDER BY sequence"
    ):
        entry = Written._make(fields)
        chain = chained(chain, entry)
        if written not in (None, chain):
            raise DamagedJournalError(
                path, f"entry {entry.sequence} of its history is changed, or an earlier one is missing"
            )
        yield entry
    if has_digests and chain != meta[CHAIN]:
        raise DamagedJournalError(path, "the latest entries of its history are missing")
    if entry is not None and entry.epoch != meta.get("epoch"):
        raise DamagedJournalError(path, f"its epoch is {meta.get('epoch')}, but an entry has epoch {entry.epoch}")
    missing = read_witness(path) - (0 if entry is None else entry.sequence)
    if missing > 0:
        raise DamagedJournalError(
            path,
            f"its last {missing} entries are missing: its -wal file is damaged, or this is an older copy; to use "
            f"an older copy, remove {witness_file(path)}",
        )

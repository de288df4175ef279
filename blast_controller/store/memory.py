"""The journal in memory, for tests and the simulator: like SqliteStore, without a disk.

`close` also represents a crash, since every commit is durable at once; the next `open` begins a new epoch.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from blast_controller.core.model.records import Body, Record
from blast_controller.store.errors import JournalLockedError, JournalNotOpenError
from blast_controller.store.holdings import Holdings
from blast_controller.store.interface import Entry, Loaded
from blast_controller.store.retention import RetainedEntry, Retention, size_of
from blast_controller.store.rows import EPOCH_KEY, EPOCH_KIND, EPOCH_NOTE, Row, decode, encode, to_row

NAME = Path("in memory")


class MemoryStore:
    """A Store that lives as long as the object."""

    def __init__(self, retention: Retention | None = None) -> None:
        self.last_commit_seconds = 0.0
        self._retention = retention or Retention()
        self._lock = threading.Lock()
        self._is_open = False
        self._epoch = 0
        self._newest = 0
        self._state: dict[tuple[str, str], str] = {}
        self._holdings = Holdings()
        self._entries: list[tuple[int, float, int, Row]] = []

    def open(self) -> Loaded:
        """Begin a new epoch. Raises JournalLockedError while it is open already."""
        with self._lock:
            if self._is_open:
                raise JournalLockedError(NAME, os.getpid())
            is_new = self._epoch == 0
            self._is_open = True
            self._epoch += 1
            body = encode({"epoch": self._epoch})
            self._write_down(Row(EPOCH_KIND, EPOCH_KEY, body, frozenset(), EPOCH_NOTE), time.time())
            state: dict[str, dict[str, Body]] = {}
            for (kind, key), text in self._state.items():
                state.setdefault(kind, {})[key] = decode(text)
            return Loaded(self._epoch, state, is_new)

    def commit(self, records: Sequence[Record], at: float) -> None:
        """Write all records or none."""
        rows = [to_row(record) for record in records]
        with self._lock:
            self._check_open()
            self._holdings.apply(self._holdings.changes(rows))
            for row in rows:
                self._apply(row)
                self._write_down(row, at)

    def journal(self, after_sequence: int, limit: int) -> list[Entry]:
        """Read at most `limit` entries after `after_sequence`, oldest first."""
        with self._lock:
            self._check_open()
            # Sequences have no gaps.
            first = max(0, after_sequence - (self._newest - len(self._entries)))
            window = self._entries[first : first + max(0, limit)]
        return [Entry(n, at, epoch, row.kind, row.key, row.note, decode(row.body)) for n, at, epoch, row in window]

    def compact(self, at: float) -> bool:
        """Drop all the history that need not be kept, at once."""
        with self._lock:
            self._check_open()
            oldest = [
                RetainedEntry(sequence, written, size_of(row.body)) for sequence, written, _, row in self._entries
            ]
            last = self._retention.last_expired(oldest, self._newest, sum(line.size for line in oldest), at)
            self._entries = [entry for entry in self._entries if entry[0] > last]
            return False

    def close(self) -> None:
        """Close the store; committed data stays."""
        with self._lock:
            self._is_open = False

    def _check_open(self) -> None:
        if not self._is_open:
            raise JournalNotOpenError

    def _apply(self, row: Row) -> None:
        if row.body is None:
            self._state.pop((row.kind, row.key), None)
        else:
            self._state[row.kind, row.key] = row.body

    def _write_down(self, row: Row, at: float) -> None:
        self._newest += 1
        self._entries.append((self._newest, at, self._epoch, row))

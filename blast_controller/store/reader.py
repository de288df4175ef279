"""Reads the history of an SQLite journal, beside a controller that writes it or without one."""

from __future__ import annotations

import threading
from pathlib import Path

from blast_controller.store.errors import DamagedJournalError, JournalNotOpenError
from blast_controller.store.files import typed_faults
from blast_controller.store.interface import Entry
from blast_controller.store.rows import decode
from blast_controller.store.schema import check_is_ours
from blast_controller.store.sqlite_file import connect

LARGEST = (1 << 63) - 1
"""The largest integer of SQLite."""


class JournalReader:
    """A read-only connection, for any thread. Raises NotAccessibleError, DamagedJournalError, JournalSchemaError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reading = threading.Lock()
        self._open = True
        with typed_faults(path):
            self._connection = connect(path, "ro")
            try:
                check_is_ours(self._connection, path)
            except BaseException:
                self._connection.close()
                raise

    def read(self, after_sequence: int, limit: int) -> list[Entry]:
        """Read at most `limit` entries after `after_sequence`, oldest first. Raises JournalError."""
        # SQLite takes a negative limit for none.
        window = (min(max(after_sequence, 0), LARGEST), min(max(limit, 0), LARGEST))
        with self._reading, typed_faults(self._path):
            if not self._open:
                raise JournalNotOpenError
            rows = self._connection.execute(
                "SELECT sequence, at, epoch, kind, key, note, body FROM journal "
                "WHERE sequence > ? ORDER BY sequence LIMIT ?",
                window,
            ).fetchall()
        try:
            return [Entry(n, at, epoch, kind, key, note, decode(body)) for n, at, epoch, kind, key, note, body in rows]
        except ValueError as error:
            raise DamagedJournalError(
                self._path, f"the history after {after_sequence} has a body that is not valid JSON"
            ) from error

    def close(self) -> None:
        """Close the connection."""
        with self._reading:
            self._open = False
            self._connection.close()

"""An SQLite file of Blast's: a connection to it, and what SQLite and the system refuse as typed faults."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

BUSY_SECONDS = 2.0
"""Seconds to wait for another process that uses the file, such as an SQLite shell."""

Fault = Callable[[Path, str], Exception]
"""A constructor from the file and SQLite's message."""


class SqliteFaults(NamedTuple):
    """The faults for a file that is not accessible, in use, damaged, out of space, or on a failing disk."""

    inaccessible: Fault
    in_use: Fault
    damaged: Fault
    full: Fault
    failed: Fault


_KINDS: Mapping[int, Callable[[SqliteFaults], Fault]] = {
    sqlite3.SQLITE_FULL: lambda faults: faults.full,
    sqlite3.SQLITE_READONLY: lambda faults: faults.inaccessible,
    sqlite3.SQLITE_CANTOPEN: lambda faults: faults.inaccessible,
    sqlite3.SQLITE_PERM: lambda faults: faults.inaccessible,
    sqlite3.SQLITE_AUTH: lambda faults: faults.inaccessible,
    sqlite3.SQLITE_BUSY: lambda faults: faults.in_use,
    sqlite3.SQLITE_LOCKED: lambda faults: faults.in_use,
    sqlite3.SQLITE_CORRUPT: lambda faults: faults.damaged,
    sqlite3.SQLITE_NOTADB: lambda faults: faults.damaged,
    # The controller validates its rows, so a broken constraint comes from rows of another writer.
    sqlite3.SQLITE_CONSTRAINT: lambda faults: faults.damaged,
    # Tables or columns that should be there are missing.
    sqlite3.SQLITE_ERROR: lambda faults: faults.damaged,
}


@contextmanager
def typed(path: Path, faults: SqliteFaults) -> Iterator[None]:
    """Turn sqlite3.Error and OSError about a file into these."""
    try:
        yield
    except sqlite3.Error as error:
        # The low byte is the kind of error, the rest its detail.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF
        kind = _KINDS.get(code)
        fault = faults.failed if kind is None else kind(faults)
        raise fault(path, str(error)) from error
    except PermissionError as error:
        raise faults.inaccessible(path, error.strerror or str(error)) from error
    except OSError as error:
        raise faults.failed(path, error.strerror or str(error)) from error


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection usable from every thread (one at a time), transactions explicit. `mode` is ro, rw or rwc.

    Raises sqlite3.Error.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )

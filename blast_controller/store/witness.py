"""The number of the latest commit, in a separate file beside the journal.

A write-ahead log with a damaged end looks like a shorter one: SQLite accepts the commits before the damage and does not
report the others. The number is written after each commit, without waiting for the disk: after a crash of the machine
it may be older than the journal, which proves nothing, and never newer.

It is not part of the lock's file: closing a file anywhere in a process releases its POSIX locks.
"""

from __future__ import annotations

import os
import struct
from hashlib import blake2b
from pathlib import Path

_FORM = struct.Struct("<Q8s")


def witness_file(path: Path) -> Path:
    """Return the file beside the journal `path`."""
    return path.with_name(path.name + ".latest")


def read_witness(path: Path) -> int:
    """Return the latest entry that the journal `path` is known to have had; 0 where that is not known."""
    try:
        with witness_file(path).open("rb") as file:
            found = file.read(_FORM.size)
    except OSError:
        return 0
    sequence = int(_FORM.unpack(found)[0]) if len(found) == _FORM.size else 0
    return sequence if found == _packed(sequence) else 0


class Witness:
    """The file, open for writing. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(witness_file(path), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def note(self, sequence: int) -> None:
        """Write that this entry is committed. Raises OSError."""
        os.pwrite(self._descriptor, _packed(sequence), 0)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def _packed(sequence: int) -> bytes:
    return _FORM.pack(sequence, blake2b(sequence.to_bytes(8), digest_size=8, person=b"witness").digest())

"""Lock of a journal among processes.

A POSIX record lock: the kernel releases it when its owner dies for any reason, reports the owner, and does not share it
with forked children, so that a worker that outlives its controller blocks no other controller.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path

from blast_controller.store.errors import JournalLockedError, NotAccessibleError

_STRUCT_FLOCK = "hhqqi4x"
"""`struct flock` of 64-bit Linux: l_type, l_whence, l_start, l_len, l_pid."""

# POSIX locks do not distinguish owners within one process, and closing one's file would release the other's lock.
_held_by_this_process: set[Path] = set()


class FileLock:
    """The lock of one file, held on another one beside it: SQLite has locks of its own on the file itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.with_name(path.name + ".lock")
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Acquire the lock.

        Raises JournalLockedError if another owner has it, NotAccessibleError if its file cannot be created or locked.
        """
        if self._file in _held_by_this_process:
            raise JournalLockedError(self._path, os.getpid())
        try:
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise NotAccessibleError(self._path, f"{self._file.name}: {error.strerror}") from error
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise JournalLockedError(self._path, holder) from error
        except OSError as error:
            os.close(descriptor)
            raise NotAccessibleError(self._path, f"it cannot be locked: {error.strerror}") from error
        self._descriptor = descriptor
        _held_by_this_process.add(self._file)

    def release(self) -> None:
        """Let go; the lock's file stays, since removing it would let two owners in."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            _held_by_this_process.discard(self._file)


def _holder(descriptor: int) -> int | None:
    lock = struct.pack(_STRUCT_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    with suppress(OSError):
        kind, *_, pid = struct.unpack(_STRUCT_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, lock))
        # 0: the owner lives in a process namespace that this one does not see.
        return pid or None if kind != fcntl.F_UNLCK else None
    return None

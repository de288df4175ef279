"""Folders that running processes of this host claim, and that are removed when none does.

A process creates a subfolder with the file `.claim`, and keeps a shared lock on it (POSIX, fcntl); or the agent creates
both for a first file. The kernel releases the lock however the process ends, so that its received data is removed, also
if process and sender were killed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from blast_transport.agent.reporting import LOGGER
from blast_transport.base.errors import NoThreadError
from blast_transport.base.threads import start_thread

CLAIM = ".claim"

_EVERY_SECONDS = 5.0
_NEW_SECONDS = 20.0
"""Time for which a changed folder stays without a claim: a process may be about to claim it, or a file is arriving."""
_MAX_FOLDERS = 1024
"""Maximum folders that the agent creates, so that no sender fills a disk with them."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

log = logging.getLogger(LOGGER)


def make_claimed(base: Path, name: str) -> None:
    """Make a sub-folder that can be claimed, unless something of this name is there, or there are too many."""
    with suppress(OSError), _opened(base, _FOLDER & ~os.O_NOFOLLOW) as folder:
        if len(os.listdir(folder)) < _MAX_FOLDERS:  # noqa: PTH208
            os.mkdir(name, 0o700, dir_fd=folder)
            with _opened(name, _FOLDER, folder) as inside:
                os.close(os.open(CLAIM, _FILE | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=inside))


class Claims:
    """Claimed subfolders of these folders. Folders without a `.claim` are ignored."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._thread: threading.Thread | None = None
        self._next = 0.0

    def look(self, now: float) -> None:
        """Sweep if it is due, in a thread, because removing much takes long. `now`: monotonic."""
        if self._folders and now >= self._next and (self._thread is None or not self._thread.is_alive()):
            self._next = now + _EVERY_SECONDS
            with suppress(NoThreadError):
                self._thread = start_thread("claims", self.sweep)

    def sweep(self) -> None:
        """Remove the folders that no process claims."""
        for base in self._folders:
            with suppress(OSError), _opened(base, _FOLDER & ~os.O_NOFOLLOW) as folder:
                for name in os.listdir(folder):  # noqa: PTH208 - of an open folder, not of a path
                    # One that cannot be removed must not keep the others.
                    with suppress(OSError):
                        _remove_unless_claimed(base, folder, name)


def _remove_unless_claimed(base: Path, folder: int, name: str) -> None:
    with _opened(name, _FOLDER, folder) as inside, _opened(CLAIM, _FILE, inside) as claim:
        if not stat.S_ISREG(os.fstat(claim).st_mode) or time.time() - _last_change(inside) < _NEW_SECONDS:
            return
        # Held until the folder is removed: a process that waits for the lock then finds no folder.
        fcntl.lockf(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(name, dir_fd=folder)
        log.info("removed %s: no running process claims it", base / name)


def _last_change(folder: int) -> float:
    changes = [os.fstat(folder).st_mtime]
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):
            changes.append(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime)
    return max(changes)


@contextmanager
def _opened(path: Path | str, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)

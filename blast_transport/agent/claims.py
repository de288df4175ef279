"""Folders that processes of this host claim for as long as they live, removed when none does any more.

A process makes a sub-folder, in it the file `.claim`, and keeps a shared lock on that (POSIX, fcntl); or the agent
makes both, when a first file comes. The kernel lets go of the lock however the process ends, so that what it received
leaves nothing behind, also where it and its sender were killed.
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
"""So long what has changed counts though nobody claims it: somebody is about to, or a file is on its way."""
_MAX_FOLDERS = 1024
"""That the agent makes, so that no sender fills a disk with them."""
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
    """Sub-folders of these folders. Folders without a `.claim` are nobody's business here."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._thread: threading.Thread | None = None
        self._next = 0.0

    def look(self, now: float) -> None:
        """Look after them if it is time to, in a thread of its own: to remove much takes long. `now`: monotonic."""
        if self._folders and now >= self._next and (self._thread is None or not self._thread.is_alive()):
            self._next = now + _EVERY_SECONDS
            with suppress(NoThreadError):
                self._thread = start_thread("claims", self.sweep)

    def sweep(self) -> None:
        """Remove those that nobody claims any more."""
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
        # Held until all is gone: who comes meanwhile waits, and sees that this is no folder any more.
        fcntl.lockf(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(name, dir_fd=folder)
        log.info("removed %s: nobody claims it any more", base / name)


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

"""Folders that processes of this host claim for as long as they live, removed when none does any more.

A process makes a sub-folder, in it the file `.claim`, and keeps a shared lock on that (POSIX, fcntl). The kernel lets
go of it however the process ends, so that what it received leaves nothing behind, also where it and its sender were
killed.
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
_NEW_SECONDS = 10.0
"""So long a claim counts though nobody holds it: whoever has made it is about to."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

log = logging.getLogger(LOGGER)


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
        status = os.fstat(claim)
        if not stat.S_ISREG(status.st_mode) or time.time() - status.st_mtime < _NEW_SECONDS:
            return
        # Held until all is gone: who comes meanwhile waits, and sees that this is no folder any more.
        fcntl.lockf(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(name, dir_fd=folder)
        log.info("removed %s: nobody claims it any more", base / name)


@contextmanager
def _opened(path: Path | str, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)

"""State of a file, to detect changes while it is read.

It consists of the file's identity, its size and both of its times, not its bytes, which would have to be read again. A
program cannot set the time of the last change of the inode (ctime), unlike the time of the last write. The comparison
does not detect writes through a mapping (mmap), which may update the times only when the mapping ends; writes on a file
system without such times; and writes on another client of a network file system, until its cache has expired. With such
writers, send a copy or a snapshot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from blast_transport.base.errors import SourceChangedError

_TICK_NS = 20_000_000
"""Nanoseconds; the kernel's clock for files goes in steps of up to 10 ms, within which two writes look like one."""


class FileState(NamedTuple):
    """A file as it was; `modified` and `changed` (the inode) in nanoseconds since 1970."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        """Return the state in a result of `os.stat`."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def check(self, name: str, status: os.stat_result) -> None:
        """Raise SourceChangedError, which names the change, if the file is not as it was."""
        now = FileState.of(status)
        if now == self:
            return
        if (now.device, now.inode) != (self.device, self.inode):
            change = "another file has its name"
        elif now.size != self.size:
            change = f"it has {now.size} bytes and had {self.size}"
        elif now.modified != self.modified:
            change = "it was written"
        else:
            change = "it was written and its time was set back, or its permissions, owner or links changed"
        raise SourceChangedError(
            f"{name} was changed while it was sent ({change}): send it again when no process writes it"
        )


def settled_state(status_of: Callable[[], os.stat_result]) -> FileState:
    """Return a state from which every later write differs: of a file that was just written, a moment later."""
    status = status_of()
    left = status.st_ctime_ns + _TICK_NS - time.time_ns()
    if 0 < left <= _TICK_NS:
        time.sleep(left / 1e9)
        status = status_of()
    return FileState.of(status)

"""Target that overwrites a device: a disk, a partition, or one that accepts bytes in order.

A device is not renamed into place: from the first byte until the last it holds parts of old and new data. So everything
that can be known is checked before: that it is not in use (the kernel rejects one that is mounted, or used by swap,
RAID or another session), and that it is large enough.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from pathlib import Path

from blast_transport.base.errors import ForgottenError, StoreError, sentence
from blast_transport.store.targets.block_device import mounts_of, size_of
from blast_transport.store.targets.target import Buffer

log = logging.getLogger(__name__)

_OPEN = os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
"""Neither made nor cut, whatever is there."""


def is_device(mode: int) -> bool:
    """Return whether a file with this st_mode can be a device target."""
    return stat.S_ISBLK(mode) or stat.S_ISCHR(mode)


class DeviceTarget:
    """Block or character device at `path`, for `size` bytes (None: a stream), and at most `max_bytes`.

    Raises StoreError before anything is written if it is not a device, is in use, or is too small. A character device
    (/dev/null, a tape) accepts bytes in order, and does not return them.
    """

    descriptor: int | None = None

    def __init__(self, path: Path, size: int | None, max_bytes: int | None = None) -> None:
        self.place = str(path)
        self._end = 0
        try:
            self._fd = _opened(path)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {sentence(error)}") from error
        try:
            self.in_order = stat.S_ISCHR(os.fstat(self._fd).st_mode)
            bounds = [max_bytes, None if self.in_order else size_of(self._fd)]
            self._max_bytes = min((bound for bound in bounds if bound is not None), default=None)
            if self._max_bytes is not None and (size or 0) > self._max_bytes:
                raise StoreError(f"{size} bytes are more than the {self._max_bytes} of {path}; nothing was written")
        except OSError as error:
            os.close(self._fd)
            raise StoreError(f"cannot write {path}: {sentence(error)}") from error
        except BaseException:
            os.close(self._fd)
            raise

    def write(self, offset: int, *pieces: Buffer) -> None:
        """Write at `offset`. Raises StoreError."""
        rest = memoryview(b"".join(pieces))
        if self._max_bytes is not None and offset + len(rest) > self._max_bytes:
            # A stream announces no size.
            raise StoreError(f"more bytes came than the {self._max_bytes} of {self.place}, {self._incomplete}")
        self._end = max(self._end, offset + len(rest))
        try:
            while rest:
                count = os.write(self._fd, rest) if self.in_order else os.pwrite(self._fd, rest, offset)
                rest, offset = rest[count:], offset + count
        except OSError as error:
            raise StoreError(f"cannot write {self.place}: {sentence(error)}; it is {self._incomplete}") from error

    def read(self, offset: int, view: memoryview) -> int:
        """Read written data at `offset`. Raise StoreError, and ForgottenError if the device cannot be read."""
        if self.in_order:
            raise ForgottenError(self._end)
        try:
            return os.preadv(self._fd, [view], offset)
        except OSError as error:
            raise StoreError(f"cannot read {self.place}: {sentence(error)}") from error

    def commit(self, size: int, *, fsync: bool) -> bool | None:
        """Complete the device; data behind `size` bytes stays unchanged. Raise StoreError."""
        try:
            if fsync and not self.in_order:
                os.fsync(self._fd)
        except OSError as error:
            raise StoreError(f"cannot complete {self.place}: {sentence(error)}; it is {self._incomplete}") from error
        self._close()
        return None if self.in_order else fsync

    def discard(self, *, resumable: bool) -> None:
        """Close the device; written data stays."""
        if self._fd >= 0:
            if self._end:
                log.warning("%s is %s", self.place, self._incomplete)
            self._close()

    @property
    def _incomplete(self) -> str:
        return "incomplete, and what is on it is undefined"

    def _close(self) -> None:
        os.close(self._fd)
        self._fd = -1


def _opened(path: Path) -> int:
    """Open the device, a block device exclusively. Raise OSError, StoreError."""
    status = path.stat()
    if not is_device(status.st_mode):
        raise StoreError(f"{path} is no device")
    if stat.S_ISCHR(status.st_mode):
        descriptor = os.open(path, os.O_WRONLY | _OPEN)
    else:
        descriptor = _opened_alone(path, status.st_rdev)
    try:
        if os.fstat(descriptor).st_rdev != status.st_rdev or not is_device(os.fstat(descriptor).st_mode):
            raise StoreError(f"{path} was replaced by another device during the check; try again")
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _opened_alone(path: Path, device: int) -> int:
    if places := mounts_of(device):
        raise StoreError(f"{path} is mounted at {', '.join(places)}: unmount it first; nothing was written")
    try:
        return os.open(path, os.O_RDWR | os.O_EXCL | _OPEN)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        raise StoreError(
            f"{path} is in use (mounted somewhere, swap, RAID, LVM, or another session); nothing was written"
        ) from error

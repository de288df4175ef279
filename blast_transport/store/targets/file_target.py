"""Target that is a file: written under a temporary name, and renamed when it is verified.

A second file records each written block with its digest, so that a later session of the same content can resume. A
record is written after its block, and a block is hashed again before it is trusted, so that neither a killed process
nor a crashed machine leaves a block that only seems held.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from blast_transport.base.errors import StoreError, WrongInputError, sentence
from blast_transport.blocks.block_map import Range, runs_of
from blast_transport.blocks.digests import DIGEST_BYTES, Suite
from blast_transport.blocks.layout import BlockLayout
from blast_transport.store.files.file_names import LONGEST_PART, PARTIAL_PREFIX, plain_name
from blast_transport.store.files.holes import next_data
from blast_transport.store.targets.target import Buffer

RECORDS_SUFFIX = ".blocks"
STALE_SECONDS = 86_400.0
"""Seconds after which remains of an ended session are removed, unless another session resumes it."""

_RECORD = struct.Struct(f"<Q{DIGEST_BYTES}s")
_RECORDS_PER_WRITE = 64
PRIVATE = 0o600
"""Only the owner may access an incomplete file, whatever its final mode."""
_TO_LOCK = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FileRules:
    """Rules of a host for received files: maximum bytes (None: the free space), and permission bits.

    The bits apply regardless of the umask of the process.
    """

    max_bytes: int | None = None
    mode: int = PRIVATE


ANY_PRIVATE = FileRules()


class FileTarget:
    """File to be received into the open directory `directory` (closed with the target).

    `identity` identifies the content: a session with the same one resumes from remains (`blocks_on_disk`). Raises
    UnsafeNameError, and then the directory stays the caller's; and StoreError without space or permission, or if
    another session writes the same file.
    """

    in_order = False

    def __init__(  # noqa: PLR0913, PLR0917 - where, what, and the host's rules
        self,
        directory: int,
        path: Path,
        name: str,
        size: int | None,
        identity: str,
        rules: FileRules = ANY_PRIVATE,
    ) -> None:
        self._directory, self._name, self._rules = directory, plain_name(name), rules
        self._partial = _partial_name(identity, name)
        self._records = f"{self._partial}{RECORDS_SUFFIX}"
        self._pending: list[bytes] = []
        self._ending = threading.Lock()
        self.place = str(path / name)
        self._fd = self._records_fd = -1
        try:
            if rules.max_bytes is not None and (size or 0) > rules.max_bytes:
                raise StoreError(f"{size} bytes are more than the {rules.max_bytes} that this agent takes")
            self._remove_stale()
            self._fd = self._open_alone()
            self._records_fd = self._open(self._records)
            self._cut_torn_record()
            self._check_room(size or 0)
        except OSError as error:
            self._leave_as_found()
            raise StoreError(f"cannot write {self.place}: {sentence(error)}") from error
        except BaseException:
            self._close()
            raise
        self.descriptor: int | None = self._fd

    @property
    def files(self) -> tuple[int, int]:
        """Return the descriptors of data and records, for a caller that writes both itself, as `note` does."""
        return self._fd, self._records_fd

    @property
    def max_bytes(self) -> int | None:
        """Return the maximum bytes; None: the free space."""
        return self._rules.max_bytes

    def blocks_on_disk(self, layout: BlockLayout, suite: Suite) -> Iterator[tuple[int, bytes]]:
        """Yield the blocks that an earlier session of the same content left, verified, with their digests."""
        held = os.fstat(self._fd).st_size
        view = memoryview(bytearray(layout.block_size))
        with os.fdopen(os.dup(self._records_fd), "rb") as records:
            for record in iter(lambda: records.read(_RECORD.size), b""):
                if len(record) < _RECORD.size:
                    return
                block, digest = _RECORD.unpack(record)
                if block >= layout.blocks or layout.offset(block) + layout.length(block) > held:
                    continue
                piece = view[: layout.length(block)]
                if os.preadv(self._fd, [piece], layout.offset(block)) == len(piece) and suite.block(piece) == digest:
                    yield block, digest

    def make_holes(self, layout: BlockLayout, holes: Iterable[Range]) -> Iterator[Range]:
        """Yield the ranges of these blocks that are zeros on disk, and extend the file to its final size.

        A new file has only holes. Data of an earlier session within one is read, and counts if it is zeros. The blocks
        need no record, because a later session gets their list again. Raise StoreError.
        """
        ranges, size = list(holes), layout.size
        if not ranges or size is None:
            return
        try:
            # Data behind the end of a file cannot be read, nor forwarded to a neighbor.
            is_new = os.fstat(self._fd).st_size == 0
            os.ftruncate(self._fd, size)
            for first, count in ranges:
                yield from [(first, count)] if is_new else self._zeros_on_disk(layout, first, count)
        except OSError as error:
            raise StoreError(f"cannot write {self.place}: {sentence(error)}") from error

    def write(self, offset: int, *pieces: Buffer) -> None:
        """Write at `offset`. Raises StoreError."""
        size = sum(map(len, pieces))
        self.check_end(offset + size)
        try:
            written = os.pwritev(self._fd, pieces, offset)
            while written < size:
                written += os.pwrite(self._fd, memoryview(b"".join(pieces))[written:], offset + written)
        except OSError as error:
            raise StoreError(f"cannot write {self.place}: {sentence(error)}") from error

    def check_end(self, end: int) -> None:
        """Raise StoreError unless bytes up to `end` may come."""
        max_bytes = self._rules.max_bytes
        # A stream announces no size, and a sender may lie about one.
        if max_bytes is not None and end > max_bytes:
            raise StoreError(f"more bytes came than the {max_bytes} that this agent takes")

    def note(self, first: int, digests: Sequence[bytes]) -> None:
        """Record that the blocks from `first` on are written with these digests, for a later session.

        Raises StoreError.
        """
        self._pending += map(_RECORD.pack, count(first), digests)
        if len(self._pending) >= _RECORDS_PER_WRITE:
            self._write_records()

    def read(self, offset: int, view: memoryview) -> int:
        """Read written data at `offset`. Raise StoreError."""
        try:
            return os.preadv(self._fd, [view], offset)
        except OSError as error:
            raise StoreError(f"cannot read {self.place}: {sentence(error)}") from error

    def commit(self, size: int, *, fsync: bool) -> bool:
        """Give the file its name. Raises StoreError."""
        with self._ending:
            if self._fd < 0:
                raise StoreError(f"{self.place} was given up")
            try:
                self._put_in_place(size, fsync)
            except OSError as error:
                raise StoreError(f"cannot complete {self.place}: {sentence(error)}") from error
            self._close()
            return fsync

    def discard(self, *, resumable: bool) -> None:
        """Remove the data, or keep it for a session that resumes."""
        with self._ending:
            if self._fd < 0:
                return
            try:
                if resumable:
                    self._write_records()
                else:
                    self._unlink(self._partial)
                    self._unlink(self._records)
            except (OSError, StoreError):
                # Files that cannot be removed now are stale in a day.
                self._pending.clear()
            self._close()

    def _zeros_on_disk(self, layout: BlockLayout, first: int, count: int) -> Iterator[Range]:
        """Yield ranges of these blocks in which there is no data, or only zeros."""
        found, data = list[int](), -1
        zeros, view = bytes(layout.block_size), memoryview(bytearray(layout.block_size))
        for block in range(first, first + count):
            begin, length = layout.offset(block), layout.length(block)
            if data < begin:
                data = next_data(self._fd, begin, layout.offset(first + count))
            if data < begin + length:
                read = os.preadv(self._fd, [view[:length]], begin)
                if read < length or view[:length] != zeros[:length]:
                    continue
            found.append(block)
        yield from ((begin, stop - begin) for begin, stop in runs_of(found))

    def _put_in_place(self, size: int, fsync: bool) -> None:
        os.ftruncate(self._fd, size)
        os.fchmod(self._fd, self._rules.mode)
        if fsync:
            os.fsync(self._fd)
        os.replace(self._partial, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        self._unlink(self._records)
        if fsync:
            os.fsync(self._directory)

    def _open(self, name: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, PRIVATE, dir_fd=self._directory)
        try:
            # Remains may be those of a version that was less careful.
            if stat.S_IMODE(os.fstat(descriptor).st_mode) != PRIVATE:
                os.fchmod(descriptor, PRIVATE)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _open_alone(self) -> int:
        """Open and lock the partial file. Raise StoreError if another session has it."""
        while True:
            descriptor = self._open(self._partial)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The previous owner of the lock may have renamed or removed the file since it was opened.
                if self._is_partial(descriptor):
                    return descriptor
            except OSError as error:
                os.close(descriptor)
                if not isinstance(error, BlockingIOError):
                    raise
                raise StoreError(f"another session is writing {self.place}; wait for its end") from None
            os.close(descriptor)

    def _is_partial(self, descriptor: int) -> bool:
        try:
            status = os.stat(self._partial, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(status, os.fstat(descriptor))

    def _leave_as_found(self) -> None:
        """Undo a failed start."""
        if self._fd >= 0 and not os.fstat(self._fd).st_size:
            self._unlink(self._partial)
            self._unlink(self._records)
        self._close()

    def _cut_torn_record(self) -> None:
        """Cut off a partial record of a killed process, behind which no other record could be read."""
        size = os.fstat(self._records_fd).st_size
        os.ftruncate(self._records_fd, size - size % _RECORD.size)

    def _check_room(self, size: int) -> None:
        """Raise OSError before any data arrives if the file does not fit, where this is known."""
        status = os.fstat(self._fd)
        left = os.fstatvfs(self._fd)
        if size - status.st_blocks * 512 > left.f_bavail * left.f_frsize:
            raise OSError(errno.ENOSPC, f"{size} bytes do not fit, {left.f_bavail * left.f_frsize} are free")

    def _write_records(self) -> None:
        records, self._pending = b"".join(self._pending), []
        try:
            os.lseek(self._records_fd, 0, os.SEEK_END)
            os.write(self._records_fd, records)
        except OSError as error:
            raise StoreError(f"cannot write {self.place}: {sentence(error)}") from error

    def _remove_stale(self) -> None:
        before = time.time() - STALE_SECONDS
        for name in os.listdir(self._directory):  # noqa: PTH208 - by descriptor
            if not name.startswith(PARTIAL_PREFIX):
                continue
            with ExitStack() as locks, suppress(OSError):
                status = os.stat(name, dir_fd=self._directory, follow_symlinks=False)
                if status.st_mtime >= before:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    # A folder that was being unpacked when its process was killed.
                    shutil.rmtree(name, dir_fd=self._directory)
                    continue
                self._lock_unused(name, locks)
                os.unlink(name, dir_fd=self._directory)

    def _lock_unused(self, name: str, locks: ExitStack) -> None:
        """Lock the remains against sessions. Raise BlockingIOError if one is active, which may be idle for days."""
        # It may be a partial file, whatever its name ends with, or the records of one.
        for partial in {name, name.removesuffix(RECORDS_SUFFIX)}:
            with suppress(FileNotFoundError):
                descriptor = os.open(partial, _TO_LOCK, dir_fd=self._directory)
                locks.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlink(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._directory)

    def _close(self) -> None:
        if self._fd >= 0:
            # A node of a pipeline may still have a duplicate of the descriptor, which would keep the lock.
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        for descriptor in (self._fd, self._records_fd, self._directory):
            if descriptor >= 0:
                os.close(descriptor)
        self._fd = self._records_fd = self._directory = -1
        self.descriptor = None


def open_directory(path: Path) -> int:
    """Open the directory. Raise WrongInputError if it does not exist."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise WrongInputError(
            f"{path} is not a directory that can be used: {error.strerror}; create it first"
        ) from error


def _partial_name(identity: str, name: str) -> str:
    """Return the name of a file that is not complete: with its own name as far as the file system takes that."""
    partial = f"{PARTIAL_PREFIX}{identity}-{name}"
    if len(f"{partial}{RECORDS_SUFFIX}".encode()) <= LONGEST_PART:
        return partial
    return f"{PARTIAL_PREFIX}{identity}-{hashlib.sha256(name.encode()).hexdigest()}"

"""Target that is a folder: received as one file, then unpacked beside it, and renamed when it is complete.

The data is written, resumed and verified like a file. Its table must pass every check of folder_table.py; the entries
are then created in a new private folder, never through a link; links are created last, and modes set after all writes.
So nothing leads out of the new folder, and a killed process leaves nothing that looks complete.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from blast_transport.base.errors import RemoteProtocolError, StoreError, UnsafeNameError
from blast_transport.store.files.file_names import PARTIAL_PREFIX
from blast_transport.store.files.folder_table import (
    HEAD_BYTES,
    EntryKind,
    FolderEntry,
    Table,
    decode,
    folders_of,
    table_bytes,
)
from blast_transport.store.files.holes import is_sparse, next_data, next_hole
from blast_transport.store.targets.file_target import FileTarget

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1 << 20
"""Bytes of one read."""
_ALONE = 0o700
"""Until it is complete, no other user may use the folder."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)


class FolderTarget(FileTarget):
    """One folder on its way into the directory open as `directory`; the rest is as a `FileTarget` has it.

    It needs room for all of it twice, until it has its name. A folder that is there and not empty is left as it is.
    """

    def _check_room(self, size: int) -> None:
        # The unpacked data needs space in addition to the received data.
        super()._check_room(2 * size)

    def _put_in_place(self, size: int, fsync: bool) -> None:
        try:
            table = self._table(size)
            with self._place_beside() as (beside, folder):
                _Unpacking(self._fd, folder, fsync).all(table, HEAD_BYTES + self._table_bytes)
                self._rename(beside)
        except (RemoteProtocolError, UnsafeNameError) as error:
            raise StoreError(f"cannot make {self.place}: {error}") from error
        self._unlink(self._partial)
        self._unlink(self._records)
        if fsync:
            os.fsync(self._directory)

    def _table(self, size: int) -> Table:
        head = os.pread(self._fd, HEAD_BYTES, 0)
        self._table_bytes = table_bytes(head)
        table = decode(head + os.pread(self._fd, self._table_bytes, HEAD_BYTES))
        if HEAD_BYTES + self._table_bytes + table.content_bytes != size:
            raise RemoteProtocolError("the sizes in its table are not those of what came")
        return table

    @contextmanager
    def _place_beside(self) -> Iterator[tuple[str, int]]:
        """Create a folder under a temporary name, which is removed unless it is renamed."""
        beside = f"{PARTIAL_PREFIX}{secrets.token_hex(8)}"
        os.mkdir(beside, _ALONE, dir_fd=self._directory)
        folder = -1
        try:
            folder = os.open(beside, _FOLDER, dir_fd=self._directory)
            yield beside, folder
        except BaseException:
            self._remove(beside)
            raise
        finally:
            if folder >= 0:
                os.close(folder)

    def _remove(self, beside: str) -> None:
        """Remove the unpacked files, including those whose modes already forbid writing."""
        with suppress(OSError):
            os.chmod(beside, _ALONE, dir_fd=self._directory)
            for _, folders, _, above in os.fwalk(beside, dir_fd=self._directory):
                for folder in folders:
                    os.chmod(folder, _ALONE, dir_fd=above)
        shutil.rmtree(beside, ignore_errors=True, dir_fd=self._directory)

    def _rename(self, beside: str) -> None:
        try:
            # Takes the place of an empty folder, and of nothing else.
            os.rename(beside, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise StoreError(f"{self.place} {IS_THERE}") from error
            raise


IS_THERE = "is there already, and is left as it is: remove it there, or give another name with --as"


class _Unpacking:
    """Unpacking of the file `source` into the open, empty folder `root`."""

    def __init__(self, source: int, root: int, fsync: bool) -> None:
        self._source, self._root, self._fsync = source, root, fsync
        self._is_sparse = is_sparse(os.fstat(source))

    def all(self, table: Table, offset: int) -> None:
        """Unpack all entries; the contents begin at `offset`. Raise OSError, StoreError."""
        # Of each file that has come: the entry, and where its contents begin.
        files = dict[str, tuple[FolderEntry, int]]()
        for entry in table.entries:
            if entry.kind is EntryKind.FOLDER:
                os.mkdir(entry.path, _ALONE, dir_fd=self._root)
            elif entry.kind is EntryKind.FILE:
                self._file(entry, offset)
                files[entry.path] = entry, offset
                offset += entry.size
            elif entry.kind is EntryKind.HARD_LINK:
                self._hard_link(entry, *files[entry.target])
        for entry in table.entries:
            if entry.kind is EntryKind.LINK:
                os.symlink(entry.target, entry.path, dir_fd=self._root)
        # The deepest first, because a folder with its final mode may be inaccessible.
        for entry in folders_of(table.entries):
            self._close_folder(entry)
        os.fchmod(self._root, table.mode)
        if self._fsync:
            os.fsync(self._root)

    def _hard_link(self, entry: FolderEntry, first: FolderEntry, offset: int) -> None:
        try:
            os.link(first.path, entry.path, src_dir_fd=self._root, dst_dir_fd=self._root, follow_symlinks=False)
        except OSError as error:
            # A file system without hard links, or with no more of them for one file: a copy is what was sent as well.
            if error.errno not in _NO_LINKS:
                raise
            self._file(first._replace(path=entry.path), offset)

    def _file(self, entry: FolderEntry, offset: int) -> None:
        descriptor = os.open(entry.path, _NEW_FILE, 0o600, dir_fd=self._root)
        try:
            for begin, stop in self._data(offset, offset + entry.size):
                os.lseek(descriptor, begin - offset, os.SEEK_SET)
                self._copy(descriptor, begin, stop - begin)
            os.ftruncate(descriptor, entry.size)
            os.fchmod(descriptor, entry.mode)
            os.utime(descriptor, ns=(entry.changed_at, entry.changed_at))
            if self._fsync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _data(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield what lies between the holes of what came, from `begin` to before `end`: a copy would fill them."""
        if not self._is_sparse:
            yield begin, end
            return
        while (begin := next_data(self._source, begin, end)) < end:
            hole = next_hole(self._source, begin, end)
            yield begin, hole
            begin = hole

    def _copy(self, into: int, offset: int, size: int) -> None:
        end = offset + size
        with suppress(OSError):
            # Within one file system the data may be shared, or copied without coming here.
            while offset < end and (count := os.copy_file_range(self._source, into, end - offset, offset)):
                offset += count
        while offset < end:
            piece = memoryview(os.pread(self._source, min(_PIECE, end - offset), offset))
            if not piece:
                raise StoreError("the received file shrank while it was unpacked")
            offset += len(piece)
            while piece:
                piece = piece[os.write(into, piece) :]

    def _close_folder(self, entry: FolderEntry) -> None:
        descriptor = os.open(entry.path, _FOLDER, dir_fd=self._root)
        try:
            os.utime(descriptor, ns=(entry.changed_at, entry.changed_at))
            os.fchmod(descriptor, entry.mode)
            if self._fsync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

"""The file being received: written under a temporary name, digested as it grows, put in place only when it is right."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Protocol

from blast_transport.control import DIGEST_BYTES, Hello
from blast_transport.errors import DigestMismatchError, SourceChangedError, UnsafeNameError

_PARTIAL_PREFIX = ".blast-"
_LONGEST_NAME = 200
_CATCH_UP_BYTES = 1 << 20


class Hash(Protocol):
    """What we use of a hashlib object."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Add bytes."""

    def digest(self) -> bytes:
        """The digest of all bytes added."""


def new_hash() -> Hash:
    """The digest of a whole transfer: BLAKE2b-256 (RFC 7693)."""
    return hashlib.blake2b(digest_size=DIGEST_BYTES)


def plain_name(name: str) -> str:
    """The name, if it is a plain base name. Raises UnsafeNameError for anything that could leave the directory."""
    outside = name in ("", ".", "..") or any(character in name for character in "/\\")
    if outside or not name.isprintable():
        raise UnsafeNameError(f"{name!r} is not a plain file name")
    if len(name.encode(errors="replace")) > _LONGEST_NAME:
        raise UnsafeNameError(f"a file name of more than {_LONGEST_NAME} bytes is not taken")
    if name.startswith(_PARTIAL_PREFIX):
        raise UnsafeNameError(f"{name!r} begins like our own temporary files")
    return name


def read_exactly(descriptor: int, view: memoryview, offset: int) -> None:
    """Fill `view` from the file at `offset`. Raises SourceChangedError if the file ends before."""
    while view:
        count = os.preadv(descriptor, [view], offset)
        if count == 0:
            raise SourceChangedError(f"the file ends at byte {offset}: it became shorter while it was read")
        view, offset = view[count:], offset + count


class TargetFile:
    """One file on its way in. Raises UnsafeNameError, and OSError of the file system (no room, no permission).

    The room is allocated at once, so that a full disk is known before any light is used.
    """

    def __init__(self, directory: Path, hello: Hello) -> None:
        self.path = directory / plain_name(hello.name)
        self._partial = directory / f"{_PARTIAL_PREFIX}{hello.session:08x}-{hello.name}"
        self._segment_size = hello.segment_size
        self._size = hello.size
        self._hash = new_hash()
        self._hashed = 0
        self._descriptor = os.open(self._partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        try:
            self._allocate()
        except OSError:
            self.discard()
            raise

    def write(self, segment: int, payload: bytes | memoryview, contiguous: int) -> None:
        """Store one segment; the first `contiguous` segments are then all stored. Raises OSError."""
        offset = segment * self._segment_size
        written = os.pwrite(self._descriptor, payload, offset)
        while written < len(payload):
            written += os.pwrite(self._descriptor, payload[written:], offset + written)
        # The bytes are still in the cache of the processor, so digesting them now is nearly free.
        if offset == self._hashed:
            self._hash.update(payload)
            self._hashed += len(payload)
        end = min(contiguous * self._segment_size, self._size)
        if self._hashed < end:
            self._catch_up(min(end, self._hashed + _CATCH_UP_BYTES))

    def commit(self, digest: bytes, *, fsync: bool) -> None:
        """Check the digest of the whole and give the file its name. Raises DigestMismatchError, OSError."""
        while self._hashed < self._size:
            self._catch_up(min(self._size, self._hashed + _CATCH_UP_BYTES))
        if self._hash.digest() != digest:
            raise DigestMismatchError("all bytes arrived, but their digest is not the sender's; send the file again")
        if fsync:
            os.fsync(self._descriptor)
        self._partial.replace(self.path)
        os.close(self._descriptor)
        self._descriptor = -1
        if fsync:
            _fsync_directory(self.path.parent)

    def discard(self) -> None:
        """Leave nothing behind. No effect after commit."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._partial.unlink(missing_ok=True)

    def _allocate(self) -> None:
        if self._size == 0:
            return
        try:
            os.posix_fallocate(self._descriptor, 0, self._size)
        except OSError as error:
            # Some file systems cannot allocate ahead (EINVAL by older kernels); then a full disk shows at write.
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            os.ftruncate(self._descriptor, self._size)

    def _catch_up(self, end: int) -> None:
        buffer = bytearray(end - self._hashed)
        read_exactly(self._descriptor, memoryview(buffer), self._hashed)
        self._hash.update(memoryview(buffer))
        self._hashed = end


def _fsync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

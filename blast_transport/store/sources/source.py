"""Sources of the sender's bytes: a regular file, which can be read again, or a stream, which cannot.

A stream (standard input, a pipe) is read ahead into a ring; `release` frees the data that every receiver has, which
stays readable until its space is needed, for receivers that lag.
"""

from __future__ import annotations

import errno
import hashlib
import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from blast_transport.base.errors import ForgottenError, SourceChangedError, WrongInputError, sentence
from blast_transport.blocks.block_map import Range
from blast_transport.store.files.file_state import settled_state
from blast_transport.store.files.holes import holes_of

AtEnd = Callable[[Callable[[], None]], None]
"""Called at the end of the stream, with its cause, possibly from any thread, and possibly never."""

RING_BYTES = 64 << 20
"""Data of a stream that a slow receiver may still request."""
_READ_BYTES = 1 << 20
"""At most one read, so that others can take data soon."""


class Source(Protocol):
    """Source of the data. `size` is None until a stream has ended; `descriptor` is a file that can be read again."""

    descriptor: int | None
    content: str

    @property
    def size(self) -> int | None:
        """Return the total bytes, None while unknown. Raise SourceChangedError if they will never be known."""

    @property
    def available(self) -> int:
        """Return the offset before which bytes can be read without waiting."""

    def read(self, offset: int, view: memoryview) -> int:
        """Fill `view` from `offset`; return the number of bytes, fewer only at the end.

        Waits for a stream. Raises SourceChangedError, ForgottenError.
        """

    def release(self, offset: int) -> None:
        """Free the data before `offset`, which will not be read again."""

    def holes(self) -> list[Range]:
        """Return the ranges that read as zeros and are not stored, as (offset, bytes) in order."""

    def check_unchanged(self) -> None:
        """Raise SourceChangedError if the data has changed since it was read, where this can be detected."""


class FileSource:
    """Regular file. `content` is equal for the same unchanged file.

    Raises WrongInputError if the file's data does not match its size.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.descriptor: int | None = descriptor
        self._fd, self._path = descriptor, path
        self._state = state = settled_state(lambda: os.fstat(descriptor))
        self._size = state.size
        self._check_size()
        identity = f"{path.resolve()}\0{state.size}\0{state.modified}\0{state.inode}"
        self.content = hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()[:32]

    @property
    def size(self) -> int:
        """Return the bytes of the file when it was opened."""
        return self._size

    @property
    def available(self) -> int:
        """Return the size: all bytes are available."""
        return self._size

    def read(self, offset: int, view: memoryview) -> int:
        """Fill `view` from `offset`, or up to the end. Raises SourceChangedError if the file ends before."""
        view = view[: max(0, self._size - offset)]
        size = len(view)
        while view:
            count = os.preadv(self._fd, [view], offset)
            if count == 0:
                self.check_unchanged()
                raise SourceChangedError(f"the file ends at byte {offset}: it became shorter while it was read")
            view, offset = view[count:], offset + count
        self.check_unchanged()
        return size

    def release(self, offset: int) -> None:
        """Do nothing: a file keeps its data."""

    def holes(self) -> list[Range]:
        """Return the holes of the file; a write that fills one of them later is a change of the file."""
        return holes_of(self._fd, self._size)

    def check_unchanged(self) -> None:
        """Raise SourceChangedError if the file has changed since it was opened; `file_state` lists the exceptions."""
        self._state.check(str(self._path), os.fstat(self._fd))

    def _check_size(self) -> None:
        """Reject files whose sizes are meaningless, as in /proc and /sys: data behind such a size would be missing."""
        is_longer = bool(os.pread(self._fd, 1, self._size))
        if is_longer or (self._size and not os.pread(self._fd, 1, self._size - 1)):
            raise WrongInputError(
                f"{self._path} has {'more' if is_longer else 'fewer'} bytes than the {self._size} of its size: it is "
                f"being written, or its file system knows no sizes (as /proc): send it as a stream, "
                f"`cat {self._path} | blast send - --as NAME`"
            )


@contextmanager
def opened_file(path: Path) -> Iterator[FileSource]:
    """Open a regular file to send. Raise WrongInputError if it does not exist."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise WrongInputError(f"cannot read {path}: {sentence(error)}") from error
    try:
        if not path.is_file():
            raise WrongInputError(f"{path} is not a regular file")
        try:
            source = FileSource(path, descriptor)
        except OSError as error:
            raise WrongInputError(f"cannot read {path}: {sentence(error)}") from error
        yield source
    finally:
        os.close(descriptor)


class StreamSource:
    """Stream that a thread reads ahead. A context manager; `wake` is called when data arrives.

    The last `capacity` bytes are kept for retransmissions. The thread calls `at_end`, for example to detect a truncated
    stream.
    """

    descriptor: int | None = None
    content = ""

    def __init__(self, stream: int, capacity: int = RING_BYTES, wake: Callable[[], None] = lambda: None) -> None:
        self.wake = wake
        self.at_end: AtEnd = _believed
        self._stream = stream
        self._ring = bytearray(capacity)
        self._first_held = self._released = self._end = 0
        self._ended = False
        self._failure: OSError | None = None
        self._changed = threading.Condition()
        self._stop_reader, self._stop_writer = os.pipe()
        self._thread = threading.Thread(target=self._run, name="stream source", daemon=True)

    def __enter__(self) -> StreamSource:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_with(OSError(errno.ECANCELED, "it was closed before its end"))
        os.write(self._stop_writer, b"\0")
        self._thread.join()
        os.close(self._stop_reader)
        os.close(self._stop_writer)

    @property
    def size(self) -> int | None:
        """Return the total bytes once the stream has ended. Raise SourceChangedError if it broke."""
        with self._changed:
            self._check()
            return self._end if self._ended else None

    @property
    def available(self) -> int:
        """Return the offset before which all bytes have arrived."""
        with self._changed:
            return self._end

    def read(self, offset: int, view: memoryview) -> int:
        """Fill `view` from `offset`; wait until it is full or the stream ends. Raises as `Source.read` does."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._end >= offset + len(view))
            self._check()
            if offset < self._first_held:
                raise ForgottenError(self._first_held)
            count = max(0, min(len(view), self._end - offset))
            self._copy(offset, view[:count])
            return count

    def release(self, offset: int) -> None:
        """Make room for more of the stream."""
        with self._changed:
            self._released = max(self._released, min(offset, self._end))
            self._changed.notify_all()

    def holes(self) -> list[Range]:
        """Return nothing: a stream has bytes only."""
        return []

    def check_unchanged(self) -> None:
        """Do nothing: received data does not change."""

    def _check(self) -> None:
        if self._failure is not None:
            raise SourceChangedError(f"the stream cannot be read: {self._failure.strerror}")

    def _copy(self, offset: int, view: memoryview) -> None:
        begin = offset % len(self._ring)
        first = min(len(view), len(self._ring) - begin)
        view[:first] = self._ring[begin : begin + first]
        view[first:] = self._ring[: len(view) - first]

    def _run(self) -> None:
        try:
            while self._read_some():
                self.wake()
        except OSError as error:
            self._end_with(error)

    def _read_some(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._end - self._released < len(self._ring))
        if self._ended or self._stopped():
            return False
        with self._changed:
            begin = self._end % len(self._ring)
            room = min(len(self._ring) - (self._end - self._released), len(self._ring) - begin, _READ_BYTES)
            self._first_held = max(self._first_held, self._end + room - len(self._ring))
        with memoryview(self._ring) as ring:
            count = os.readv(self._stream, [ring[begin : begin + room]])
        if count == 0:
            self.at_end(self._end_with)
            return False
        with self._changed:
            self._end += count
            self._changed.notify_all()
        return True

    def _stopped(self) -> bool:
        """Wait for more of the stream; return True if reading was stopped."""
        waiting = select.poll()
        waiting.register(self._stream, select.POLLIN)
        waiting.register(self._stop_reader, select.POLLIN)
        return self._stop_reader in dict(waiting.poll())

    def _end_with(self, failure: OSError | None = None) -> None:
        with self._changed:
            if not self._ended:
                self._ended, self._failure = True, failure
            self._changed.notify_all()
        self.wake()


def _believed(end: Callable[[], None]) -> None:
    end()

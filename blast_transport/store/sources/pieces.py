"""A source put together of pieces that lie elsewhere: buffers in memory, and files. Nothing is copied to join them."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from blast_transport.base.errors import SourceChangedError, sentence
from blast_transport.blocks.block_map import Range
from blast_transport.store.files.file_state import FileState
from blast_transport.store.files.holes import holes_of, is_sparse

_SMALLEST_SPARSE = 1 << 16
"""Bytes of a file that is looked at for holes: a smaller one has hardly a block in them, and a folder many of them."""


class FilePiece(NamedTuple):
    """All of a file, as it is in this state."""

    path: Path
    state: FileState

    @property
    def size(self) -> int:
        """Return the bytes of the file."""
        return self.state.size

    def read(self, offset: int, view: memoryview) -> None:
        """Fill `view` from `offset`. Raises SourceChangedError."""
        try:
            # Opened each time: a folder may have more files than a process may have descriptors.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise SourceChangedError(f"{self.path} cannot be read any more: {sentence(error)}") from error
        try:
            while view:
                count = os.preadv(descriptor, [view], offset)
                if count == 0:
                    self.state.check(str(self.path), os.fstat(descriptor))
                    raise SourceChangedError(f"{self.path} became shorter while it was sent")
                view, offset = view[count:], offset + count
            self.state.check(str(self.path), os.fstat(descriptor))
        except OSError as error:
            raise SourceChangedError(f"{self.path} cannot be read: {sentence(error)}") from error
        finally:
            os.close(descriptor)

    def holes(self) -> list[Range]:
        """Return the holes of the file; none if it cannot be read, which a later read reports."""
        try:
            if self.size < _SMALLEST_SPARSE or not is_sparse(self.path.stat()):
                return []
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return []
        try:
            return holes_of(descriptor, self.size)
        finally:
            os.close(descriptor)

    def check_unchanged(self) -> None:
        """Raise SourceChangedError if the file was changed, or does not exist any more."""
        try:
            status = self.path.stat()
        except OSError as error:
            raise SourceChangedError(f"{self.path} is not there any more: {sentence(error)}") from error
        self.state.check(str(self.path), status)


Piece = memoryview | FilePiece
"""A memoryview is one of bytes, contiguous."""


class PiecesSource:
    """Source of consecutive pieces. Their data must not change while it is sent. Thread-safe."""

    descriptor: int | None = None
    content = ""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._all = list(pieces)
        self._pieces = [piece for piece in pieces if _length(piece)]
        self._begins = list(accumulate(map(_length, self._pieces), initial=0))

    @property
    def size(self) -> int:
        """Return the total bytes."""
        return self._begins[-1]

    @property
    def available(self) -> int:
        """Return the total bytes, which are all available."""
        return self._begins[-1]

    def read(self, offset: int, view: memoryview) -> int:
        """Read as `Source.read` does. Raise SourceChangedError."""
        view = view[: max(0, self.size - offset)]
        size = len(view)
        number = bisect_right(self._begins, offset) - 1
        while view:
            piece, begin = self._pieces[number], offset - self._begins[number]
            count = min(len(view), _length(piece) - begin)
            _copy(piece, begin, view[:count])
            view, offset, number = view[count:], offset + count, number + 1
        return size

    def release(self, offset: int) -> None:
        """Do nothing: all pieces stay readable."""

    def holes(self) -> list[Range]:
        """Return the holes of all files among the pieces; pieces in memory have none."""
        # One more offset follows: the end of all pieces.
        pieces = zip(self._begins, self._pieces, strict=False)
        files = ((begin, piece) for begin, piece in pieces if isinstance(piece, FilePiece))
        return [(begin + offset, length) for begin, piece in files for offset, length in piece.holes()]

    def check_unchanged(self) -> None:
        """Raise SourceChangedError if a file was written meanwhile; changes in memory are not detected."""
        for piece in self._all:
            if isinstance(piece, FilePiece):
                piece.check_unchanged()


def _length(piece: Piece) -> int:
    return piece.size if isinstance(piece, FilePiece) else piece.nbytes


def _copy(piece: Piece, begin: int, view: memoryview) -> None:
    if isinstance(piece, FilePiece):
        piece.read(begin, view)
    else:
        view[:] = piece[begin : begin + len(view)]

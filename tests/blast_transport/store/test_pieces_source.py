"""A source of several pieces, which reads like the joined pieces at any offset."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.base.errors import SourceChangedError
from blast_transport.store.files.file_state import FileState
from blast_transport.store.sources.pieces import FilePiece, Piece, PiecesSource
from tests.support.transport.objects import scratch


def file_piece(path: Path, content: bytes) -> FilePiece:
    path.write_bytes(content)
    status = path.stat()
    return FilePiece(path, FileState.of(status))


@settings(deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=40), st.booleans()), max_size=8), st.data())
def test_any_range_reads_like_joined_pieces(contents: list[tuple[bytes, bool]], data: st.DataObject) -> None:
    with scratch() as folder:
        pieces: list[Piece] = [
            file_piece(folder / str(number), content) if in_file else memoryview(content)
            for number, (content, in_file) in enumerate(contents)
        ]
        joined, source = b"".join(content for content, _ in contents), PiecesSource(pieces)
        assert source.size == source.available == len(joined)
        offset = data.draw(st.integers(0, len(joined) + 5))
        view = memoryview(bytearray(data.draw(st.integers(0, len(joined) + 5))))
        count = source.read(offset, view)
        assert view[:count] == joined[offset : offset + len(view)]
        source.check_unchanged()


@pytest.mark.parametrize("change", ["shorter", "same length", "gone"])
def test_changed_file_of_pieces_is_detected(tmp_path: Path, change: str) -> None:
    path = tmp_path / "file"
    source = PiecesSource([memoryview(b"head"), file_piece(path, b"0123456789")])
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes(b"01234" if change == "shorter" else b"abcdefghij")
        os.utime(path, ns=(1, 1))
    with pytest.raises(SourceChangedError, match=r"file.*(changed|any more)"):
        source.read(0, memoryview(bytearray(8)))
    with pytest.raises(SourceChangedError):
        source.check_unchanged()
    assert source.read(0, memoryview(bytearray(4))) == 4


def test_change_of_empty_file_is_detected(tmp_path: Path) -> None:
    source = PiecesSource([file_piece(tmp_path / "file", b"")])
    (tmp_path / "file").write_bytes(b"not any more")
    with pytest.raises(SourceChangedError):
        source.check_unchanged()

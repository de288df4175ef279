from __future__ import annotations

import os
from pathlib import Path

import pytest

from blast_transport.control import Hello
from blast_transport.errors import DigestMismatchError, SourceChangedError, UnsafeNameError
from blast_transport.store_old import TargetFile, new_hash, plain_name, read_exactly

CONTENT = bytes(range(256)) * 3 + b"tail"
SEGMENT = 100
HELLO = Hello(0xABC, "file.bin", len(CONTENT), SEGMENT, "239.0.0.1", 80)


def digest(content: bytes) -> bytes:
    digesting = new_hash()
    digesting.update(content)
    return digesting.digest()


def piece(segment: int) -> bytes:
    return CONTENT[segment * SEGMENT : (segment + 1) * SEGMENT]


def fill(target: TargetFile, order: list[int]) -> None:
    held: set[int] = set()
    for segment in order:
        held.add(segment)
        contiguous = next(index for index in range(HELLO.segments + 1) if index not in held)
        target.write(segment, piece(segment), contiguous)


@pytest.mark.parametrize("order", [list(range(8)), list(reversed(range(8))), [0, 1, 5, 2, 7, 6, 3, 4]])
@pytest.mark.parametrize("fsync", [False, True])
def test_any_order_gives_the_file(tmp_path: Path, order: list[int], fsync: bool) -> None:
    target = TargetFile(tmp_path, HELLO)
    fill(target, order)
    assert not (tmp_path / "file.bin").exists()
    target.commit(digest(CONTENT), fsync=fsync)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.bin"]
    target.discard()
    assert (tmp_path / "file.bin").exists()


def test_a_wrong_digest_leaves_the_old_file_alone(tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_text("old")
    target = TargetFile(tmp_path, HELLO)
    fill(target, list(range(8)))
    with pytest.raises(DigestMismatchError):
        target.commit(digest(b"other"), fsync=False)
    target.discard()
    assert (tmp_path / "file.bin").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_the_partial_file_has_its_full_size_at_once(tmp_path: Path) -> None:
    target = TargetFile(tmp_path, HELLO)
    (partial,) = tmp_path.iterdir()
    assert partial.name.startswith(".blast-")
    assert partial.stat().st_size == len(CONTENT)
    target.discard()
    assert list(tmp_path.iterdir()) == []


def test_no_room_is_known_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"space|large"):
        TargetFile(tmp_path, Hello(1, "huge", 1 << 62, 1 << 20, "239.0.0.1", 80))
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file(tmp_path: Path) -> None:
    target = TargetFile(tmp_path, Hello(1, "empty", 0, SEGMENT, "239.0.0.1", 80))
    target.commit(digest(b""), fsync=False)
    assert (tmp_path / "empty").read_bytes() == b""


def test_two_sessions_of_one_name_do_not_mix(tmp_path: Path) -> None:
    first, second = TargetFile(tmp_path, HELLO), TargetFile(tmp_path, Hello(2, "file.bin", 4, 4, "239.0.0.1", 80))
    second.write(0, b"four", 1)
    fill(first, list(range(8)))
    first.commit(digest(CONTENT), fsync=False)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    second.commit(digest(b"four"), fsync=False)
    assert (tmp_path / "file.bin").read_bytes() == b"four"


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "/etc/passwd",
        "../up",
        "a/b",
        "a\\b",
        "nul\0",
        "line\n",
        "x" * 201,
        "ü" * 101,
        ".blast-1-file",
        "\udcff",
    ],
)
def test_unsafe_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsafeNameError):
        TargetFile(tmp_path, Hello(1, name, 1, 1, "239.0.0.1", 80))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a", "...", ".hidden", "naïve name.bin", "x" * 200])
def test_plain_names_are_taken(name: str) -> None:
    assert plain_name(name) == name


def test_a_symlink_in_the_way_is_replaced_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("precious")
    directory = tmp_path / "in"
    directory.mkdir()
    (directory / "file.bin").symlink_to(outside)
    target = TargetFile(directory, HELLO)
    fill(target, list(range(8)))
    target.commit(digest(CONTENT), fsync=False)
    assert outside.read_text() == "precious"
    assert (directory / "file.bin").read_bytes() == CONTENT


def test_a_file_that_shrank_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"abc")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(SourceChangedError, match="byte 3"):
            read_exactly(descriptor, memoryview(bytearray(4)), 0)
    finally:
        os.close(descriptor)

"""A file that is changed while it is sent: what is noticed, and by which name of the change."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from blast_transport.base.errors import SourceChangedError, WrongInputError
from blast_transport.store.sources.folder_source import FolderSource
from blast_transport.store.sources.source import Source, opened_file

SIZE = 100_000


def write_and_set_time_back(path: Path) -> None:
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"new first page")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def write(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"x")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "time set back": (write_and_set_time_back, "its time was set back"),
    "written": (write, "it was written"),
    "longer": (lambda path: os.truncate(path, SIZE + 1), f"it has {SIZE + 1} bytes and had {SIZE}"),
    "permissions": (lambda path: path.chmod(0o600), "permissions"),
}


@pytest.mark.parametrize(("change", "words"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_change_is_noticed_by_the_next_read_and_at_the_end(
    tmp_path: Path, kind: str, change: Callable[[Path], object], words: str
) -> None:
    """Also of a file that was written a moment before it is opened."""
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    path.write_bytes(bytes(SIZE))
    with opened_file(path) as file:
        source: Source = file if kind == "file" else FolderSource(path.parent)
        view = memoryview(bytearray(SIZE))
        source.read(0, view)
        source.check_unchanged()
        change(path)
        for look in (lambda: source.read(0, view), source.check_unchanged):
            with pytest.raises(SourceChangedError, match=words) as caught:
                look()
            assert str(path) in str(caught.value) and "was changed while it was sent" in str(caught.value)


def test_another_file_in_the_place_of_one_of_a_folder_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(10))
    source = FolderSource(tmp_path)
    (tmp_path / "other").write_bytes(bytes(10))
    (tmp_path / "other").rename(path)
    with pytest.raises(SourceChangedError, match="another file has its name"):
        source.check_unchanged()


@pytest.mark.parametrize("path", ["/proc/cpuinfo", "/sys/kernel/mm/transparent_hugepage/enabled"])
def test_file_whose_size_says_nothing_is_refused(path: str) -> None:
    with (
        pytest.raises(WrongInputError, match=r"send it as a stream, `cat .* \| blast send - --as NAME`"),
        opened_file(Path(path)),
    ):
        pass

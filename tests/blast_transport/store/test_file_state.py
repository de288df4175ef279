"""Detection and description of changes of a file during its transfer."""

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
def test_file_change_is_detected_by_next_read_and_final_check(
    tmp_path: Path, kind: str, change: Callable[[Path], object], words: str
) -> None:
    """Files that are written just before they are opened are included."""
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


def test_replaced_file_of_folder_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(10))
    source = FolderSource(tmp_path)
    (tmp_path / "other").write_bytes(bytes(10))
    (tmp_path / "other").rename(path)
    with pytest.raises(SourceChangedError, match="another file has its name"):
        source.check_unchanged()


@pytest.mark.parametrize("path", ["/proc/cpuinfo", "/sys/kernel/mm/transparent_hugepage/enabled"])
def test_file_without_meaningful_size_is_rejected(path: str) -> None:
    with (
        pytest.raises(WrongInputError, match=r"send it as a stream, `cat .* \| blast send - --as NAME`"),
        opened_file(Path(path)),
    ):
        pass

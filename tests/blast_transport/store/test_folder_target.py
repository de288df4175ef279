"""Reception of a folder: whole or not at all, and never outside its target."""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path

import pytest

from blast_transport.agent.permissions import Permissions
from blast_transport.agent.settings import DeviceSection, FolderSection, Settings
from blast_transport.base.errors import NotAllowedError, StoreError, UnsafeNameError, WrongInputError
from blast_transport.store.files import folder_table
from blast_transport.store.files.folder_table import EntryKind, FolderEntry, Table, encode
from blast_transport.store.sources.folder_source import FolderSource
from blast_transport.store.targets.file_target import FileRules, open_directory
from blast_transport.store.targets.folder_target import FolderTarget, _Unpacking
from tests.support.transport.folder_trees import names_in, seen, varied


@pytest.fixture
def into(tmp_path: Path) -> Path:
    place = tmp_path / "into"
    place.mkdir()
    return place


def read(source: FolderSource) -> bytes:
    view = memoryview(bytearray(source.size))
    assert source.read(0, view) == source.size
    return bytes(view)


def target(into: Path, size: int, **more: object) -> FolderTarget:
    return FolderTarget(open_directory(into), into, "data", size, "id", **more)


def unpacked(into: Path, data: bytes, fsync: bool = False) -> None:
    taking = target(into, len(data))
    try:
        taking.write(0, data)
        taking.commit(len(data), fsync=fsync)
    finally:
        taking.discard(resumable=False)


def unchecked(monkeypatch: pytest.MonkeyPatch, *entries: FolderEntry) -> bytes:
    """Return an encoded table of a hostile sender, which does not check its entries."""
    with monkeypatch.context() as patched:
        patched.setattr(folder_table, "check", lambda table: None)
        return encode(Table(0o755, entries))


@pytest.mark.parametrize("fsync", [False, True])
def test_received_folder_equals_sent_folder(tmp_path, into, fsync):
    folder = varied(tmp_path / "data")
    unpacked(into, read(FolderSource(folder)), fsync)
    assert seen(into / "data") == seen(folder)
    assert names_in(into) == ["data"]


@pytest.mark.parametrize("refused", [None, errno.EPERM, errno.EMLINK, errno.EIO])
def test_hard_links_are_sent_once_and_restored(tmp_path, into, monkeypatch, refused):
    """A file system without hard links, or without more links for one file, gets copies."""

    def no_link(*_: object, **__: object) -> None:
        raise OSError(refused, os.strerror(refused))

    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "one").write_bytes(b"x" * 50_000)
    (folder / "one").chmod(0o640)
    (folder / "alone").write_bytes(b"x")
    os.link(folder / "one", folder / "other")
    os.link(folder / "one", folder / "sub" / "third")
    os.link(folder / "alone", tmp_path / "outside")
    source = FolderSource(folder)
    assert source.size < 51_000
    if refused is not None:
        monkeypatch.setattr(os, "link", no_link)
    if refused == errno.EIO:
        with pytest.raises(StoreError, match="Input/output"):
            unpacked(into, read(source))
        assert names_in(into) == []
        return
    unpacked(into, read(source))
    assert seen(into / "data") == seen(folder)
    links = [(into / "data" / name).stat().st_nlink for name in ("one", "other", "sub/third", "alone")]
    assert links == ([1, 1, 1, 1] if refused else [3, 3, 3, 1])


def test_holes_of_files_in_folder_are_restored(tmp_path, into):
    """The received data has holes where the sender announced them; a plain copy would fill them."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name, data, size in (("a", b"", 1 << 20), ("b", b"x" * 5000, 5000), ("c", b"y" * 100_000, 3 << 20)):
        with (folder / name).open("wb") as file:
            file.truncate(size)
            file.seek(size // 2)
            file.write(data)
            file.truncate(size)
    data = read(FolderSource(folder))
    taking = target(into, len(data))
    for begin in range(0, len(data), 10_000):
        if any(data[begin : begin + 10_000]):
            taking.write(begin, data[begin : begin + 10_000])
    taking.commit(len(data), fsync=False)
    assert seen(into / "data") == seen(folder)
    blocks = {name: (into / "data" / name).stat().st_blocks * 512 for name in "abc"}
    # Data beside a hole shares pages with it.
    assert blocks["a"] < 40_000 and blocks["c"] < 200_000


def test_setuid_setgid_and_sticky_bits_are_dropped(tmp_path, into):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "tool").write_text("x")
    (folder / "tool").chmod(0o6755)
    folder.chmod(0o3777)
    unpacked(into, read(FolderSource(folder)))
    assert stat.S_IMODE((into / "data" / "tool").stat().st_mode) == 0o755
    assert stat.S_IMODE((into / "data").stat().st_mode) == 0o777


@pytest.mark.parametrize(
    "entries",
    [
        [FolderEntry(EntryKind.FILE, "../escaped", 0o644, 1)],
        [
            FolderEntry(EntryKind.LINK, "d", 0o777, 1, target="../.."),
            FolderEntry(EntryKind.FILE, "d/escaped", 0o644, 1),
        ],
        [FolderEntry(EntryKind.FILE, "a", 0o644, 1, size=1)],
    ],
    ids=["dots", "through a link", "longer than the data"],
)
def test_hostile_folder_table_leaves_no_files(monkeypatch, tmp_path, into, entries):
    data = unchecked(monkeypatch, *entries)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreError, match="cannot make"):
        unpacked(into, data)
    assert sorted(tmp_path.rglob("*")) == before


def test_invalid_folder_data_leaves_no_files(into):
    for data in (b"", b"x" * 100, encode(Table(0o755, ()))[:-1]):
        with pytest.raises(StoreError):
            unpacked(into, data)
    assert names_in(into) == []


@pytest.mark.parametrize("made", [1, 3, 5])
def test_failed_unpacking_leaves_no_files(monkeypatch, tmp_path, into, made):
    folder = varied(tmp_path / "data")
    data, calls, begin = read(FolderSource(folder)), [], _Unpacking._file

    def failing(unpacking: _Unpacking, entry: FolderEntry, offset: int) -> None:
        calls.append(entry)
        if len(calls) > made:
            raise OSError(28, "No space left on device")
        assert not (into / "data").exists()
        begin(unpacking, entry, offset)

    monkeypatch.setattr(_Unpacking, "_file" if made < 3 else "_close_folder", failing if made < 3 else no_space)
    with pytest.raises(StoreError, match="No space"):
        unpacked(into, data)
    assert names_in(into) == []


def no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_folder_created_meanwhile_is_not_replaced(tmp_path, into):
    folder = varied(tmp_path / "data")
    data = read(FolderSource(folder))
    taking = target(into, len(data))
    taking.write(0, data)
    (into / "data").mkdir()
    (into / "data" / "precious").touch()
    with pytest.raises(StoreError, match="is there already, and is left as it is"):
        taking.commit(len(data), fsync=False)
    taking.discard(resumable=False)
    assert names_in(into) == ["data"] and names_in(into / "data") == ["precious"]


def test_empty_folder_of_same_name_is_replaced(tmp_path, into):
    (into / "data").mkdir()
    unpacked(into, read(FolderSource(varied(tmp_path / "data"))))
    assert (into / "data" / "a").is_file()


def test_folder_requires_twice_its_size(monkeypatch, into):
    checked = []
    monkeypatch.setattr(
        "blast_transport.store.targets.file_target.FileTarget._check_room", lambda self, size: checked.append(size)
    )
    target(into, 1000).discard(resumable=False)
    assert checked == [2000]


def test_folder_beyond_size_limit_is_rejected_before_transfer(into):
    with pytest.raises(StoreError, match="more than"):
        target(into, 1000, rules=FileRules(max_bytes=999))


def test_day_old_remains_of_killed_agent_are_removed(into):
    remains = into / ".blast-0123"
    (remains / "sub").mkdir(parents=True)
    fresh = into / ".blast-4567"
    fresh.mkdir()
    long_ago = time.time() - 90_000
    os.utime(remains, (long_ago, long_ago))
    target(into, 10).discard(resumable=False)
    assert names_in(into) == [fresh.name]


# ---------------------------------------------------------------------- valid and invalid folders


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda folder: os.mkfifo(folder / "pipe"), "pipe is no file, folder or link"),
        (lambda folder: (folder / "out").symlink_to("/etc/passwd"), "absolute path"),
        (lambda folder: (folder / "out").symlink_to("../other"), "leads out of the folder"),
        (lambda folder: (folder / "loop").symlink_to("loop"), "in a circle"),
        (lambda folder: (folder / "new\nline").touch(), "cannot be printed"),
        (lambda folder: Path(os.fsdecode(os.fsencode(folder) + b"/\xff")).touch(), "is not UTF-8"),
    ],
    ids=["pipe", "absolute", "outside", "circle", "line", "bytes"],
)
def test_unsendable_entry_is_reported(tmp_path, make, sentence):
    folder = tmp_path / "data"
    folder.mkdir()
    make(folder)
    with pytest.raises(WrongInputError, match=sentence) as refused:
        FolderSource(folder)
    assert str(refused.value).isprintable() or "\udcff" in str(refused.value)


def test_folder_with_too_many_levels_or_entries_is_reported(monkeypatch, tmp_path):
    deep = tmp_path / "deep"
    deep.joinpath(*("a" * 70)).mkdir(parents=True)
    with pytest.raises(WrongInputError, match="64 parts"):
        FolderSource(deep)
    monkeypatch.setattr("blast_transport.store.sources.folder_source.MAX_ENTRIES", 3)
    with pytest.raises(WrongInputError, match="more than 3 entries"):
        FolderSource(deep)


def test_content_identity_of_folder_changes_with_its_files(tmp_path):
    folder = varied(tmp_path / "data")
    first = FolderSource(folder).content
    assert FolderSource(folder).content == first
    (folder / "sub" / "tool").write_bytes(b"other")
    assert FolderSource(folder).content != first


# ---------------------------------------------------------------------- permitted targets


@pytest.fixture
def permissions(into: Path) -> Permissions:
    return Permissions(
        Settings(folder=(FolderSection("in", into),), device=(DeviceSection("disk", Path("/dev/null")),))
    )


def test_folder_replaces_no_existing_entry_or_device(permissions, into):
    (into / "full").mkdir()
    (into / "full" / "x").touch()
    (into / "file").touch()
    (into / "link").symlink_to("full")
    with pytest.raises(NotAllowedError, match="is there already"):
        permissions.allow("folder", "full")
    for name in ("file", "link", "../x", "/x", "link/x"):
        with pytest.raises(UnsafeNameError):
            permissions.allow("folder", name)
    with pytest.raises(NotAllowedError, match="is a device"):
        permissions.allow("folder", "data", "disk")

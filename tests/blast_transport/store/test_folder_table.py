"""The table of a sent folder: valid entries, and links that stay within the folder."""

from __future__ import annotations

import os
import struct
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.base.errors import RemoteProtocolError, UnsafeNameError
from blast_transport.store.files import folder_table
from blast_transport.store.files.folder_links import check_links
from blast_transport.store.files.folder_table import (
    HEAD_BYTES,
    MAGIC,
    EntryKind,
    FolderEntry,
    Table,
    decode,
    encode,
    table_bytes,
)

REFUSED = (RemoteProtocolError, UnsafeNameError)
NAMES = st.sampled_from(["a", "b", "c", "d"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TARGETS = st.lists(NAMES | st.sampled_from(["..", ".", ""]), min_size=1, max_size=5).map("/".join).filter(bool)


def file(path: str, **more: object) -> FolderEntry:
    return FolderEntry(EntryKind.FILE, path, 0o644, 1, **more)


def folder(path: str) -> FolderEntry:
    return FolderEntry(EntryKind.FOLDER, path, 0o755, 1)


def link(path: str, target: str) -> FolderEntry:
    return FolderEntry(EntryKind.LINK, path, 0o777, 1, target=target)


def hard_link(path: str, target: str) -> FolderEntry:
    return FolderEntry(EntryKind.HARD_LINK, path, 0o644, 1, target=target)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    names = st.text(st.characters(categories=["L", "N", "P", "Zs"], exclude_characters="/"), min_size=1, max_size=8)
    entries, folders, files = [], [""], []
    for name in draw(st.lists(names.filter(lambda n: n.isprintable() and n not in (".", "..")), unique=True)):
        above = draw(st.sampled_from(folders))
        path = f"{above}/{name}" if above else name
        kind = draw(st.sampled_from(EntryKind).filter(lambda kind: files or kind is not EntryKind.HARD_LINK))
        mode, time = draw(st.integers(0, 0o777)), draw(st.integers(-(10**18), 10**18))
        if kind is EntryKind.FOLDER:
            folders.append(path)
        size = draw(st.integers(0, 1 << 40)) if kind is EntryKind.FILE else 0
        # A link to its own name would be a cycle.
        targets = {EntryKind.LINK: st.just("."), EntryKind.HARD_LINK: st.sampled_from(files or [""])}
        entries.append(FolderEntry(kind, path, mode, time, size, draw(targets.get(kind, st.just("")))))
        if kind is EntryKind.FILE:
            files.append(path)
    return Table(draw(st.integers(0, 0o777)), tuple(entries))


@given(tables())
def test_table_round_trips(table):
    data = encode(table)
    assert table_bytes(data[:HEAD_BYTES]) == len(data) - HEAD_BYTES
    assert decode(data) == table


@given(tables(), st.data())
def test_truncated_table_is_rejected(table, data):
    encoded = encode(table)
    with pytest.raises(REFUSED):
        decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@pytest.mark.parametrize(
    "entries",
    [
        [file("../a")],
        [file("/a")],
        [file("a/../../b")],
        [file("a//b")],
        [file(".")],
        [file("a\0b")],
        [file("x" * 256)],
        [folder("/".join("a" * n)) for n in range(1, 66)],
        [file("no/such/folder")],
        [file("a"), file("a/b")],
        [folder("a"), folder("a")],
        [folder("d"), link("d", "/etc"), file("d/passwd")],
        [link("d", "."), file("d/passwd")],
        [file("a/b"), folder("a")],
        [FolderEntry(EntryKind.FILE, "a", 0o4755, 1)],
        [FolderEntry(EntryKind.FOLDER, "a", 0o755, 1, size=1)],
        [FolderEntry(EntryKind.FILE, "a", 0o755, 1, target="b")],
        [FolderEntry(EntryKind.LINK, "a", 0o777, 1)],
        [FolderEntry(EntryKind.FILE, "a", 0o644, 1 << 62 | 1)],
        [hard_link("a", "b")],
        [hard_link("a", "b"), file("b")],
        [hard_link("a", "a")],
        [folder("b"), hard_link("a", "b")],
        [link("b", "."), hard_link("a", "b")],
        [file("b"), hard_link("a", "/b")],
        [file("b"), hard_link("c", "b"), hard_link("a", "c")],
        [file("b"), hard_link("a", "../b")],
        [file("b"), hard_link("a", "")],
        [file("b"), hard_link("a", "b")._replace(size=1)],
        [file("b"), hard_link("a", "b"), file("a")],
        [link("a", "/etc/passwd")],
        [link("a", "..")],
        [link("a", "x" * 1025)],
        [folder("d"), link("d/a", "../../b")],
        [link("a", "."), link("b", "a/..")],
        [link("a", "b"), link("b", "a")],
        [file("\udcff")],
    ],
    ids=lambda entries: ascii(entries[-1].path)[:20] + ascii(entries[-1].target)[:12],
)
def test_unsafe_entries_are_rejected_by_sender_and_receiver(monkeypatch, entries):
    table = Table(0o755, tuple(entries))
    with pytest.raises(REFUSED) as refused:
        encode(table)
    assert str(refused.value).isprintable()
    # A hostile sender does not check the table.
    monkeypatch.setattr(folder_table, "check", lambda table: None)
    with suppress(UnicodeEncodeError):
        data = encode(table)
        monkeypatch.undo()
        with pytest.raises(REFUSED):
            decode(data)


def test_too_many_entries_are_rejected(monkeypatch):
    monkeypatch.setattr(folder_table, "MAX_ENTRIES", 2)
    assert encode(Table(0, (file("a"), file("b"))))
    with pytest.raises(REFUSED):
        encode(Table(0, (file("a"), file("b"), file("c"))))


@pytest.mark.parametrize(("entries", "size"), [(1 << 31, 100), (1, 1 << 31), (1000, 100)])
def test_implausible_head_is_rejected_before_reading_entries(entries, size):
    with pytest.raises(RemoteProtocolError):
        table_bytes(struct.pack("<8sHII", MAGIC, 0o755, entries, size))


def test_data_that_is_no_folder_is_reported():
    with pytest.raises(RemoteProtocolError, match="not a folder"):
        table_bytes(bytes(HEAD_BYTES))


def test_links_of_table_share_one_resolution_limit(monkeypatch):
    links = {f"link{number}": "a/../" * 3 for number in range(4)}
    check_links(links)
    monkeypatch.setattr("blast_transport.store.files.folder_links._MAX_STEPS_TOGETHER", 27)
    with pytest.raises(UnsafeNameError, match="too many names together"):
        check_links(links)


@given(st.dictionaries(PATHS, TARGETS, max_size=5), st.sets(PATHS, max_size=4))
def test_accepted_links_resolve_within_folder(links, folders):
    """Create all entries, as far as possible, and let the system resolve the links."""
    # In an accepted table, no entry lies below a link.
    links = {path: target for path, target in links.items() if not any(path.startswith(f"{one}/") for one in links)}
    with suppress(UnsafeNameError), tempfile.TemporaryDirectory() as place:
        check_links(links)
        root = Path(place).resolve() / "outer" / "root"
        root.mkdir(parents=True)
        for path in sorted(folders - links.keys()):
            with suppress(OSError):
                (root / path).mkdir(parents=True)
        for path, target in sorted(links.items()):
            with suppress(OSError):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).symlink_to(target)
        for path in links:
            if (root / path).is_symlink():
                assert Path(os.path.realpath(root / path)).is_relative_to(root), path

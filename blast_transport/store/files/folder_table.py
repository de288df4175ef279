"""Table of a folder's entries, which precedes the contents of all files in its order.

    magic (8)  mode of the folder itself (2)  entries (4)  bytes of the table (4)  table  contents
    entry: kind (1)  mode (2)  changed at, in ns (8)  size (8)  bytes of the path (2)  bytes of a link's target (2)
           path  target

A file with several names in the folder is sent once, under the first of them; the others are hard links to it.

All numbers are little-endian; paths are UTF-8, relative to the folder, and a folder precedes its entries. The table
comes from the wire: everything in it has a bound, each entry is in a folder of the same table, and no link leads out
(folder_links.py).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from blast_transport.base.errors import RemoteProtocolError, UnsafeNameError
from blast_transport.store.files.file_names import LONGEST_PART, shown
from blast_transport.store.files.folder_links import check_links

MAGIC = b"BLASTDR1"
MAX_ENTRIES = 100_000
MAX_TABLE = 32 << 20
"""Bytes of a table."""
LONGEST_PATH = 1024
"""Bytes of a path, and of what a link shows to."""
DEEPEST = 64
"""Parts of a path at most."""
MODE_BITS = 0o777
"""Bits of a mode that are kept: read, write and execute permissions, without setuid, setgid and sticky."""

_HEAD = struct.Struct("<8sHII")
_ENTRY = struct.Struct("<BHqQHH")
HEAD_BYTES = _HEAD.size
_MAX_TIME = 1 << 62
"""Nanoseconds that fit into the 64 bits of the table, whatever is added to them."""


class EntryKind(IntEnum):
    """Kind of an entry."""

    FILE = 1
    FOLDER = 2
    LINK = 3
    HARD_LINK = 4
    """Another name of a file that precedes it in the table."""


class FolderEntry(NamedTuple):
    """Something in a folder. `changed_at` in ns since 1970; `size`: bytes of a file; `target`: where a link leads.

    The target of a symbolic link is as the file system has it, that of a hard link a path of the same table.
    """

    kind: EntryKind
    path: str
    mode: int
    changed_at: int
    size: int = 0
    target: str = ""


class Table(NamedTuple):
    """All that is in a folder that has this `mode` itself."""

    mode: int
    entries: tuple[FolderEntry, ...]

    @property
    def content_bytes(self) -> int:
        """Return the bytes of all files together."""
        return sum(entry.size for entry in self.entries)


def encode(table: Table) -> bytes:
    """Encode the table with its head. Raise UnsafeNameError, RemoteProtocolError if no receiver would accept it."""
    check(table)
    body = b"".join(_encoded(entry) for entry in table.entries)
    if len(body) > MAX_TABLE:
        raise RemoteProtocolError(f"the names in the folder have more than {MAX_TABLE >> 20} MiB: send it in parts")
    return _HEAD.pack(MAGIC, table.mode, len(table.entries), len(body)) + body


def table_bytes(head: bytes) -> int:
    """Return the bytes of the table that follow a head. Raise RemoteProtocolError."""
    if len(head) != HEAD_BYTES:
        raise RemoteProtocolError("the received data ends before the table of its folder")
    magic, _, entries, size = _HEAD.unpack(head)
    if magic != MAGIC:
        raise RemoteProtocolError("the received data is not a folder")
    if entries > MAX_ENTRIES or size > MAX_TABLE or entries * _ENTRY.size > size:
        raise RemoteProtocolError(f"the folder's table has {entries} entries in {size} bytes, which is out of bounds")
    return int(size)


def decode(data: bytes) -> Table:
    """Decode a head with its table. Raise RemoteProtocolError, UnsafeNameError."""
    size = table_bytes(data[:HEAD_BYTES])
    _, mode, entries, _ = _HEAD.unpack_from(data)
    if len(data) != HEAD_BYTES + size:
        raise RemoteProtocolError("the table of the folder is cut off")
    table = Table(mode, tuple(_entries(data, entries)))
    check(table)
    return table


def check(table: Table) -> None:
    """Raise UnsafeNameError, RemoteProtocolError unless all entries stay in the folder, and within bounds."""
    if table.mode & ~MODE_BITS or len(table.entries) > MAX_ENTRIES:
        raise RemoteProtocolError(f"the folder has {len(table.entries)} entries, or a mode of its own: out of bounds")
    seen: set[str] = set()
    folders, files = {""}, set[str]()
    for entry in table.entries:
        _check_entry(entry)
        above = entry.path.rpartition("/")[0]
        if above not in folders:
            raise UnsafeNameError(f"{shown(entry.path)} is in something that is no folder of what came")
        if entry.path in seen:
            raise UnsafeNameError(f"{shown(entry.path)} comes twice")
        seen.add(entry.path)
        if entry.kind is EntryKind.FOLDER:
            folders.add(entry.path)
        elif entry.kind is EntryKind.FILE:
            files.add(entry.path)
        elif entry.kind is EntryKind.HARD_LINK and entry.target not in files:
            raise UnsafeNameError(f"{shown(entry.path)} is a link to {shown(entry.target)}, which is no file before it")
    check_links({e.path: e.target for e in table.entries if e.kind is EntryKind.LINK})


def check_path(path: str) -> None:
    """Raise UnsafeNameError unless the path is below a folder."""
    parts = path.split("/")
    if len(_utf8(path)) > LONGEST_PATH or len(parts) > DEEPEST:
        raise UnsafeNameError(f"{shown(path)} has more than {LONGEST_PATH} bytes, or more than {DEEPEST} parts")
    for part in parts:
        if part in ("", ".", ".."):
            raise UnsafeNameError(f"{shown(path)} has a part {part!r}, which names nothing of its own")
        if not part.isprintable() or len(part.encode()) > LONGEST_PART:
            raise UnsafeNameError(f"{shown(path)} has a part that cannot be printed, or of over {LONGEST_PART} bytes")


def _check_entry(entry: FolderEntry) -> None:
    check_path(entry.path)
    if entry.mode & ~MODE_BITS or abs(entry.changed_at) > _MAX_TIME or not 0 <= entry.size < 1 << 63:
        raise RemoteProtocolError(f"{shown(entry.path)} has a mode, a time or a size out of bounds")
    if bool(entry.target) is not (entry.kind in (EntryKind.LINK, EntryKind.HARD_LINK)) or (
        entry.size and entry.kind is not EntryKind.FILE
    ):
        raise RemoteProtocolError(f"{shown(entry.path)} has what only a link or a file has, or a link leads nowhere")
    if len(_utf8(entry.target)) > LONGEST_PATH or not entry.target.isprintable():
        raise UnsafeNameError(f"the link {shown(entry.path)} leads to a name that is too long or cannot be printed")


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise UnsafeNameError(f"{shown(text)} is not UTF-8: rename it") from error


def _encoded(entry: FolderEntry) -> bytes:
    path, target = entry.path.encode(), entry.target.encode()
    head = _ENTRY.pack(entry.kind, entry.mode, entry.changed_at, entry.size, len(path), len(target))
    return head + path + target


def _entries(data: bytes, count: int) -> Iterator[FolderEntry]:
    place = HEAD_BYTES
    for _ in range(count):
        if place + _ENTRY.size > len(data):
            raise RemoteProtocolError("the table of the folder is cut off")
        kind, mode, changed_at, size, path_bytes, target_bytes = _ENTRY.unpack_from(data, place)
        begin, middle = place + _ENTRY.size, place + _ENTRY.size + path_bytes
        place = middle + target_bytes
        if place > len(data) or kind not in _KINDS:
            raise RemoteProtocolError("the table of the folder is cut off, or has an entry of an unknown kind")
        yield FolderEntry(_KINDS[kind], _text(data[begin:middle]), mode, changed_at, size, _text(data[middle:place]))
    if place != len(data):
        raise RemoteProtocolError("the table of the folder has more bytes than entries")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UnsafeNameError(f"a name in the folder is not UTF-8: {shown(data.decode(errors='replace'))}") from error


_KINDS = {int(kind): kind for kind in EntryKind}


def folders_of(entries: Sequence[FolderEntry]) -> list[FolderEntry]:
    """Return the entries that are folders, the deepest first."""
    return sorted((e for e in entries if e.kind is EntryKind.FOLDER), key=lambda e: -e.path.count("/"))

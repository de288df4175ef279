"""A folder as it is sent: its table, and behind that its files, each read from where it lies when its turn comes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from blast_transport.base.errors import RemoteProtocolError, UnsafeNameError, WrongInputError, sentence
from blast_transport.store.files.file_state import settled_state
from blast_transport.store.files.folder_table import MAX_ENTRIES, MODE_BITS, EntryKind, FolderEntry, Table, encode
from blast_transport.store.sources.pieces import FilePiece, Piece, PiecesSource


class FolderSource(PiecesSource):
    """Source with the present contents of a folder. `content` is equal for an unchanged folder.

    Raises WrongInputError for an entry that cannot be sent: a device, a socket, a pipe, a name that is not UTF-8, a
    link out of the folder, too many entries.
    """

    def __init__(self, folder: Path) -> None:
        table = read_folder(folder)
        try:
            head = encode(table)
        except (RemoteProtocolError, UnsafeNameError) as error:
            raise WrongInputError(f"{folder} cannot be sent: {error}") from error
        files = (entry for entry in table.entries if entry.kind is EntryKind.FILE)
        pieces: list[Piece] = [memoryview(head)]
        pieces += [_piece(folder / entry.path, entry) for entry in files]
        super().__init__(pieces)
        identity = str(folder.resolve()).encode(errors="surrogateescape") + b"\0" + head
        self.content = hashlib.sha256(identity).hexdigest()[:32]


def _piece(path: Path, entry: FolderEntry) -> FilePiece:
    try:
        state = settled_state(path.stat)
    except OSError as error:
        raise WrongInputError(f"cannot read {path}: {sentence(error)}") from error
    if (state.size, state.modified) != (entry.size, entry.changed_at):
        raise WrongInputError(f"{path} is being written: send its folder again when no process writes it")
    return FilePiece(path, state)


def read_folder(folder: Path) -> Table:
    """Return the table of a folder. Raise WrongInputError."""
    try:
        entries = []
        for entry in _below(folder, "", {}):
            entries.append(entry)
            if len(entries) > MAX_ENTRIES:
                raise WrongInputError(f"{folder} has more than {MAX_ENTRIES} entries: send it in parts, or as a .tar")
        return Table(folder.stat().st_mode & MODE_BITS, tuple(entries))
    except (OSError, RecursionError) as error:
        place = getattr(error, "filename", None) or folder
        reason = sentence(error) if isinstance(error, OSError) else "it is too deep"
        raise WrongInputError(f"cannot read {place}: {reason}") from error


def _below(folder: Path, above: str, linked: dict[tuple[int, int], str]) -> Iterator[FolderEntry]:
    """Yield all entries, a folder before its contents, by name, so that equal folders are sent equally.

    `linked` is filled with the first name of each file that has several, by its device and inode.
    """
    with os.scandir(folder) as found:
        inside = sorted(found, key=lambda entry: entry.name)
    for each in inside:
        status = each.stat(follow_symlinks=False)
        path = above + each.name
        kind = _kind(status.st_mode, Path(each.path))
        regular = kind is EntryKind.FILE
        if regular and not os.access(each.path, os.R_OK):
            raise WrongInputError(f"cannot read {each.path}: permission denied")
        target = str(Path(each.path).readlink()) if kind is EntryKind.LINK else ""
        if regular and status.st_nlink > 1:
            first = linked.setdefault((status.st_dev, status.st_ino), path)
            kind, target = (EntryKind.FILE, "") if first == path else (EntryKind.HARD_LINK, first)
        size = status.st_size if kind is EntryKind.FILE else 0
        yield FolderEntry(kind, path, status.st_mode & MODE_BITS, status.st_mtime_ns, size, target)
        if kind is EntryKind.FOLDER:
            yield from _below(Path(each.path), f"{path}/", linked)


def _kind(mode: int, path: Path) -> EntryKind:
    for is_it, kind in (
        (stat.S_ISREG, EntryKind.FILE),
        (stat.S_ISDIR, EntryKind.FOLDER),
        (stat.S_ISLNK, EntryKind.LINK),
    ):
        if is_it(mode):
            return kind
    raise WrongInputError(f"{path} is no file, folder or link (but a device, a socket or a pipe): take it out")

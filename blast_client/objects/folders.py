"""Folders as .tar archives (POSIX.1-2001, pax): their files are sent from where they lie, and unpacked beside."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from blast_client.base_error import WrongArgument
from blast_client.objects.not_readable import NotReadable
from blast_transport.base.errors import UnsafeNameError
from blast_transport.store.file_names import PARTIAL_PREFIX, checked_parts
from blast_transport.store.file_state import settled_state
from blast_transport.store.pieces import FilePiece, Piece

_BLOCK = tarfile.BLOCKSIZE
_END = memoryview(bytes(2 * _BLOCK))
_STAMP = f"{PARTIAL_PREFIX}archive"
"""In an unpacked folder: which archive it was. Only what has one is ever replaced."""
_OWNERS, _MAX_MODE = 0o600, 0o755


def folder_pieces(folder: Path) -> list[Piece]:
    """The archive of all files below a folder, in pieces. Links to files are sent as the files that they show.

    Raises WrongArgument for a folder that holds what is neither a file nor a folder, or names that no receiver takes.
    """
    pieces: list[Piece] = []
    for path, directory in _below(folder):
        info = tarfile.TarInfo(path.relative_to(folder).as_posix())
        _check_name(info.name)
        status = path.stat()
        info.mtime, info.mode = int(status.st_mtime), status.st_mode & 0o777
        if directory:
            info.type = tarfile.DIRTYPE
            pieces.append(_head(info))
            continue
        state = settled_state(path.stat)
        info.size = state.size
        pieces += [_head(info), FilePiece(path, state)]
        pieces.append(memoryview(bytes(-state.size % _BLOCK)))
    return [*pieces, _END]


def unpacked_folder(archive: Path, into: Path) -> Path:
    """Unpack beside, and give the result the name `into` when it is whole; one that was unpacked there before goes.

    Done once, whoever asks for it, and by one process at a time. Raises NotReadable, also where something else has that
    name, and OSError.
    """
    with _alone_with(archive) as file:
        status = os.fstat(file.fileno())
        stamp = f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
        before = _stamp_of(into)
        if before is None and os.path.lexists(into):
            raise NotReadable(archive, "folder", f"{into} is there already, and did not come so: it is left as it is")
        if before != stamp:
            _unpack_all(archive, file, stamp, into)
    return into


def _below(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Every path below, folders before what is in them, and whether it is one."""
    for above, folders, files in os.walk(folder, onerror=_refuse_unread):
        folders.sort()
        for name in [*folders, *sorted(files)]:
            path = Path(above, name)
            if path == folder / _STAMP:
                continue
            if path.is_dir() and not path.is_symlink():
                yield path, True
            elif path.is_file():
                yield path, False
            else:
                raise WrongArgument(f"{path} is neither a file nor a folder (nor a link to a file): leave it out")


def _refuse_unread(error: OSError) -> None:
    raise WrongArgument(f"the folder {error.filename} cannot be read: {error.strerror}") from error


def _check_name(name: str) -> None:
    try:
        checked_parts(name)
    except UnsafeNameError as error:
        raise WrongArgument(f"{name!r} cannot be sent under its name: {error}") from error


def _head(info: tarfile.TarInfo) -> memoryview:
    return memoryview(info.tobuf(tarfile.PAX_FORMAT))


@contextmanager
def _alone_with(archive: Path) -> Iterator[BinaryIO]:
    """The archive that has this name now, locked."""
    while True:
        with archive.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # Another one may have come while we waited.
            if os.path.samestat(os.fstat(file.fileno()), archive.stat()):
                yield file
                return


def _stamp_of(folder: Path) -> str | None:
    """Which archive was unpacked there; None if none was."""
    if folder.is_symlink():
        return None
    try:
        return (folder / _STAMP).read_text()
    except OSError:
        return None


def _unpack_all(archive: Path, file: BinaryIO, stamp: str, into: Path) -> None:
    place = archive.parent / f"{PARTIAL_PREFIX}{secrets.token_hex(8)}"
    place.mkdir()
    try:
        with tarfile.open(fileobj=file, mode="r:") as members:
            for member in members:
                _unpack(members, member, place)
            _check_end(file, members.offset)
        (place / _STAMP).write_text(stamp)
        _put_in_place(place, into)
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, tarfile.TarError | UnsafeNameError | EOFError | ValueError | FileExistsError):
            raise NotReadable(archive, "folder", str(error)) from error
        raise


def _check_end(file: BinaryIO, offset: int) -> None:
    """Raises ValueError unless the archive ends there as it should: `tarfile` takes any wrong header for the end."""
    file.seek(offset)
    if file.read(_BLOCK) != bytes(_BLOCK):
        raise ValueError(f"it is cut off or changed at byte {offset}")


def _unpack(members: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """One member, if it is a plain file or folder: nothing else is ever sent. Raises ValueError, UnsafeNameError."""
    # No link is ever made, so that no name leads out of the place.
    path = place.joinpath(*checked_parts(member.name))
    if member.isdir():
        path.mkdir()
    elif member.isreg() and not member.issparse() and member.size >= 0:
        content = members.extractfile(member)
        assert content is not None
        with path.open("xb") as file:
            shutil.copyfileobj(content, file)
        path.chmod((member.mode | _OWNERS) & _MAX_MODE)
    else:
        raise ValueError(f"{member.name!r} is neither a file nor a folder")


def _put_in_place(folder: Path, into: Path) -> None:
    old = into.with_name(f"{PARTIAL_PREFIX}{secrets.token_hex(8)}")
    if os.path.lexists(into):
        into.rename(old)
    folder.rename(into)
    shutil.rmtree(old, ignore_errors=True)

"""Directories as .tar archives (POSIX.1-2001, pax), sent without a temporary archive and unpacked at the receiver."""

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

from blast_client.api.base_error import InvalidArgumentError
from blast_client.objects.not_readable import UnreadableObjectError
from blast_transport.base.errors import UnsafeNameError
from blast_transport.store.files.file_names import PARTIAL_PREFIX, checked_parts
from blast_transport.store.files.file_state import settled_state
from blast_transport.store.sources.pieces import FilePiece, Piece

_BLOCK = tarfile.BLOCKSIZE
_END = memoryview(bytes(2 * _BLOCK))
_STAMP = f"{PARTIAL_PREFIX}archive"
"""File in an unpacked directory that identifies its archive. Only a directory with this file is ever replaced."""
_OWNERS, _MAX_MODE = 0o600, 0o755


def folder_pieces(folder: Path) -> list[Piece]:
    """Return the archive of all files below a directory in pieces; a link to a file is sent as that file.

    Raises InvalidArgumentError for an entry that is neither a file nor a directory, or a name that receivers reject.
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
    """Unpack an archive, rename the complete result to `into`, and remove an older result.

    One process at a time unpacks an archive, and only once. Raises OSError, and UnreadableObjectError, also if `into`
    exists and is not such a result.
    """
    with _alone_with(archive) as file:
        status = os.fstat(file.fileno())
        stamp = f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
        before = _stamp_of(into)
        if before is None and os.path.lexists(into):
            raise UnreadableObjectError(archive, "directory", f"{into} exists and was not received: move it away")
        if before != stamp:
            _unpack_all(archive, file, stamp, into)
    return into


def _below(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield every path below a directory, parents first, and whether it is a directory."""
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
                raise InvalidArgumentError(
                    f"{path} is neither a file nor a directory (nor a link to a file): remove it"
                )


def _refuse_unread(error: OSError) -> None:
    raise InvalidArgumentError(f"cannot read the directory {error.filename}: {error.strerror}") from error


def _check_name(name: str) -> None:
    try:
        checked_parts(name)
    except UnsafeNameError as error:
        raise InvalidArgumentError(f"cannot send {name!r}, rename it: {error}") from error


def _head(info: tarfile.TarInfo) -> memoryview:
    return memoryview(info.tobuf(tarfile.PAX_FORMAT))


@contextmanager
def _alone_with(archive: Path) -> Iterator[BinaryIO]:
    """Open and lock the archive that has this name now."""
    while True:
        with archive.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # The name may have been replaced while this process waited for the lock.
            if os.path.samestat(os.fstat(file.fileno()), archive.stat()):
                yield file
                return


def _stamp_of(folder: Path) -> str | None:
    """Return the stamp of the archive that was unpacked to a directory, or None."""
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
            raise UnreadableObjectError(archive, "directory", str(error)) from error
        raise


def _check_end(file: BinaryIO, offset: int) -> None:
    """Raise ValueError unless the archive ends at `offset`: `tarfile` treats any invalid header as the end."""
    file.seek(offset)
    if file.read(_BLOCK) != bytes(_BLOCK):
        raise ValueError(f"the archive is truncated or changed at byte {offset}")


def _unpack(members: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """Unpack a file or directory; senders send nothing else. Raises ValueError, UnsafeNameError."""
    # Links are never created, so that no name leads out of `place`.
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
        raise ValueError(f"{member.name!r} is neither a file nor a directory")


def _put_in_place(folder: Path, into: Path) -> None:
    old = into.with_name(f"{PARTIAL_PREFIX}{secrets.token_hex(8)}")
    if os.path.lexists(into):
        into.rename(old)
    folder.rename(into)
    shutil.rmtree(old, ignore_errors=True)

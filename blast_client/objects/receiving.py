"""Objects that a sender has delivered to this host, memory-mapped where possible."""

from __future__ import annotations

import asyncio
import mmap
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from blast_base.extras import NotInstalledError
from blast_client.api.base_error import BlastError, InvalidArgumentError
from blast_client.objects.arrays import mapped_array
from blast_client.objects.folders import unpacked_folder
from blast_client.objects.not_readable import UnreadableObjectError
from blast_client.objects.suffixes import ARRAY, BYTES, FOLDER, SUFFIXES, TENSORS
from blast_client.objects.tensors import NUMPY, TORCH, mapped_tensors
from blast_transport.base.errors import UnsafeNameError, sentence
from blast_transport.store.files.file_names import PARTIAL_PREFIX, checked_parts

FOLDER_VARIABLE = "BLAST_FOLDER"
DEFAULT_FOLDER = "/var/lib/blast-agent/incoming"
"""The folder of the agent's example configuration."""
_ADVICE = " (check `file_mode` of the agent; keep=False and directories need write permission in its folder)"
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05


class MissingLibraryError(BlastError):
    """The received object needs NumPy or PyTorch, which is not installed."""


class NotReceivedError(BlastError, TimeoutError):
    """No object of this name arrived in time."""


def receive(
    name: str,
    folder: Path | str | None = None,
    *,
    timeout: float = 60.0,
    library: str | None = None,
    keep: bool = True,
) -> Any:
    """Wait for the object that a sender sent under a name, and return it.

    Bytes, arrays and tensors are memory-mapped: all processes of this host share the memory, copy-on-write. If several
    objects had the name, the latest is returned.

    Parameters
    ----------
    name : str
        Name that the sender used.
    folder : Path | str | None
        Folder of this host's agent. Default: $BLAST_FOLDER, else /var/lib/blast-agent/incoming.
    timeout : float
        Time to wait, in seconds.
    library : str | None
        "torch" or "numpy": library of returned tensors. Default: that of the sender.
    keep : bool
        False: remove the file of a mapped or unpacked object at once; its space is free when the last object is. For
        hosts with one receiver, with write permission in the folder. Plain files are kept.

    Returns
    -------
    object
        A memoryview, a Path of a file or directory, a NumPy array, a tensor, or a dict of arrays or tensors.

    Raises
    ------
    NotReceivedError
        No object of this name arrived within `timeout`, or it was removed before it could be opened.
    UnreadableObjectError
        The file does not contain the object that its suffix indicates, or cannot be read.
    MissingLibraryError
        NumPy or PyTorch is not installed.
    InvalidArgumentError
        The name, the folder, the timeout or the library is invalid.

    Examples
    --------
    >>> receive("weights-17", folder, timeout=5.0)
    array([1., 2., 3.], dtype=float32)
    """
    place = _ArrivalPlace(name, folder, timeout, library)
    for pause in place.pauses():
        time.sleep(pause)
    return place.take(keep)


async def async_receive(
    name: str,
    folder: Path | str | None = None,
    *,
    timeout: float = 60.0,
    library: str | None = None,
    keep: bool = True,
) -> Any:
    """Wait for an object as `receive` does, for asyncio; cancellation while it waits changes nothing.

    Parameters
    ----------
    name, folder, timeout, library, keep
        As for `receive`.

    Returns
    -------
    object
        As for `receive`.

    Raises
    ------
    NotReceivedError, UnreadableObjectError, MissingLibraryError, InvalidArgumentError
        As for `receive`.
    """
    place = _ArrivalPlace(name, folder, timeout, library)
    for pause in place.pauses():
        await asyncio.sleep(pause)
    return await asyncio.to_thread(place.take, keep)


class _ArrivalPlace:
    """The place at which an object arrives. Raises InvalidArgumentError, MissingLibraryError."""

    def __init__(self, name: str, folder: Path | str | None, timeout: float, library: str | None) -> None:
        if not isinstance(name, str):
            raise InvalidArgumentError(f"name must be a str, not {name!r} ({type(name).__name__})")
        if library not in (None, TORCH, NUMPY):
            raise InvalidArgumentError(f"library must be {TORCH!r} or {NUMPY!r}, not {library!r}")
        if library is not None and find_spec(library) is None:
            raise MissingLibraryError(f"library={library!r} is not installed: install it, or leave library= out")
        if not (isinstance(timeout, int | float) and timeout >= 0):
            raise InvalidArgumentError(f"timeout must be a number of seconds, not {timeout!r}")
        try:
            checked_parts(name)
        except UnsafeNameError as error:
            raise InvalidArgumentError(f"name is not valid: {error}") from error
        self._folder = Path(folder or os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
        if not os.access(self._folder, os.R_OK | os.X_OK):
            raise InvalidArgumentError(
                f"{self._folder} is not a readable directory: set folder= or ${FOLDER_VARIABLE} to that of this host's "
                "agent"
            )
        self._name, self._timeout, self._library = name, timeout, library

    def pauses(self) -> Iterator[float]:
        """Yield the seconds to wait before the next check, until the object is here. Raises NotReceivedError."""
        give_up, pause = time.monotonic() + self._timeout, _SHORTEST_PAUSE
        while self._find() is None:
            left = give_up - time.monotonic()
            if left <= 0:
                raise NotReceivedError(
                    f"{self._name!r} did not arrive in {self._folder} within {self._timeout:g} s: check the outcome of "
                    "the sender, and the folder of the agent"
                )
            yield min(pause, left)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def take(self, keep: bool) -> object:
        """Return the object. Raises UnreadableObjectError, MissingLibraryError, NotReceivedError if it was removed."""
        found = self._find()
        if found is None:
            raise NotReceivedError(f"{self._name!r} was removed from {self._folder}")
        suffix, path = found
        try:
            return self._makers()[suffix](path) if keep or not suffix else self._made_alone(suffix, path)
        except FileNotFoundError as error:
            raise NotReceivedError(f"{self._name!r} was removed from {self._folder}") from error
        except NotInstalledError as error:
            raise MissingLibraryError(str(error)) from error
        except OSError as error:
            raise UnreadableObjectError(path, "object", f"{sentence(error)}{_ADVICE}") from error

    def _made_alone(self, suffix: str, path: Path) -> object:
        """Return the object, and remove its file; renaming it first keeps a later object of the same name."""
        private = path.with_name(f"{PARTIAL_PREFIX}{secrets.token_hex(8)}")
        path.rename(private)
        try:
            return self._makers()[suffix](private)
        except BaseException:
            # Restore the file unless a later object has its name.
            with suppress(OSError):
                path.hardlink_to(private)
            raise
        finally:
            private.unlink()

    def _makers(self) -> dict[str, Callable[[Path], object]]:
        return {
            "": lambda path: path,
            BYTES: _mapped_bytes,
            ARRAY: mapped_array,
            TENSORS: lambda path: mapped_tensors(path, self._library),
            FOLDER: lambda path: unpacked_folder(path, self._folder / self._name),
        }

    def _find(self) -> tuple[str, Path] | None:
        """Return the suffix and the path of the latest file, or None."""
        found = [(when, suffix, path) for suffix, path in self._candidates() if (when := _written_at(path)) is not None]
        return max(found)[1:] if found else None

    def _candidates(self) -> Iterator[tuple[str, Path]]:
        for suffix in SUFFIXES:
            yield suffix, self._folder / f"{self._name}{suffix}"


def _written_at(path: Path) -> int | None:
    """Return the modification time of a file in nanoseconds, or None if there is no file."""
    try:
        return path.stat().st_mtime_ns if path.is_file() else None
    except OSError:
        return None


def _mapped_bytes(path: Path) -> memoryview:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

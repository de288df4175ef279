"""What a sender has brought to this host, as the object that it gave: mapped where that can be."""

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

from blast_client.base_error import BlastError, WrongArgument
from blast_client.objects.arrays import mapped_array
from blast_client.objects.folders import unpacked_folder
from blast_client.objects.not_readable import NotReadable
from blast_client.objects.suffixes import ARRAY, BYTES, FOLDER, SUFFIXES, TENSORS
from blast_client.objects.tensors import NUMPY, TORCH, mapped_tensors
from blast_transport.base.errors import UnsafeNameError, sentence
from blast_transport.base.extras import NotInstalled
from blast_transport.store.file_names import PARTIAL_PREFIX, checked_parts

FOLDER_VARIABLE = "BLAST_FOLDER"
DEFAULT_FOLDER = "/var/lib/blast-agent/incoming"
"""As in the example configuration of an agent."""
_ADVICE = " (`file_mode` of the agent says who may read; keep=False, and folders, want to write beside it)"
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05


class LibraryMissing(BlastError):
    """What came needs NumPy or PyTorch, which is not installed here."""


class NotHere(BlastError, TimeoutError):
    """Nothing with this name has come in time."""


def receive(
    name: str,
    folder: Path | str | None = None,
    *,
    timeout: float = 60.0,
    library: str | None = None,
    keep: bool = True,
) -> Any:
    """The object that a sender has given this `name`, as soon as it is here, whole and verified.

    `folder` is the one that this host's agent writes below (default: $BLAST_FOLDER, else that of the agent's example).
    Bytes, arrays and tensors are mapped: the same memory serves every process of this host that receives them, and
    what one of them changes in an array or tensor is its own. `library`: "torch" or "numpy" for tensors, where it shall
    be another than they were sent from. Without `keep` the name of what is mapped or unpacked goes at once, and its
    space when the last object does: for the only receiver on this host, who may write in the folder. Plain files stay.

    Where one name was used for several things, the one that came last is meant. Raises NotHere after `timeout` seconds,
    NotReadable for what is not what it says, WrongArgument, LibraryMissing.

    >>> receive("weights-17", folder, timeout=5.0)
    array([1., 2., 3.], dtype=float32)
    """
    place = _Place(name, folder, timeout, library)
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
    """As `receive`, for asyncio. Cancelled while it waits, it leaves everything as it is."""
    place = _Place(name, folder, timeout, library)
    for pause in place.pauses():
        await asyncio.sleep(pause)
    return await asyncio.to_thread(place.take, keep)


class _Place:
    """Where an object comes to. Raises WrongArgument."""

    def __init__(self, name: str, folder: Path | str | None, timeout: float, library: str | None) -> None:
        if not isinstance(name, str):
            raise WrongArgument(f"name must be a str, as the sender gave it, and not {name!r} ({type(name).__name__})")
        if library not in (None, TORCH, NUMPY):
            raise WrongArgument(f"library must be {TORCH!r} or {NUMPY!r}, and not {library!r}")
        if library is not None and find_spec(library) is None:
            raise LibraryMissing(f"library={library!r} was asked for, and it is not installed here")
        if not (isinstance(timeout, int | float) and timeout >= 0):
            raise WrongArgument(f"timeout must be a number of seconds, and not {timeout!r}")
        try:
            checked_parts(name)
        except UnsafeNameError as error:
            raise WrongArgument(f"nobody can send under such a name: {error}") from error
        self._folder = Path(folder or os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
        if not os.access(self._folder, os.R_OK | os.X_OK):
            raise WrongArgument(
                f"{self._folder} is no folder that can be read here: name the one of this host's agent, with folder= or"
                f" ${FOLDER_VARIABLE}"
            )
        self._name, self._timeout, self._library = name, timeout, library

    def pauses(self) -> Iterator[float]:
        """Seconds to wait before the next look, until it is here. Raises NotHere."""
        give_up, pause = time.monotonic() + self._timeout, _SHORTEST_PAUSE
        while self._find() is None:
            left = give_up - time.monotonic()
            if left <= 0:
                raise NotHere(
                    f"nothing called {self._name!r} has come to {self._folder} within {self._timeout:g} s: look at the"
                    " sender's outcome, and whether this is the folder of the agent"
                )
            yield min(pause, left)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def take(self, keep: bool) -> object:
        """What is here. Raises NotReadable, NotHere if it has gone again, LibraryMissing."""
        found = self._find()
        if found is None:
            raise NotHere(f"{self._name!r} was in {self._folder}, and has gone again")
        suffix, path = found
        try:
            return self._makers()[suffix](path) if keep or not suffix else self._made_alone(suffix, path)
        except FileNotFoundError as error:
            raise NotHere(f"{self._name!r} was in {self._folder}, and has gone again") from error
        except NotInstalled as error:
            raise LibraryMissing(str(error)) from error
        except OSError as error:
            raise NotReadable(path, "object", f"{sentence(error)}{_ADVICE}") from error

    def _made_alone(self, suffix: str, path: Path) -> object:
        """Its name goes first: what comes under it meanwhile is another one."""
        private = path.with_name(f"{PARTIAL_PREFIX}{secrets.token_hex(8)}")
        path.rename(private)
        try:
            return self._makers()[suffix](private)
        except BaseException:
            # What could not be taken is still to be had, unless a later one has its name.
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
        """The file that came last, and its suffix."""
        found = [(when, suffix, path) for suffix, path in self._candidates() if (when := _written_at(path)) is not None]
        return max(found)[1:] if found else None

    def _candidates(self) -> Iterator[tuple[str, Path]]:
        for suffix in SUFFIXES:
            yield suffix, self._folder / f"{self._name}{suffix}"


def _written_at(path: Path) -> int | None:
    """Nanoseconds; None if there is no file of this name."""
    try:
        return path.stat().st_mtime_ns if path.is_file() else None
    except OSError:
        return None


def _mapped_bytes(path: Path) -> memoryview:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

"""A broadcast value in a Python worker of an executor, mapped from the file of the host's agent.

| step | source |
|---|---|
| 1 | the memory of this process |
| 2 | the agent's folder, FOLDER/APPLICATION/NAME; a shared lock on `.claim` prevents its removal |
| 3 | the driver, which sends the value to the agent, or else directly into the executor's local folder |

One process of an executor asks the driver, and all map the same file. The access to the next value frees values that
the driver has destroyed.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from blast_client.api.base_error import BlastError, InvalidArgumentError
from blast_client.objects.not_readable import UnreadableObjectError
from blast_client.objects.receiving import DEFAULT_FOLDER, FOLDER_VARIABLE, receive
from blast_client.spark.asking import CopyKind, DriverAddress, DriverAnswer, DriverUnreachableError, ask, fetch
from blast_client.spark.parcel import ParcelForm, shown

if TYPE_CHECKING:
    from pyspark import Broadcast

CLAIM = ".claim"
_PRIVATE = 0o700
"""Broadcast values may be confidential: only the user of the executor may read them."""


class DestroyedError(BlastError):
    """The driver has destroyed the value."""


class ValueUnreachableError(BlastError):
    """The value is not on this host, and the driver does not answer. Spark retries the task."""


@dataclass(frozen=True, slots=True)
class Handle:
    """The content of a task for a value: its identity, its form and its places.

    `number` counts the values of the application; of the values up to `latest` only `living` are still in use.
    """

    application: str
    number: int
    name: str
    suffix: str
    size: int
    form: ParcelForm
    folder: str | None
    place: DriverAddress
    living: tuple[int, ...]
    latest: int

    @property
    def file(self) -> str:
        """Name of the file in a folder."""
        return f"{self.name}{self.suffix}"


class ReceivedBroadcast:
    """A `BlastBroadcast` in an executor, which has only its `value`."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def value(self) -> Any:
        """The value; arrays are copy-on-write. Raises DestroyedError, ValueUnreachableError."""
        return _taken(self._handle)

    def __reduce__(self) -> tuple[type[ReceivedBroadcast], tuple[Handle]]:
        return ReceivedBroadcast, (self._handle,)

    def __repr__(self) -> str:
        return f"<value {self._handle.name} of Blast>"


class ReceivedFromSpark:
    """A `BlastBroadcast` in an executor that Spark's broadcast carried."""

    def __init__(self, broadcast: Broadcast[object]) -> None:
        self._broadcast = broadcast

    @property
    def value(self) -> Any:
        """The value, in the same form as from Blast."""
        return shown(self._broadcast.value)

    def __reduce__(self) -> tuple[type[ReceivedFromSpark], tuple[Broadcast[object]]]:
        return ReceivedFromSpark, (self._broadcast,)


_values: dict[tuple[str, int], object] = {}
_claims: dict[Path, tuple[int, int]] = {}
"""For each folder the descriptor with the lock, and the inode. Closing another descriptor of the file unlocks it."""
_own: list[tempfile.TemporaryDirectory[str]] = []


def _taken(handle: Handle) -> object:
    key = handle.application, handle.number
    if key not in _values:
        _drop_destroyed(handle)
        _values[key] = handle.form.value(_found(handle).content)
    return _values[key]


class _Received(NamedTuple):
    """A result of `receive`, in a tuple since the truth value of an array is undefined."""

    content: object


def _found(handle: Handle) -> _Received:
    agents = Path(handle.folder or os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
    found = _looked(agents, handle)
    if found is not None:
        return found
    with _alone(handle):
        return _requested(agents, handle)


def _requested(agents: Path, handle: Handle) -> _Received:
    """Request a value from the driver. Raises DestroyedError, ValueUnreachableError."""
    local = _local_folder()
    # Another process of this executor may have requested it meanwhile.
    received = _looked(local, handle) or _looked(agents, handle)
    try:
        for kind in (CopyKind.COPY, CopyKind.ANOTHER):
            if received is None and _can_arrive(agents, handle):
                _check_exists(handle, ask(handle.place, handle.name, kind))
                received = _looked(agents, handle)
        return received or _fetched(local, handle)
    except (DriverUnreachableError, OSError) as error:
        raise ValueUnreachableError(
            f"{handle.name} is not in {agents}, and fetching it from the driver failed: {error}"
        ) from error


def _can_arrive(agents: Path, handle: Handle) -> bool:
    """Return True if a copy is missing and this process could read one."""
    return os.access(agents, os.R_OK | os.X_OK) and not _lies(agents / handle.file, handle)


def _fetched(local: Path, handle: Handle) -> _Received:
    partial, whole = local / f".{handle.number}", local / handle.file
    whole.parent.mkdir(_PRIVATE, parents=True, exist_ok=True)
    try:
        _check_exists(handle, fetch(handle.place, handle.name, partial))
        partial.rename(whole)
    finally:
        partial.unlink(missing_ok=True)
    return _Received(receive(handle.name, local, timeout=0))


def _check_exists(handle: Handle, answer: DriverAnswer | None) -> None:
    if answer is DriverAnswer.DESTROYED:
        raise DestroyedError(f"the driver has destroyed {handle.name}: broadcast the value again")


def _looked(folder: Path, handle: Handle) -> _Received | None:
    """Return the value from a folder, or None."""
    path = folder / handle.file
    _claim(path.parent)
    try:
        if _lies(path, handle):
            return _Received(receive(handle.name, folder, timeout=0))
    except (OSError, UnreadableObjectError, InvalidArgumentError):
        # No permission, or the file was truncated meanwhile.
        pass
    return None


def _lies(path: Path, handle: Handle) -> bool:
    """Return True if the file is complete; the driver truncates destroyed files."""
    try:
        return path.stat().st_size == handle.size
    except OSError:
        return False


def _claim(folder: Path) -> None:
    """Lock `.claim` in a folder until this process ends, if the agent has one; the agent then keeps the files."""
    path = folder / CLAIM
    try:
        inode = path.stat().st_ino
        held = _claims.get(folder)
        if held is None or held[1] != inode:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            # An agent that removes the folder holds the exclusive lock; the folder is then empty.
            fcntl.lockf(descriptor, fcntl.LOCK_SH)
            _claims[folder] = descriptor, inode
            if held is not None:
                os.close(held[0])
    except OSError:
        return


@contextmanager
def _alone(handle: Handle) -> Iterator[None]:
    """Hold a lock that excludes other processes of this executor."""
    path = _local_folder() / f"{handle.number}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _local_folder() -> Path:
    """Return the local folder of this executor, which Spark removes with the executor."""
    given = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    if not given:
        if not _own:
            _own.append(tempfile.TemporaryDirectory(prefix="blast-spark-"))
        return Path(_own[0].name)
    folder = Path(given) / "blast"
    folder.mkdir(_PRIVATE, exist_ok=True)
    return folder


def _drop_destroyed(handle: Handle) -> None:
    """Free values that the driver has destroyed."""

    def dead(number: int) -> bool:
        return number <= handle.latest and number not in handle.living

    for key in [key for key in _values if key[0] != handle.application or dead(key[1])]:
        del _values[key]
    local = _local_folder()
    for path in (*local.glob("*.lock"), *local.glob(f"{handle.application}/*")):
        with suppress(OSError, ValueError):
            if dead(int(path.name.partition("-")[0].removesuffix(".lock"))):
                path.unlink()

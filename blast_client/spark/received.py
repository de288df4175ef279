"""A broadcast value in a Python worker of an executor: mapped from where the agent of the host has put it.

| step | where |
|---|---|
| 1 | this process has it already |
| 2 | it lies in the agent's folder, FOLDER/APPLICATION/NAME, and is mapped; a shared lock on `.claim` keeps it there |
| 3 | the driver is asked to bring it there; where that cannot be, it hands it over, into the executor's local folder |

Of the processes of an executor one asks, and all map the same file. What the driver has given up goes from here when
the next value is taken.
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

from blast_client.base_error import BlastError, WrongArgument
from blast_client.objects.not_readable import NotReadable
from blast_client.objects.receiving import DEFAULT_FOLDER, FOLDER_VARIABLE, receive
from blast_client.spark.asking import Answer, Place, Unanswered, Want, ask, fetch
from blast_client.spark.parcel import Form, shown

if TYPE_CHECKING:
    from pyspark import Broadcast

CLAIM = ".claim"
_PRIVATE = 0o700


class Destroyed(BlastError):
    """The driver has called `destroy` on it."""


class NotReachable(BlastError):
    """It is neither on this host nor to be had from the driver. Spark tries the task again."""


@dataclass(frozen=True, slots=True)
class Handle:
    """All that travels with a task: which value, how it looks, and where it is to be found.

    `number` counts the values of the application; of those up to `latest` only the `living` are used any more.
    """

    application: str
    number: int
    name: str
    suffix: str
    size: int
    form: Form
    folder: str | None
    place: Place
    living: tuple[int, ...]
    latest: int

    @property
    def file(self) -> str:
        """As it is called in a folder."""
        return f"{self.name}{self.suffix}"


class ReceivedBroadcast:
    """What `BlastBroadcast` becomes in an executor: its `value`, and nothing else."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def value(self) -> Any:
        """The value; of an array, what is changed is this process's own. Raises Destroyed, NotReachable."""
        return _taken(self._handle)

    def __reduce__(self) -> tuple[type[ReceivedBroadcast], tuple[Handle]]:
        return ReceivedBroadcast, (self._handle,)

    def __repr__(self) -> str:
        return f"<value {self._handle.name} of Blast>"


class ReceivedFromSpark:
    """The same where the value came by Spark's own broadcast."""

    def __init__(self, broadcast: Broadcast[object]) -> None:
        self._broadcast = broadcast

    @property
    def value(self) -> Any:
        """The value, as it would have come by Blast."""
        return shown(self._broadcast.value)

    def __reduce__(self) -> tuple[type[ReceivedFromSpark], tuple[Broadcast[object]]]:
        return ReceivedFromSpark, (self._broadcast,)


_values: dict[tuple[str, int], object] = {}
_claims: dict[Path, tuple[int, int]] = {}
"""Of each folder, the descriptor that holds the lock and the inode. Closing any other of that file would lose it."""
_own: list[tempfile.TemporaryDirectory[str]] = []


def _taken(handle: Handle) -> object:
    key = handle.application, handle.number
    if key not in _values:
        _drop_the_dead(handle)
        _values[key] = handle.form.value(_found(handle).what)
    return _values[key]


class _Came(NamedTuple):
    """What `receive` gave: an array is neither true nor false."""

    what: object


def _found(handle: Handle) -> _Came:
    agents = Path(handle.folder or os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
    found = _looked(agents, handle)
    if found is not None:
        return found
    with _alone(handle):
        return _asked(agents, handle)


def _asked(agents: Path, handle: Handle) -> _Came:
    """Raises Destroyed, NotReachable."""
    local = _local_folder()
    # Another process of this executor may have asked meanwhile.
    came = _looked(local, handle) or _looked(agents, handle)
    try:
        for want in (Want.COPY, Want.ANOTHER):
            if came is None and _could_come(agents, handle):
                _unless_gone(handle, ask(handle.place, handle.name, want))
                came = _looked(agents, handle)
        return came or _fetched(local, handle)
    except (Unanswered, OSError) as error:
        raise NotReachable(f"{handle.name} is not in {agents}, and cannot be had from the driver: {error}") from error


def _could_come(agents: Path, handle: Handle) -> bool:
    """Whether asking for a copy makes sense: it is not there, and if it were, it could be seen."""
    return os.access(agents, os.R_OK | os.X_OK) and not _lies(agents / handle.file, handle)


def _fetched(local: Path, handle: Handle) -> _Came:
    partial, whole = local / f".{handle.number}", local / handle.file
    whole.parent.mkdir(_PRIVATE, parents=True, exist_ok=True)
    try:
        _unless_gone(handle, fetch(handle.place, handle.name, partial))
        partial.rename(whole)
    finally:
        partial.unlink(missing_ok=True)
    return _Came(receive(handle.name, local, timeout=0))


def _unless_gone(handle: Handle, answer: Answer | None) -> None:
    if answer is Answer.GONE:
        raise Destroyed(f"{handle.name} has been destroyed by the driver")


def _looked(folder: Path, handle: Handle) -> _Came | None:
    """What lies there, None if it does not."""
    path = folder / handle.file
    _claim(path.parent)
    try:
        if _lies(path, handle):
            return _Came(receive(handle.name, folder, timeout=0))
    except (OSError, NotReadable, WrongArgument):
        # Not for us to read, or emptied this very moment.
        pass
    return None


def _lies(path: Path, handle: Handle) -> bool:
    """A file of another size is one that the driver has emptied."""
    try:
        return path.stat().st_size == handle.size
    except OSError:
        return False


def _claim(folder: Path) -> None:
    """Lock `.claim` there, if the agent keeps one, for as long as this process lives: nobody removes what it uses."""
    path = folder / CLAIM
    try:
        inode = path.stat().st_ino
        held = _claims.get(folder)
        if held is None or held[1] != inode:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            # An agent that is about to remove the folder holds it alone for a moment: then nothing is found there.
            fcntl.lockf(descriptor, fcntl.LOCK_SH)
            _claims[folder] = descriptor, inode
            if held is not None:
                os.close(held[0])
    except OSError:
        return


@contextmanager
def _alone(handle: Handle) -> Iterator[None]:
    """One process of this executor at a time."""
    path = _local_folder() / f"{handle.number}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _local_folder() -> Path:
    """Of this executor alone; Spark removes it with the executor."""
    given = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    if not given:
        if not _own:
            _own.append(tempfile.TemporaryDirectory(prefix="blast-spark-"))
        return Path(_own[0].name)
    folder = Path(given) / "blast"
    folder.mkdir(_PRIVATE, exist_ok=True)
    return folder


def _drop_the_dead(handle: Handle) -> None:
    """Forget what the driver has given up."""

    def dead(number: int) -> bool:
        return number <= handle.latest and number not in handle.living

    for key in [key for key in _values if key[0] != handle.application or dead(key[1])]:
        del _values[key]
    local = _local_folder()
    for path in (*local.glob("*.lock"), *local.glob(f"{handle.application}/*")):
        with suppress(OSError, ValueError):
            if dead(int(path.name.partition("-")[0].removesuffix(".lock"))):
                path.unlink()

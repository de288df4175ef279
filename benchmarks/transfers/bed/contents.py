"""The file that every tool sends, in memory; the memory for its copies; and the bytecode of the processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.transfers.bed.failures import PrerequisiteError

MEMORY = Path("/dev/shm")
_PIECE = 1 << 20
_SPARE = 2 << 30
"""Memory for everything else on the machine."""
_MIN_FREE, _MAX_FREE, _STEP = 1 << 30, 3 << 29, 64 << 20
_PREFIX, _NONE = "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"


@contextmanager
def workshop() -> Iterator[Path]:
    """Make a folder in memory for the files of a measurement, and remove it."""
    with tempfile.TemporaryDirectory(prefix="blast-transport-", dir=MEMORY) as folder:
        yield Path(folder)


def require_room(size: int, copies: int) -> None:
    """Raise PrerequisiteError unless this number of copies fits into memory."""
    needed = size * copies + _SPARE
    free = min(shutil.disk_usage(MEMORY).free, memory("MemAvailable"))
    if free < needed:
        raise PrerequisiteError(
            f"{copies} copies of {size / 1e6:g} MB need {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are "
            f"free: give fewer --megabytes or fewer receivers"
        )


def write_random(path: Path, size: int) -> None:
    """Write a file that does not compress."""
    with path.open("wb") as file:
        for start in range(0, size, _PIECE):
            file.write(os.urandom(min(_PIECE, size - start)))


def same(one: Path, other: Path) -> bool:
    """Return whether two files exist and have the same bytes."""
    try:
        with one.open("rb") as ours, other.open("rb") as theirs:
            while piece := ours.read(_PIECE):
                if theirs.read(_PIECE) != piece:
                    return False
            return not theirs.read(1)
    except FileNotFoundError:
        return False


def memory(field: str) -> int:
    """Return a field of /proc/meminfo (proc(5)) in bytes."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))


@contextmanager
def compiled_once(package: Path, folder: Path) -> Iterator[None]:
    """Compile `package` once for all processes started in the block; `folder` keeps the bytecode.

    Otherwise a hundred receivers may compile the same modules in the same second, and look dead while they do.
    """
    before = {name: os.environ.pop(name) for name in (_PREFIX, _NONE) if name in os.environ}
    os.environ[_PREFIX] = str(folder)
    try:
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(package)], check=True)
        yield
    finally:
        del os.environ[_PREFIX]
        os.environ.update(before)


@contextmanager
def used_until_now(folder: Path, size: int) -> Iterator[None]:
    """Occupy memory until the block ends, for unshaped runs, in which `WarmMemory` would take processor time."""
    path = folder / "used"
    try:
        with path.open("wb") as file:
            for start in range(0, size, _PIECE):
                file.write(bytes(min(_PIECE, size - start)))
        yield
    finally:
        path.unlink(missing_ok=True)


class WarmMemory:
    """Memory that the machine has used before, for the copies: a file in `folder` that shrinks while they grow.

    A virtual machine returns free memory to its host, and gets it back at half a gigabyte a second, more slowly than
    fifteen links deliver. Call `fill` before every run.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "warm"
        self._size = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> WarmMemory:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT)
        return self

    def __exit__(self, *_: object) -> None:
        self._halt()
        os.close(self._file)
        self._path.unlink()

    def fill(self) -> None:
        """Occupy the free memory, and give it up when it becomes scarce."""
        self._halt()
        while self._free() > _MAX_FREE:
            for start in range(self._size, self._size + _STEP, _PIECE):
                os.pwrite(self._file, bytes(_PIECE), start)
            self._size += _STEP
        self._stop.clear()
        self._thread = threading.Thread(target=self._give, name="warm memory", daemon=True)
        self._thread.start()

    def _halt(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _free(self) -> int:
        return min(memory("MemFree"), shutil.disk_usage(self._path.parent).free)

    def _give(self) -> None:
        while not self._stop.wait(0.02):
            while self._size > 0 and self._free() < _MIN_FREE:
                self._size -= _STEP
                os.ftruncate(self._file, self._size)

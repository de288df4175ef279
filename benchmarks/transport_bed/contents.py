"""The file that every tool carries, in memory, and whether what arrived is the same."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transport_bed.failures import CannotRun

MEMORY = Path("/dev/shm")
_PIECE = 1 << 20
_SPARE = 2 << 30
"""For the machine, which has other things to do as well."""


@contextmanager
def workshop() -> Iterator[Path]:
    """A folder in memory for everything that a measurement writes; it goes with the measurement."""
    with tempfile.TemporaryDirectory(prefix="blast-transport-", dir=MEMORY) as folder:
        yield Path(folder)


def require_room(size: int, copies: int) -> None:
    """Raises CannotRun unless so many copies of a file fit into memory."""
    needed = size * copies + _SPARE
    free = min(shutil.disk_usage(MEMORY).free, memory("MemAvailable"))
    if free < needed:
        raise CannotRun(
            f"{copies} copies of {size / 1e6:g} MB need {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are "
            f"free: give fewer --megabytes or fewer receivers"
        )


def write_random(path: Path, size: int) -> None:
    """Make a file that nothing can compress."""
    with path.open("wb") as file:
        for start in range(0, size, _PIECE):
            file.write(os.urandom(min(_PIECE, size - start)))


def same(one: Path, other: Path) -> bool:
    """Whether two files exist and have the same bytes."""
    try:
        with one.open("rb") as ours, other.open("rb") as theirs:
            while piece := ours.read(_PIECE):
                if theirs.read(_PIECE) != piece:
                    return False
            return not theirs.read(1)
    except FileNotFoundError:
        return False


def memory(field: str) -> int:
    """Bytes of the machine's memory: a field of /proc/meminfo (proc(5))."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))

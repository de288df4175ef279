"""What the controller and the agents hold, looked at from outside: memory, descriptors, threads, files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FEW_DESCRIPTORS = 16
"""More than before the load are no leak: connections of our own, and what a process opens once."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a process holds: resident bytes, descriptors, threads."""

    rss: int
    descriptors: int
    threads: int


@dataclass(frozen=True, slots=True)
class Sample:
    """A look at everything, `at` seconds after the start; who does not run is missing."""

    at: float
    controller: Held | None
    agents: Mapping[str, Held]
    journal_bytes: int
    log_bytes: int


def held_by(pid: int | None) -> Held | None:
    """What a process holds now; None if there is none with this id."""
    if pid is None:
        return None
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - nothing but the number
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    if "VmRSS" not in fields:
        return None
    return Held(int(fields["VmRSS"].split()[0]) * 1024, descriptors, int(fields["Threads"]))


def size_of(*paths: Path) -> int:
    """Bytes of these files together; of an SQLite file its log, too."""
    found = [path.with_name(path.name + suffix) for path in paths for suffix in ("", "-wal", "-shm")]
    return sum(path.stat().st_size for path in found if path.exists())


def leaks(before: dict[str, Held | None], after: dict[str, Held | None]) -> list[str]:
    """Who has many more descriptors or threads than before the load, or does not run any more. Pure."""
    found = []
    for name, held in after.items():
        had = before.get(name)
        if held is None or had is None:
            found.append(f"{name} does not run any more")
            continue
        for what in ("descriptors", "threads"):
            more = getattr(held, what) - getattr(had, what)
            if more > FEW_DESCRIPTORS:
                found.append(f"{name} has {more} {what} more than before the load")
    return found

"""Processor seconds: of some processes and what they have started and waited for, and of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

CORES = os.cpu_count() or 1
_TICKS = os.sysconf("SC_CLK_TCK")


def of_processes(pids: Iterable[int]) -> float:
    """User and system time so far (proc(5), fields 14 to 17)."""
    return sum(_ticks(pid) for pid in pids) / _TICKS


def of_machine() -> float:
    """All that was not idle so far, whoever it was: packets that nobody's process pays for are in it."""
    user, nice, system, _idle, _waiting, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(interrupts[:2])) / _TICKS


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(map(int, fields[11:15]))

"""How much of the machine is left: one that has nothing left starves hosts, which others then take for dead."""

from __future__ import annotations

from pathlib import Path

_IDLE = (3, 4)
"""Columns of /proc/stat (proc(5)): idle, and waiting for a disk."""


class Idle:
    """`share` of the time of all processors, from 0 to 1, in which they had nothing to do since this was made."""

    def __init__(self) -> None:
        self._before = _times()

    @property
    def share(self) -> float:
        """Until now."""
        passed = [now - before for now, before in zip(_times(), self._before, strict=True)]
        return sum(passed[column] for column in _IDLE) / max(1, sum(passed))


def _times() -> list[int]:
    # What guests had is in the first columns already.
    return [int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]

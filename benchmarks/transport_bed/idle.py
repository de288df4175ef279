"""How much of the machine is left: one that has nothing left starves hosts, which others then take for dead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_NICE, _IDLE = (1,), (3, 4)
"""Columns of /proc/stat (proc(5)): at work for those that give way (nice(1)); idle, and waiting for a disk."""


class Idle:
    """Shares of the time of all processors, from 0 to 1, since this was made."""

    def __init__(self) -> None:
        self._before = _times()

    @property
    def share(self) -> float:
        """In which they had nothing to do."""
        return self._share(_IDLE)

    @property
    def to_be_had(self) -> float:
        """In which they had nothing to do but for who gives way at once."""
        return self._share(_NICE + _IDLE)

    def _share(self, columns: Sequence[int]) -> float:
        passed = [now - before for now, before in zip(_times(), self._before, strict=True)]
        return sum(passed[column] for column in columns) / max(1, sum(passed))


def _times() -> list[int]:
    # What guests had is in the first columns already.
    return [int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]

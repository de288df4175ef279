"""Processor time of all that one measurement starts, the kernel's work for it included: by a control group.

The group is one of version 2 (cgroups(7)), which tells the time without any controller. This process is in it as well,
so that all it starts is born there; its own time is taken off.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType

from transport_bed.idle import Idle

_PATIENCE_SECONDS = 2.0
_LOOK_SECONDS = 0.01


class Processor:
    """A context manager; all that it tells is None where there is no such group to be had."""

    def __init__(self) -> None:
        self._home = _own_group()
        self._group = None if self._home is None else self._home / f"blast-transport-{os.getpid()}"

    def __enter__(self) -> Processor:
        if self._group is not None:
            try:
                self._group.mkdir(exist_ok=True)
                _move_into(self._group)
            except OSError:
                self._leave()
                self._group = None
        self._began, self._idle, self._used_before = time.monotonic(), Idle(), self._used()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    @property
    def seconds(self) -> float | None:
        """So far, of all processors together."""
        used = self._used()
        return None if used is None else used - time.process_time()

    @property
    def others_share(self) -> float | None:
        """Of the machine's time since the beginning, what went to those who are not of this measurement."""
        used = self._used()
        if used is None or self._used_before is None:
            return None
        own = (used - self._used_before) / ((time.monotonic() - self._began) * (os.cpu_count() or 1))
        return max(0.0, 1 - self._idle.share - own)

    def _used(self) -> float | None:
        if self._group is None:
            return None
        told = dict(line.split() for line in (self._group / "cpu.stat").read_text().splitlines())
        return int(told["usage_usec"]) / 1e6

    def _leave(self) -> None:
        """Give the group back as soon as everything in it has ended."""
        if self._group is None or self._home is None or not self._group.exists():
            return
        _move_into(self._home)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                self._group.rmdir()
                return
            except OSError:
                if time.monotonic() > deadline:
                    return
                time.sleep(_LOOK_SECONDS)


def _own_group() -> Path | None:
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    root = next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    return None if root is None or own is None else root / own


def _move_into(group: Path) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()))

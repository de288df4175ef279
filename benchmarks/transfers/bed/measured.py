"""One transfer by a command that also starts the receivers: separate times of start-up and transfer, processor time.

Start-up ends with the first byte of the file at any receiver; the clock stops with the last complete copy.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.transfers.bed.bed import Bed
from benchmarks.transfers.bed.failures import RunFailedError
from benchmarks.transfers.bed.run import Run, opened
from benchmarks.transfers.bed.tools.tool import Tool

_PIECE = 64 << 10
"""Less than the first write of any tool, more than the metadata that some tools store next to the copy."""
_BLOCK = 512
"""The unit of st_blocks (stat(2)); a tool may set the length of a file before it writes."""
IDLE, AVAILABLE, BUSY = (3, 4), (1, 3, 4), (0, 1, 2, 5, 6)
"""Columns of /proc/stat (proc(5)). IDLE: idle, and waiting for a disk. AVAILABLE: these and low-priority work, which
other processes displace. BUSY: all work, including interrupts, without the time of other virtual machines."""


@dataclass(frozen=True)
class Measured:
    """A transfer; `failure` is empty if every receiver has the file, and `late` is set if it exceeded its limit.

    `processor_seconds` counts from the end of start-up; `others_share` is the share of the machine that other programs
    used. Both are None if the kernel has no control groups of version 2.
    """

    seconds: float
    start_seconds: float
    processor_seconds: float | None
    others_share: float | None
    failure: str = ""
    late: bool = False


def measured(  # noqa: PLR0913, PLR0917 - tool, place, and limit
    tool: Tool, bed: Bed, source: Path, programs: Path, limit_seconds: float, parent: Path
) -> Measured:
    """Send the file once, with copies below `parent`."""
    with Processor() as processor, opened(bed, source, programs, parent) as run:
        try:
            tool.prepare(run)
            return _carried(tool, run, processor, limit_seconds)
        except RunFailedError as failure:
            late = run.started > 0 and time.monotonic() > run.deadline
            return Measured(limit_seconds, limit_seconds, None, None, str(failure)[:200], late)


def _carried(tool: Tool, run: Run, processor: Processor, limit_seconds: float) -> Measured:
    begun: list[float | None] = []
    folders = [run.directory(receiver) for receiver in run.receivers]
    started = run.begin(limit_seconds)
    with FirstPiece(folders, run.size, lambda: begun.append(processor.seconds)) as first:
        ended, _ = tool.send(run)
    used, others = processor.seconds, processor.others_share
    starting = max(0.0, first.began(ended, run.size) - started)
    paid = used - begun[0] if used is not None and begun and begun[0] is not None else None
    return Measured(ended - started, starting, paid, others, run.fault())


class FirstPiece:
    """A watcher of folders that calls `called` once, when the first piece of the file arrives."""

    def __init__(self, folders: Sequence[Path], size: int, called: Callable[[], None]) -> None:
        self.moment: float | None = None
        """The time (time.monotonic) of the first piece."""
        self.seen = 0
        """Bytes of the longest copy at that time: some tools write late."""
        self._folders, self._min_bytes, self._called = folders, min(size, _PIECE), called
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="first piece", daemon=True)

    def __enter__(self) -> FirstPiece:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self.seen = max(map(_written, self._folders))
            if self.seen >= self._min_bytes:
                self.moment = time.monotonic()
                self._called()
                return

    def began(self, ended: float, size: int) -> float:
        """Return the time of the first byte, assuming that the first piece arrived at the rate of the rest."""
        if self.moment is None:
            return ended
        rest = size - self.seen
        return self.moment - (ended - self.moment) * self.seen / rest if rest > 0 else self.moment


def _written(folder: Path) -> int:
    """Return the bytes of the largest file."""
    sizes = [0]
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                sizes.append(entry.stat(follow_symlinks=False).st_blocks * _BLOCK)
            except FileNotFoundError:
                continue
    return max(sizes)


class ProcessorTimes:
    """The times of all processors since its creation."""

    def __init__(self) -> None:
        self._before = _times()

    def share(self, columns: Sequence[int]) -> float:
        """Return the share of these columns, from 0 to 1."""
        passed = [now - before for now, before in zip(_times(), self._before, strict=True)]
        return sum(passed[column] for column in columns) / max(1, sum(passed))


def _times() -> list[int]:
    # The first columns include the time of guests.
    return [int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]


class Processor:
    """Processor time of all processes that start in the block, by a control group of version 2 (cgroups(7)).

    This process joins the group, so that its children start in it; its own time is subtracted.
    """

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
        self._began, self._times, self._used_before = time.monotonic(), ProcessorTimes(), self._used()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    @property
    def seconds(self) -> float | None:
        """Seconds of all processors since the start; None without a group."""
        used = self._used()
        return None if used is None else used - time.process_time()

    @property
    def others_share(self) -> float | None:
        """The share of the machine that other processes have used; None without a group."""
        used = self._used()
        if used is None or self._used_before is None:
            return None
        own = (used - self._used_before) / ((time.monotonic() - self._began) * (os.cpu_count() or 1))
        return max(0.0, 1 - self._times.share(IDLE) - own)

    def _used(self) -> float | None:
        if self._group is None:
            return None
        usage = dict(line.split() for line in (self._group / "cpu.stat").read_text().splitlines())
        return int(usage["usage_usec"]) / 1e6

    def _leave(self) -> None:
        """Remove the group as soon as all its processes have exited."""
        if self._group is None or self._home is None or not self._group.exists():
            return
        _move_into(self._home)
        deadline = time.monotonic() + 2.0
        while time.monotonic() < deadline:
            try:
                self._group.rmdir()
                return
            except OSError:
                time.sleep(0.01)


def _own_group() -> Path | None:
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    root = next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    return None if root is None or own is None else root / own


def _move_into(group: Path) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()))

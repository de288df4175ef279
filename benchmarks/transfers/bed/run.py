"""One timed transfer by one tool, from the start of the sender to the last complete copy.

Receivers and daemons start before the clock. The copies are compared byte by byte after the clock, then deleted.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.transfers.bed import contents
from benchmarks.transfers.bed.bed import SENDER, Bed
from benchmarks.transfers.bed.failures import RunFailedError
from benchmarks.transfers.bed.program import Program
from benchmarks.transfers.bed.tools.tool import Tool

_PREPARATION_SECONDS = 60.0
_LOOK_SECONDS = 0.001


@dataclass(frozen=True)
class Outcome:
    """The seconds of a transfer, and the report of the tool. `failure` is empty if all receivers have the file."""

    seconds: float
    failure: str
    notes: dict[str, Any]


@dataclass
class Run:
    """The hosts, the file, the folder of the copies, the deadline (time.monotonic) of a transfer, and its receivers.

    `environments`: variables of all programs on a host.
    """

    bed: Bed
    source: Path
    folder: Path
    programs_folder: Path
    deadline: float
    receivers: Sequence[int]
    started: float = 0.0
    programs: list[Program] = field(default_factory=list)
    environments: dict[int, Mapping[str, str]] = field(default_factory=dict)

    def begin(self, limit_seconds: float) -> float:
        """Start the clock and return its time."""
        self.started = time.monotonic()
        self.deadline = self.started + limit_seconds
        return self.started

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.source.stat().st_size

    def directory(self, receiver: int) -> Path:
        """Return the folder of a receiver."""
        return self.folder / str(receiver)

    def output(self, receiver: int) -> Path:
        """Return the path of its copy."""
        return self.directory(receiver) / self.source.name

    def start(
        self, host: int, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> Program:
        """Start a program on a host; it ends with the run."""
        words, log = self.bed.on(host, [str(word) for word in command]), self.folder / f"{name}-{host}.log"
        variables = {**self.bed.environment, **self.environments.get(host, {}), **(environment or {})}
        program = Program(f"{name} on h{host}", words, log, variables)
        self.programs.append(program)
        return program

    def start_sender(self, name: str, command: Sequence[str | Path]) -> Program:
        """Start a program on the sender's host."""
        return self.start(SENDER, name, command)

    def start_receivers(self, name: str, command: Sequence[str | Path]) -> list[Program]:
        """Start a program on every receiver, with the path of its copy as the last word; wait for "ready"."""
        started = [self.start(receiver, name, [*command, self.output(receiver)]) for receiver in self.receivers]
        for program in started:
            program.await_line("ready", self.deadline)
        return started

    def await_outputs(self, sender: Program) -> float:
        """Return the time when every receiver had its copy, which is named when complete. Raises RunFailedError."""
        missing = list(self.receivers)
        while missing := [receiver for receiver in missing if not self.output(receiver).exists()]:
            if sender.status:
                sender.require_success()
            if time.monotonic() > self.deadline:
                raise RunFailedError(f"{hosts(missing)} had no file in time")
            time.sleep(_LOOK_SECONDS)
        return time.monotonic()

    def await_bytes(self, host: int, count: float) -> None:
        """Wait until a host has received this number of bytes. Raises RunFailedError."""
        while self.bed.received_bytes(host) < count:
            if time.monotonic() > self.deadline:
                raise RunFailedError(f"h{host} had received only {self.bed.received_bytes(host)} bytes in time")
            time.sleep(_LOOK_SECONDS)

    def intact(self, receivers: Collection[int]) -> list[int]:
        """Return the receivers whose copy is the same as the file."""
        return [receiver for receiver in receivers if contents.same(self.source, self.output(receiver))]

    def fault(self) -> str:
        """Return a sentence that names the receivers with a wrong copy, or nothing."""
        broken = sorted(set(self.receivers).difference(self.intact(self.receivers)))
        return f"the copy differs from the original at {hosts(broken)}" if broken else ""

    def end(self) -> None:
        """End all programs and delete all copies."""
        for program in reversed(self.programs):
            program.end()
        shutil.rmtree(self.folder)


def hosts(numbers: Collection[int]) -> str:
    """Return the names of hosts."""
    return ", ".join(f"h{number}" for number in numbers)


@contextmanager
def opened(bed: Bed, source: Path, programs_folder: Path | None = None, parent: Path | None = None) -> Iterator[Run]:
    """Make a run whose copies are in `parent`, or beside `source`; end its programs and delete them."""
    folder = (parent or source.parent) / "run"
    folder.mkdir()
    deadline = time.monotonic() + _PREPARATION_SECONDS
    run = Run(bed, source, folder, programs_folder or folder, deadline, bed.plan.hosts[1:])
    for receiver in run.receivers:
        run.directory(receiver).mkdir()
    try:
        yield run
    finally:
        run.end()


def transfer(tool: Tool, bed: Bed, source: Path, programs_folder: Path, limit_seconds: float) -> Outcome:
    """Send the file once, as `timed` does, in a run of its own."""
    with opened(bed, source, programs_folder) as run:
        return timed(tool, run, limit_seconds)


def timed(tool: Tool, run: Run, limit_seconds: float) -> Outcome:
    """Send the file once; a tool that takes longer than the limit has failed."""
    try:
        tool.prepare(run)
        started = run.begin(limit_seconds)
        ended, notes = tool.send(run)
    except RunFailedError as failure:
        return Outcome(limit_seconds, str(failure), {})
    return Outcome(ended - started, run.fault() if tool.carries else "", notes)

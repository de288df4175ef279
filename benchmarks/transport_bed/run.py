"""One transfer by one tool, on the one clock: from the sender's start to the last receiver's complete file.

Receivers and daemons are started before and waited for. What arrived is compared byte by byte after the clock has
stopped, then deleted.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transport_bed import contents
from transport_bed.bed import SENDER, Bed
from transport_bed.failures import RunFailed
from transport_bed.program import Program
from transport_bed.tools.tool import Tool

_PREPARATION_SECONDS = 60.0
_NOTHING: Mapping[str, str] = {}
_LOOK_SECONDS = 0.001


@dataclass(frozen=True)
class Outcome:
    """What one transfer took, and what the tool had to say. `failure` is empty when all receivers have the file."""

    seconds: float
    failure: str
    notes: dict[str, Any]


@dataclass
class Run:
    """What a tool is given: hosts, the file, where copies go, and until when (time.monotonic) it must be done."""

    bed: Bed
    source: Path
    folder: Path
    programs_folder: Path
    deadline: float
    started: float = 0.0
    programs: list[Program] = field(default_factory=list)

    def begin(self, limit_seconds: float) -> float:
        """Start the clock; what it shows."""
        self.started = time.monotonic()
        self.deadline = self.started + limit_seconds
        return self.started

    @property
    def receivers(self) -> range:
        """Their hosts."""
        return self.bed.plan.hosts[1:]

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.source.stat().st_size

    def directory(self, receiver: int) -> Path:
        """Where a receiver puts files."""
        return self.folder / str(receiver)

    def output(self, receiver: int) -> Path:
        """Where its copy must be in the end."""
        return self.directory(receiver) / self.source.name

    def start(
        self, host: int, name: str, command: Sequence[str | Path], environment: Mapping[str, str] = _NOTHING
    ) -> Program:
        """Start a program on a host, with more in its environment than others have; it is ended with the run."""
        words, log = [str(word) for word in command], self.folder / f"{name}-{host}.log"
        program = Program(self.bed, host, f"{name} on h{host}", words, log, environment)
        self.programs.append(program)
        return program

    def start_sender(self, name: str, command: Sequence[str | Path]) -> Program:
        """Start a program on the sender's host."""
        return self.start(SENDER, name, command)

    def await_outputs(self, sender: Program) -> float:
        """When every receiver had its copy, which the tool gives its name when it is whole. Raises RunFailed."""
        missing = list(self.receivers)
        while missing := [receiver for receiver in missing if not self.output(receiver).exists()]:
            if sender.status:
                sender.require_success()
            if time.monotonic() > self.deadline:
                raise RunFailed(f"{', '.join(f'h{receiver}' for receiver in missing)} had no file in time")
            time.sleep(_LOOK_SECONDS)
        return time.monotonic()

    def await_bytes(self, host: int, count: float) -> None:
        """Wait until so many bytes have arrived at a host, by light and packets. Raises RunFailed."""
        while self.bed.received_bytes(host) < count:
            if time.monotonic() > self.deadline:
                raise RunFailed(f"h{host} had received only {self.bed.received_bytes(host)} bytes in time")
            time.sleep(_LOOK_SECONDS)

    def intact(self, receivers: Collection[int]) -> list[int]:
        """Those of the receivers whose copy is the same as the file."""
        return [receiver for receiver in receivers if contents.same(self.source, self.output(receiver))]

    def end(self) -> None:
        """End all programs and delete all copies."""
        for program in reversed(self.programs):
            program.end()
        shutil.rmtree(self.folder)


@contextmanager
def opened(bed: Bed, source: Path, programs_folder: Path | None = None, parent: Path | None = None) -> Iterator[Run]:
    """A run with time to prepare it; programs end and copies go with it. They lie in `parent`, or beside `source`."""
    folder = (parent or source.parent) / "run"
    folder.mkdir()
    run = Run(bed, source, folder, programs_folder or folder, time.monotonic() + _PREPARATION_SECONDS)
    for receiver in run.receivers:
        run.directory(receiver).mkdir()
    try:
        yield run
    finally:
        run.end()


def transfer(  # noqa: PLR0913, PLR0917 - what, where, and until when
    tool: Tool,
    bed: Bed,
    source: Path,
    programs_folder: Path,
    limit_seconds: float,
    parent: Path | None = None,
) -> Outcome:
    """Carry the file once, copies to below `parent`; a tool that does not manage it within the limit has failed."""
    with opened(bed, source, programs_folder, parent) as run:
        try:
            tool.prepare(run)
            started = run.begin(limit_seconds)
            ended, notes = tool.send(run)
        except RunFailed as failure:
            return Outcome(limit_seconds, str(failure), {})
        broken = set(run.receivers).difference(run.intact(run.receivers)) if tool.carries else ()
        names = ", ".join(f"h{receiver}" for receiver in sorted(broken))
        return Outcome(ended - started, names and f"another file than was sent at {names}", notes)

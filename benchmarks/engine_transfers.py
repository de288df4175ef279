"""Transfers by either engine, or by what they are compared with: how long one took, and what its processes used."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processor_cost import Cost, used_by
from transport_bed import contents
from transport_bed.bed import Bed
from transport_bed.failures import CannotRun, RunFailed
from transport_bed.run import opened
from transport_bed.tools.blast import Blast, BlastOptical, BlastPipeline
from transport_bed.tools.tool import Tool
from transport_bed.warm_memory import used_until_now

from blast_transport.base.engines import COMPILED, PYTHON

CARRIERS: dict[str, type[Blast]] = {"pipeline": BlastPipeline, "optical": BlastOptical}
_START_BYTES = 1 << 16
_LIMIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Taken:
    """Of one transfer: seconds on the clock, and what the sender's processes and the receivers' used."""

    seconds: float
    sender: Cost
    receivers: Cost

    def __sub__(self, other: Taken) -> Taken:
        return Taken(self.seconds - other.seconds, self.sender - other.sender, self.receivers - other.receivers)

    @property
    def user(self) -> float:
        """Of all, in user mode."""
        return self.sender.user + self.receivers.user

    @property
    def both(self) -> float:
        """Of all, user and system."""
        return self.sender.both + self.receivers.both


def by_both_engines(carrier: str) -> dict[str, Blast]:
    """Ours, by this carrier."""
    ours = {engine: CARRIERS[carrier]() for engine in (PYTHON, COMPILED)}
    for engine, tool in ours.items():
        tool.engine = engine
    return ours


def small_beside(source: Path) -> Path:
    """A file of one block: what it takes is the start of everything."""
    small = source.with_name("small")
    contents.write_random(small, _START_BYTES)
    return small


def transfer(bed: Bed, programs: Path, source: Path, tool: Tool) -> Taken:
    """Once, by the engine that `tool` is to use. Raises CannotRun if it fails, or went another way."""
    began = _ended()
    with opened(bed, source, programs) as run:
        try:
            with used_until_now(source.parent, source.stat().st_size * len(run.receivers)):
                tool.prepare(run)
            started = run.begin(_LIMIT_SECONDS)
            ended, notes = tool.send(run)
        except RunFailed as failure:
            raise CannotRun(f"{tool.title}: {failure}") from failure
        sent = _ended()
        if tool.carries and set(run.intact(run.receivers)) != set(run.receivers):
            raise CannotRun(f"{tool.title} left another file than was sent")
    if isinstance(tool, Blast) and (used := _engines(notes)) != {tool.engine}:
        raise CannotRun(f"{tool.title} was to go by the engine {tool.engine}, and went by {', '.join(sorted(used))}")
    return Taken(notes.get("since_first_byte", ended - started), sent - began, _ended() - sent)


def _engines(notes: dict[str, Any]) -> set[str]:
    """Of both ends, as the sender tells them."""
    return {notes["engine"], *(one["engine"] for one in notes["receivers"])}


def _ended() -> Cost:
    """Of the processes that have ended by now."""
    return used_by(resource.RUSAGE_CHILDREN)

"""All tools on the same file in turn: the first round is thrown away, of the others count median and spread."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transport_bed import contents
from transport_bed.bed import Bed, Plan
from transport_bed.programs import compile_into
from transport_bed.run import Outcome, transfer
from transport_bed.shape import Shape
from transport_bed.tools import TOOLS
from transport_bed.tools.tool import Tool
from transport_bed.warm_memory import WarmMemory

Row = dict[str, Any]
_DISCARDED_ROUNDS = 1
_MOST_FAILURES = 2
"""After so many in one cell a tool is not tried there again: each may have taken the whole limit."""
_SLOWEST_BITS_PER_SECOND = 1e9
"""Of an unshaped machine, over all receivers: who is slower has hung."""
_START_SECONDS = 60.0


@dataclass(frozen=True)
class Cell:
    """One bed to compare the tools on."""

    shape: Shape
    receivers: int

    @property
    def name(self) -> str:
        """For results that are kept."""
        return f"{self.shape.name}, {self.receivers} receivers"

    def tools(self, wanted: Sequence[str]) -> list[str]:
        """Of these tools, those that run here."""
        return list(wanted)

    def size(self, effort: Effort) -> int:
        """Bytes of the file."""
        return effort.size

    def measure(self, wanted: Sequence[str], effort: Effort, report: Callable[[str], None]) -> Iterator[Row]:
        """One row for each tool. `report` hears what begins. Raises CannotRun, HostError."""
        return compare(self, wanted, effort, report)

    def limit_seconds(self, size: int) -> float:
        """After this a tool has failed: half as much again as one copy for each receiver takes."""
        rate = self.shape.rate_mbps
        bits_per_second = _SLOWEST_BITS_PER_SECOND if rate is None else rate * 1e6 / 1.5
        return _START_SECONDS + size * 8 * self.receivers / bits_per_second


@dataclass(frozen=True)
class Effort:
    """How much to measure: bytes of the file, and rounds that count."""

    size: int
    repeats: int

    @property
    def rounds(self) -> range:
        """From 0; those that do not count come first."""
        return range(self.repeats + _DISCARDED_ROUNDS)


def compare(cell: Cell, tools: Sequence[str], effort: Effort, report: Callable[[str], None]) -> Iterator[Row]:
    """One row for each tool. `report` hears what begins. Raises CannotRun, HostError.

    The rows come before the bed goes: none is lost where that fails.
    """
    contents.require_room(effort.size, cell.receivers + 1)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in tools}
    with contents.workshop() as folder, Bed(Plan(cell.receivers, cell.shape)) as bed, ExitStack() as stack:
        # Where the machine sets the pace, giving memory up would take its time.
        warm = stack.enter_context(WarmMemory(folder)) if cell.shape.rate_mbps else None
        source = folder / "source"
        contents.write_random(source, effort.size)
        used = {name: TOOLS[name]() for name in tools}
        programs = compiled(used.values(), folder)
        for number in effort.rounds:
            for name, tool in used.items():
                if sum(bool(outcome.failure) for outcome in outcomes[name]) < _MOST_FAILURES:
                    report(f"{cell.name}: {name}, round {number}")
                    limit = cell.limit_seconds(effort.size)
                    if warm is not None:
                        warm.fill()
                    outcomes[name].append(transfer(tool, bed, source, programs, limit))
        yield from [_row(cell, used[name], effort, outcomes[name]) for name in tools]


def compiled(tools: Iterable[Tool], folder: Path) -> Path:
    """A folder with the programs of these tools. Raises CannotRun."""
    programs = folder / "programs"
    programs.mkdir()
    for program in {program for tool in tools for program in tool.programs}:
        compile_into(programs, program)
    return programs


def _row(cell: Cell, tool: Tool, effort: Effort, outcomes: Sequence[Outcome]) -> Row:
    return {
        **row_of(cell.name, cell.receivers, effort.size, outcomes),
        "shape": cell.shape.name,
        "rate_mbps": cell.shape.rate_mbps,
        "tool": tool.name,
        "title": tool.title,
    }


def row_of(cell: str, receivers: int, size: int, outcomes: Sequence[Outcome]) -> Row:
    """What the outcomes of one tool say, those of the first round left out."""
    counted = outcomes[_DISCARDED_ROUNDS:]
    seconds = [outcome.seconds for outcome in counted if not outcome.failure]
    row: Row = {
        "cell": cell,
        "receivers": receivers,
        "bytes": size,
        "seconds": [round(value, 4) for value in seconds],
        "failures": [outcome.failure for outcome in outcomes if outcome.failure],
        "notes": [outcome.notes for outcome in counted if outcome.notes],
    }
    if seconds:
        middle = statistics.median(seconds)
        row |= {"median": middle, "gbps": size * 8 / middle / 1e9}
    return row

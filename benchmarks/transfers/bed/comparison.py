"""Runs of all tools on the same file, the table of their rates, and the claims about these.

The first round does not count; the results are the median and the spread of the others.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.bed import Plan
from benchmarks.transfers.bed.contents import WarmMemory
from benchmarks.transfers.bed.programs import compile_into
from benchmarks.transfers.bed.run import Outcome, transfer
from benchmarks.transfers.bed.shape import UNSHAPED, Shape
from benchmarks.transfers.bed.tools import TOOLS
from benchmarks.transfers.bed.tools.tool import Tool

Row = dict[str, Any]
_DISCARDED_ROUNDS = 1
_MAX_FAILURES = 2
"""Failures after which a tool does not run again in a cell, since each may have taken the whole limit."""
_MIN_UNSHAPED_RATE = 1e9
"""Bits per second over all receivers; a slower tool hangs."""
_START_SECONDS = 60.0
_MIDDLE = 7
"""Number of receivers in most claims."""
_FAMILIAR_MBPS = 400.0


@dataclass(frozen=True)
class Cell:
    """A bed on which the tools are compared."""

    shape: Shape
    receivers: int

    @property
    def name(self) -> str:
        """For tables and results."""
        return f"{self.shape.name}, {self.receivers} receivers"

    def limit_seconds(self, size: int) -> float:
        """Return 1.5 times the time of one copy after another, plus start-up."""
        rate = self.shape.rate_mbps
        bits_per_second = _MIN_UNSHAPED_RATE if rate is None else rate * 1e6 / 1.5
        return _START_SECONDS + size * 8 * self.receivers / bits_per_second


@dataclass(frozen=True)
class Effort:
    """Bytes of the file, and the number of rounds that count."""

    size: int
    repeats: int

    @property
    def rounds(self) -> range:
        """All rounds, from 0."""
        return range(self.repeats + _DISCARDED_ROUNDS)


def compare(cell: Cell, tools: Sequence[str], effort: Effort, report: Callable[[str], None]) -> Iterator[Row]:
    """Yield a row for each tool, before the bed is removed; `report` is called before each run.

    Raises PrerequisiteError, LabError.
    """
    outcomes: dict[str, list[Outcome]] = {name: [] for name in tools}
    plan = Plan(cell.receivers, cell.shape)
    with script.bed_and_file(plan, effort.size) as (bed, source), ExitStack() as stack:
        # On unshaped links, warming memory would take processor time from the tools.
        warm = stack.enter_context(WarmMemory(source.parent)) if cell.shape.rate_mbps else None
        used = {name: TOOLS[name]() for name in tools}
        programs = compiled(used.values(), source.parent)
        for number in effort.rounds:
            for name, tool in used.items():
                if sum(bool(outcome.failure) for outcome in outcomes[name]) < _MAX_FAILURES:
                    report(f"{cell.name}: {name}, round {number}")
                    if warm is not None:
                        warm.fill()
                    outcomes[name].append(transfer(tool, bed, source, programs, cell.limit_seconds(effort.size)))
        yield from [_row(cell, used[name], effort.size, outcomes[name]) for name in tools]


def compiled(tools: Iterable[Tool], folder: Path) -> Path:
    """Compile the programs of these tools, and return their folder. Raises PrerequisiteError."""
    programs = folder / "programs"
    programs.mkdir()
    for program in {program for tool in tools for program in tool.programs}:
        compile_into(programs, program)
    return programs


def _row(cell: Cell, tool: Tool, size: int, outcomes: Sequence[Outcome]) -> Row:
    counted = outcomes[_DISCARDED_ROUNDS:]
    seconds = [outcome.seconds for outcome in counted if not outcome.failure]
    row: Row = {
        "cell": cell.name,
        "receivers": cell.receivers,
        "shape": cell.shape.name,
        "rate_mbps": cell.shape.rate_mbps,
        "tool": tool.name,
        "title": tool.title,
        "bytes": size,
        "seconds": [round(value, 4) for value in seconds],
        "failures": [outcome.failure for outcome in outcomes if outcome.failure],
        "notes": [outcome.notes for outcome in counted if outcome.notes],
    }
    if seconds:
        middle = statistics.median(seconds)
        row |= {"median": middle, "gbps": size * 8 / middle / 1e9}
    return row


@dataclass(frozen=True)
class Claim:
    """A ratio, its bar, and whether it reaches the bar."""

    claim: str
    value: float
    bar: float
    kept: bool


def _claim(words: str, value: float, bar: float) -> Claim:
    return Claim(words, value, bar, value >= bar)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Return all claims for which there are rows."""
    rates = {(row["rate_mbps"], row["receivers"], row["tool"]): row["gbps"] * 1e9 for row in rows if row.get("gbps")}
    return [*_against_others(rates), *_against_limits(rates), *_flat(rates)]


Rates = dict[tuple[float | None, int, str], float]
"""Bits of the file per second, by rate of the links, receivers and tool."""


def _against_others(rates: Rates) -> Iterator[Claim]:
    free = UNSHAPED.rate_mbps
    comparisons = [
        ("optical ÷ floor, unshaped", free, _MIDDLE, "optical", ["floor"], 0.35),
        ("optical ÷ best of udpcast, uftp, unshaped", free, _MIDDLE, "optical", ["udpcast", "uftp"], 6.0),
        ("multicast ÷ best of udpcast, uftp, unshaped", free, _MIDDLE, "multicast", ["udpcast", "uftp"], 5.5),
        ("multicast ÷ optical, unshaped", free, _MIDDLE, "multicast", ["optical"], 0.95),
        (f"optical ÷ naive TCP, {_FAMILIAR_MBPS:g} Mbit/s", _FAMILIAR_MBPS, _MIDDLE, "optical", ["naive"], 6.5),
    ]
    for tool, bar in (("optical", 1.1), ("pipeline", 0.95)):
        comparisons.append((f"{tool} ÷ naive TCP that verifies, unshaped", free, 1, tool, ["verifying"], bar))
    receivers = sorted({number for rate, number, _ in rates if rate is free})
    comparisons += [
        ("pipeline ÷ naive TCP, unshaped", free, number, "pipeline", ["naive"], 0.9) for number in receivers
    ]
    for words, rate, number, ours, peers, bar in comparisons:
        theirs = [rates[key] for peer in peers if (key := (rate, number, peer)) in rates]
        if theirs and (rate, number, ours) in rates:
            yield _claim(f"{words}, {number} receivers", rates[rate, number, ours] / max(theirs), bar)


def _against_limits(rates: Rates) -> Iterator[Claim]:
    for (rate, receivers, tool), bits_per_second in sorted(rates.items(), key=str):
        shape = Shape(rate)
        limits = {
            "optical": (shape.udp_limit, 0.97),
            "multicast": (shape.udp_limit, 0.97),
            "pipeline": (shape.tcp_limit, 0.9),
        }
        limit, bar = limits.get(tool, (None, 0.0))
        if limit is not None:
            yield _claim(f"{tool} ÷ payload limit, {shape.name}, {receivers} receivers", bits_per_second / limit, bar)


def _flat(rates: Rates) -> Iterator[Claim]:
    found = {
        number: rate for (shaped, number, tool), rate in rates.items() if shaped == _FAMILIAR_MBPS and tool == "optical"
    }
    if len(found) > 1:
        share, numbers = min(found.values()) / max(found.values()), f"{min(found)} to {max(found)}"
        yield _claim(f"optical, {_FAMILIAR_MBPS:g} Mbit/s: slowest ÷ fastest, {numbers} receivers", share, 0.9)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a block of lines for each cell; rates are size ÷ time of one receiver's copy."""
    for cell in dict.fromkeys(row["cell"] for row in rows):
        own = [row for row in rows if row["cell"] == cell]
        limit = Shape(own[0]["rate_mbps"]).udp_limit
        yield f"\n{cell}, {own[0]['bytes'] / 1e6:g} MB" + (f", payload limit {limit / 1e9:.3f} Gbit/s" if limit else "")
        yield f"  {'':<30}{'Gbit/s':>8}{'of floor':>10}{'median s':>10}{'min':>9}{'max':>9}{'runs':>6}"
        floor = next((row["gbps"] for row in own if row["tool"] == "floor" and "gbps" in row), None)
        for row in own:
            failed = f"   {len(row['failures'])} failed: {row['failures'][-1]}" if row["failures"] else ""
            yield f"  {row['title']:<30}{_figures(row, floor)}{failed}"


def verdicts(claims: Sequence[Claim]) -> Iterator[str]:
    """Yield a line for each claim."""
    for claim in claims:
        yield f"{claim.claim:<72}{claim.value:>8.3f}  bar {claim.bar:g}{'' if claim.kept else '  MISSED'}"


def _figures(row: Row, floor: float | None) -> str:
    if "gbps" not in row:
        return f"{'-':>8}"
    share = "" if floor is None else f"{row['gbps'] / floor:.2f}"
    spread = f"{min(row['seconds']):>9.3f}{max(row['seconds']):>9.3f}"
    repaired = max((notes.get("repaired_bytes", 0) for notes in row["notes"]), default=0)
    words = f"   {repaired} bytes repaired" if repaired else ""
    return f"{row['gbps']:>8.3f}{share:>10}{row['median']:>10.3f}{spread}{len(row['seconds']):>6}{words}"

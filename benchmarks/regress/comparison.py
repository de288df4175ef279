"""Pairs of runs: the order of the commands, the ratio of each pair, its interval, and the verdict on a row."""

from __future__ import annotations

import math
import os
import shlex
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks.median_interval import median_interval
from benchmarks.regress.eras import ROWS, Command, Era, ReadingError, Row
from benchmarks.regress.runs import RunFailedError, measure

CONFIDENCE = 0.9
WORSE_BELOW = 0.97
BASE, HEAD = "base", "head"
MEASURED, NOT_MEASURED, FAILED = "measured", "not measured", "failed"


@dataclass
class Result:
    """The readings of a row, pair by pair, or the reason why it has none."""

    row: Row
    state: str = NOT_MEASURED
    reason: str = "interrupted"
    readings: dict[str, list[float]] = field(default_factory=lambda: {BASE: [], HEAD: []})

    @property
    def ratios(self) -> list[float]:
        """Return HEAD / BASE of each pair, inverted if a lower reading is better: above 1, HEAD is better."""
        pairs = zip(self.readings[BASE], self.readings[HEAD], strict=True)
        return [head / base if self.row.higher_is_better else base / head for base, head in pairs]

    @property
    def verdict(self) -> str:
        """Return `worse`, `better`, an empty text for neither, or `too few pairs` for a verdict."""
        low, _, high = median_interval(self.ratios, CONFIDENCE)
        if coverage(len(self.ratios)) < CONFIDENCE:
            return "too few pairs"
        return "worse" if high < WORSE_BELOW else "better" if low > 1 / WORSE_BELOW else ""

    def to_json(self) -> dict[str, Any]:
        """Return all readings and results."""
        known = {"row": self.row.name, "unit": self.row.unit, "state": self.state, **self.readings}
        if self.state != MEASURED:
            return {**known, "reason": self.reason}
        low, ratio, high = median_interval(self.ratios, CONFIDENCE)
        interval = {"ratio": ratio, "interval": [low, high], "coverage": coverage(len(self.ratios))}
        return {**known, "ratios": self.ratios, **interval, "verdict": self.verdict}


def coverage(pairs: int) -> float:
    """Return a lower bound on the probability that the interval of `median_interval` covers the median."""
    outside = list(accumulate(math.comb(pairs, rank) * 0.5 ** (pairs - 1) for rank in range(max(1, (pairs - 1) // 2))))
    return 1 - max((both_tails for both_tails in outside if both_tails < 1 - CONFIDENCE), default=outside[0])


def order(pair: int) -> tuple[str, str]:
    """Return the order of the commits in a pair, counted from 0: it alternates."""
    return (HEAD, BASE) if pair % 2 else (BASE, HEAD)


@dataclass(frozen=True)
class Side:
    """A commit under test."""

    name: str
    era: Era
    worktree: Path

    def reason_against(self, row: str) -> str:
        """Return the reason why a row cannot be measured here, or an empty text."""
        command = self.era.command_of(row)
        if command is None:
            reason = self.era.absent.get(row, "no command for it in this era")
            return f"{reason} ({self.name})"
        for path in command.paths:
            if not any(self.worktree.glob(path)):
                return f"no {path} in the worktree ({self.name})"
        return "needs root" if command.needs_root and os.geteuid() != 0 else ""


class Comparison:
    """The results of some rows. `report` is called with a line of progress."""

    def __init__(self, base: Side, head: Side, rows: Iterable[str], report: Callable[[str], None]) -> None:
        self._sides = {BASE: base, HEAD: head}
        self._report = report
        self.results = {name: Result(ROWS[name]) for name in rows}

    def run(self, pairs: int | None) -> None:
        """Measure all rows that can be measured, each with `pairs` pairs of runs or its own number."""
        for commands, results in self._groups():
            count = pairs or max(result.row.pairs for result in results)
            try:
                for pair in range(count):
                    self._run_pair(commands, results, f"pair {pair + 1} of {count}", order(pair))
            except (RunFailedError, ReadingError) as error:
                for result in results:
                    result.state, result.reason = FAILED, str(error)
                self._report(f"failed: {error}")

    def _groups(self) -> Iterator[tuple[dict[str, Command], list[Result]]]:
        """Yield rows that are measured by the same commands."""
        groups: dict[tuple[Command, ...], list[Result]] = {}
        for name, result in self.results.items():
            reasons = [side.reason_against(name) for side in self._sides.values()]
            result.reason = "; ".join(dict.fromkeys(filter(None, reasons))) or result.reason
            found = [command for side in self._sides.values() if (command := side.era.command_of(name))]
            if not any(reasons):
                groups.setdefault(tuple(found), []).append(result)
        for commands, results in groups.items():
            yield dict(zip(self._sides, commands, strict=True)), results

    def _run_pair(
        self, commands: dict[str, Command], results: Sequence[Result], pair: str, sides: Sequence[str]
    ) -> None:
        found: dict[str, list[float]] = {}
        for name in sides:
            side, command = self._sides[name], commands[name]
            began = time.monotonic()
            output = measure(command.argv, side.worktree, command.limit_seconds)
            try:
                found[name] = [command.readings[result.row.name](output) for result in results]
            except ReadingError as error:
                raise ReadingError(f"{shlex.join(command.argv)} ({side.name}): {error}") from None
            words = ", ".join(f"{r.row.name} {value:.4g}" for r, value in zip(results, found[name], strict=True))
            self._report(f"{pair}, {name} {side.name}: {words} ({time.monotonic() - began:.1f} s)")
        for name in sides:
            for result, value in zip(results, found[name], strict=True):
                result.readings[name].append(value)
        for result in results:
            result.state = MEASURED


def table(results: Iterable[Result]) -> str:
    """Return the table of results."""
    head = ["row", "unit", "base", "head", "ratio", "interval", "coverage", "pairs", "verdict"]
    lines, notes = [head], []
    for result in results:
        if result.state == MEASURED:
            lines.append(_cells(result))
        else:
            notes.append(f"{result.row.name}: {result.state}: {result.reason}")
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*shown, *notes])


def _cells(result: Result) -> list[str]:
    low, ratio, high = median_interval(result.ratios, CONFIDENCE)
    middle = [f"{statistics.median(result.readings[name]):.4g}" for name in (BASE, HEAD)]
    interval = [f"{ratio:.3f}", f"{low:.3f}-{high:.3f}", f"{coverage(len(result.ratios)):.1%}"]
    return [result.row.name, result.row.unit, *middle, *interval, str(len(result.ratios)), result.verdict]

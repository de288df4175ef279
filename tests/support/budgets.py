"""Budgets of a test run, by counts that do not depend on the machine's speed, and the tests that use most.

Totals of what was started are added up over all tests; peaks of disk, memory and processes are read twice a second. A
run that exceeds its budget fails, and names the tests. `--costs FILE` writes the costs of each test, among them its
times, which decide nothing.
"""

from __future__ import annotations

import json
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.costs import folder_size
from tests.support.levels import Level

_SECONDS = 0.5
_NAMED = 5
_MB = 1_000_000


@dataclass(frozen=True)
class Budget:
    """The bounds of one run: totals over its tests, and peaks at any moment of it."""

    processes: int
    labs: int
    examples: int
    megabytes_left: int
    peak_disk_mb: int
    peak_memory_mb: int
    peak_processes: int


BUDGETS = {
    Level.TEST: Budget(
        processes=1_400,
        labs=5,
        examples=13_500,
        megabytes_left=800,
        peak_disk_mb=1_000,
        peak_memory_mb=2_500,
        peak_processes=600,
    ),
    Level.ALL: Budget(
        processes=9_500,
        labs=60,
        examples=46_000,
        megabytes_left=2_000,
        peak_disk_mb=2_500,
        peak_memory_mb=8_000,
        peak_processes=600,
    ),
}


@dataclass
class Peak:
    """The maximum reading, with the tests that ran at that time."""

    value: int = 0
    tests: tuple[str, ...] = ()

    def record(self, value: int, running: tuple[str, ...]) -> None:
        """Keep the reading if it is the highest."""
        if value > self.value:
            self.value, self.tests = value, running


@dataclass
class Usage:
    """The resources that a run has used."""

    totals: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    maxima: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    peaks: dict[str, Peak] = field(default_factory=dict)

    def add(self, test: str, costs: dict[str, float]) -> None:
        """Add what one test used."""
        counts = {
            "processes": costs["processes"],
            "labs": costs["labs"],
            "examples": costs["examples"],
            "megabytes_left": max(0.0, costs["bytes_left"]) / _MB,
        }
        for name, value in counts.items():
            self.totals[name] += value
            maximum = self.maxima.setdefault(name, [])
            maximum.append((value, test))
            maximum.sort(reverse=True)
            del maximum[_NAMED:]

    def record(self, readings: dict[str, int], running: tuple[str, ...]) -> None:
        """Keep the peaks of these readings."""
        for name, value in readings.items():
            self.peaks.setdefault(name, Peak()).record(value, running)


def excesses(usage: Usage, budget: Budget) -> list[str]:
    """Return a sentence for each bound that the run exceeded, with the tests that used most."""
    found = []
    for name, maximum in usage.maxima.items():
        limit, used = getattr(budget, name), usage.totals[name]
        if used > limit:
            tests = ", ".join(f"{test} ({value:,.0f})" for value, test in maximum)
            found.append(f"{_label(name)}: {used:,.0f}, budget {limit:,}; most by {tests}")
    for name, peak in usage.peaks.items():
        limit = getattr(budget, name)
        if peak.value > limit:
            found.append(f"{_label(name)}: {peak.value:,}, budget {limit:,}, during {', '.join(peak.tests)}")
    return found


def summary(usage: Usage, budget: Budget) -> str:
    """Return one line with everything used, each with its budget."""
    used = {name: usage.totals[name] for name in usage.maxima} | {
        name: peak.value for name, peak in usage.peaks.items()
    }
    return "; ".join(f"{_label(name)} {value:,.0f} of {getattr(budget, name):,}" for name, value in used.items())


def _label(name: str) -> str:
    return name.replace("_mb", " (MB)").replace("_", " ")


class BudgetKeeper:
    """A pytest plugin for the process that collects the reports."""

    def __init__(self, level: Level, temporary: Path, costs: Path | None = None) -> None:
        self.usage, self.budget = Usage(), BUDGETS[level]
        self._temporary, self._costs = temporary, costs
        self._running: dict[str, None] = {}
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        if costs is not None:
            costs.unlink(missing_ok=True)

    def pytest_sessionstart(self) -> None:
        self._watcher.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = None

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._running.pop(nodeid, None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        costs = getattr(report, "costs", None)
        if costs is None:
            return
        self.usage.add(report.nodeid, costs)
        if self._costs is not None:
            with self._costs.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"test": report.nodeid, **costs}) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._over.set()
        self._watcher.join()
        if excesses(self.usage, self.budget) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.usage.totals:
            return
        terminalreporter.write_line(f"Budgets: {summary(self.usage, self.budget)}")
        found = excesses(self.usage, self.budget)
        for sentence in found:
            terminalreporter.write_line(f"FAILED: over the budget of this level: {sentence}", red=True)
        if found:
            terminalreporter.write_line(
                "Make these tests use less or mark them test_all (tests/support/budgets.py has the budgets)."
            )

    def _watch(self) -> None:
        while not self._over.wait(_SECONDS):
            self.usage.record(self._readings(), tuple(self._running))

    def _readings(self) -> dict[str, int]:
        processes = list(descendants(os.getpid()))
        return {
            "peak_disk_mb": folder_size(self._temporary) // _MB,
            "peak_memory_mb": sum(map(private_memory, [os.getpid(), *processes])) // _MB,
            "peak_processes": len(processes),
        }


def descendants(root: int) -> Iterator[int]:
    """Yield the live processes below one, without processes that a daemon has left behind."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with suppress(OSError, IndexError, ValueError):
                parent = int(Path(entry.path, "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    waiting = children.get(root, [])
    while waiting:
        process = waiting.pop()
        yield process
        waiting += children.get(process, [])


def private_memory(process: int) -> int:
    """Return the bytes of a process without a file behind them: its cost where others run the same program."""
    try:
        _, resident, shared = Path(f"/proc/{process}/statm").read_text().split()[:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")

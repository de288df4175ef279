"""A line for each group of tests as it ends, and a file of the groups that have passed, for `--resume`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.support.scheduler import file_of, group_of


class Groups:
    """A pytest plugin for the process that collects the reports; `passed` is the file."""

    def __init__(self, terminal: pytest.TerminalReporter, passed: Path) -> None:
        self._terminal, self._passed = terminal, passed
        self._waiting: Counter[str] = Counter()
        self._outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def expect(self, tests: Iterable[str]) -> None:
        """Note the tests of the run."""
        self._waiting = Counter(group_of(file_of(test)) for test in tests)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self.expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: Sequence[str]) -> None:
        self.expect(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        group = group_of(file_of(report.nodeid))
        self._seconds[group] += report.duration
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[group][report.outcome] += 1
        if report.when == "teardown":
            self._waiting[group] -= 1
            if self._waiting[group] == 0:
                self._end(group)

    def _end(self, group: str) -> None:
        outcomes = self._outcomes[group]
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        self._terminal.ensure_newline()
        self._terminal.write_line(f"group {group}: {counts}; {self._seconds[group]:.0f} s of tests")
        if not outcomes["failed"]:
            with self._passed.open("a", encoding="utf-8") as file:
                file.write(f"{group}\n")


def passed_groups(file: Path) -> frozenset[str]:
    """Return the groups that passed in the last run."""
    return frozenset(file.read_text(encoding="utf-8").split()) if file.exists() else frozenset()

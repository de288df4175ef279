"""Counts of the resources of each test: processes, labs, Hypothesis examples, bytes left on disk; and its times.

The counts reach the process that collects the reports as an attribute of each test's last report. `budgets.py` decides
by them; times decide nothing.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

P = ParamSpec("P")
R = TypeVar("R")

_STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})
_CASES = re.compile(r"(\d+) passing, (\d+) failing, and (\d+) invalid test cases")


class CostCounter:
    """A pytest plugin for each process that runs tests; `report.costs` of a test's teardown has what it used."""

    def __init__(self, temporary: Path) -> None:
        self.temporary = temporary
        self.processes = self.labs = 0
        self._before: dict[str, float] = {}
        sys.addaudithook(self._audit)
        self._count_labs()

    def _audit(self, event: str, _arguments: tuple[object, ...]) -> None:
        if event in _STARTS:
            self.processes += 1

    def _count_labs(self) -> None:
        from mininet_topos.lab import registry

        registry.claim = self._counted(registry.claim)

    def _counted(self, claim: Callable[P, R]) -> Callable[P, R]:
        @wraps(claim)
        def counted(*arguments: P.args, **options: P.kwargs) -> R:
            self.labs += 1
            return claim(*arguments, **options)

        return counted

    def _totals(self) -> dict[str, float]:
        return {
            "processes": self.processes,
            "labs": self.labs,
            "bytes_left": folder_size(self.temporary),
            "wall_s": time.monotonic(),
            "processor_s": _processor_seconds(),
        }

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._before = self._totals()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            after = self._totals()
            used = {name: after[name] - before for name, before in self._before.items()}
            report.costs = {**used, "examples": examples(getattr(item, "hypothesis_statistics", ""))}
        return report


class ModuleFolders:
    """A pytest plugin that removes what a module has made by `tmp_path_factory` when its last test has ended."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._failed = folder, False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        done = yield
        if nextitem is None or nextitem.path != item.path:
            if not self._failed and self._folder.is_dir():
                for left in self._folder.iterdir():
                    shutil.rmtree(left, ignore_errors=True)
            self._failed = False
        return done


def examples(statistics: str) -> int:
    """Return how many test cases Hypothesis ran, from its own statistics of one test."""
    return sum(int(count) for counts in _CASES.findall(statistics) for count in counts)


def folder_size(folder: Path) -> int:
    """Return the bytes that a folder occupies on its disk; files that vanish meanwhile count nothing."""
    size = 0
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    size += folder_size(Path(entry.path))
                else:
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
    return size


def _processor_seconds() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)

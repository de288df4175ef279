"""The test runner: one failure fails the run, without a retry."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest
from hypothesis import strategies
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.support import scheduler
from tests.support.budgets import BUDGETS, Usage, excesses
from tests.support.groups import Groups, passed_groups
from tests.support.levels import Level, draw_fewer_examples, level_of
from tests.support.needs import NEEDS

ROOT = Path(__file__).parents[2]

FAILS_ONCE = """
import pathlib

def test_fails_the_first_time():
    before = pathlib.Path(__file__).with_name("ran")
    again = before.exists()
    before.touch()
    assert again
"""

LEAVES_FILES = """
import pathlib
import tempfile
from tests.support.budgets import BUDGETS
from tests.support.levels import Level

object.__setattr__(BUDGETS[Level.TEST], "megabytes_left", 1)

def test_leaves_a_folder():
    pathlib.Path(tempfile.mkdtemp(), "large").write_bytes(bytes(3_000_000))
"""

LACKS_A_TOOL = """
import pytest

def test_needs_missing_tool():
    pytest.skip("needs a time machine")
"""

LACKS_A_MODULE = """
import pytest

pytest.importorskip("missing_time_machine")
"""


def run(folder: Path, test: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a throw-away test as `make test` runs ours: with our settings and our conftest, from our directory."""
    file = folder / "test_thrown_away.py"
    file.write_text(test)
    ours = ["-c", ROOT / "pyproject.toml", f"--rootdir={ROOT}", "-p", "tests.conftest"]
    command = [ROOT / "scripts" / "run-tests", "test", "-n", "0", "-o", f"cache_dir={folder / 'cache'}", *ours, file]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=200, env={**os.environ, **environment}
    )


def test_failed_test_is_not_retried(tmp_path: Path) -> None:
    done = run(tmp_path, FAILS_ONCE)
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout and "passed" not in done.stdout


@pytest.mark.parametrize(("test", "word"), [(LACKS_A_TOOL, "time machine"), (LACKS_A_MODULE, "missing_time_machine")])
def test_skipped_test_fails_where_every_test_must_run(tmp_path: Path, test: str, word: str) -> None:
    done = run(tmp_path, test, BLAST_RUN_EVERY_TEST="1")
    assert done.returncode not in {0, pytest.ExitCode.NO_TESTS_COLLECTED}, done.stdout
    assert "left out where every test must run" in done.stdout and word in done.stdout


def test_a_run_over_its_budget_fails_and_names_the_test(tmp_path: Path) -> None:
    done = run(tmp_path, LEAVES_FILES, TMPDIR=str(tmp_path))
    assert done.returncode == 1, done.stdout
    assert "megabytes left: 3, budget 1;" in done.stdout and "test_leaves_a_folder (3)" in done.stdout
    assert not list(tmp_path.glob("blast-*")), "the run's folder goes, whatever tests leave in it"


@pytest.mark.parametrize(
    ("file", "markers", "level"),
    [
        ("tests/algorithms/test_a.py", [], Level.TEST),
        ("tests/algorithms/test_a.py", ["test_all"], Level.ALL),
        ("tests/integration/test_a.py", ["lab"], Level.ALL),
        ("tests/integration/test_a.py", ["lab", "component"], Level.TEST),
        ("tests/integration/test_a.py", ["component", "spark"], Level.ALL),
    ],
)
def test_test_belongs_to_first_level_whose_set_up_suffices(file: str, markers: list[str], level: Level) -> None:
    assert level_of(file, markers) is level


class Sums(RuleBasedStateMachine):
    @rule()
    def add(self) -> None:
        pass


def test_the_level_test_draws_a_share_of_the_examples_once() -> None:
    @hypothesis.settings(max_examples=200)
    @hypothesis.given(strategies.integers())
    def drawn(number: int) -> None:
        pass

    Sums.TestCase.settings = hypothesis.settings(max_examples=12)
    items = [SimpleNamespace(obj=drawn), SimpleNamespace(obj=drawn), SimpleNamespace(obj=None, cls=Sums.TestCase)]
    draw_fewer_examples(items)  # type: ignore[arg-type]
    assert drawn._hypothesis_internal_use_settings.max_examples == 60
    assert Sums.TestCase.settings.max_examples == 10


def test_excesses_name_only_exceeded_budgets() -> None:
    usage = Usage()
    usage.add("test_small", {"processes": 1, "labs": 0, "examples": 10, "bytes_left": 0})
    assert excesses(usage, BUDGETS[Level.TEST]) == []
    usage.add("test_large", {"processes": 0, "labs": 0, "examples": 10**6, "bytes_left": -5})
    usage.record({"peak_processes": 601}, ("test_a", "test_b"))
    assert excesses(usage, BUDGETS[Level.TEST]) == [
        f"examples: 1,000,010, budget {BUDGETS[Level.TEST].examples:,}; "
        "most by test_large (1,000,000), test_small (10)",
        "peak processes: 601, budget 600, during test_a, test_b",
    ]


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive the needs of a file from its name."""
    monkeypatch.setattr(
        scheduler, "needs_of", lambda file: tuple(need.name for need in NEEDS if need.name in file.partition("_")[0])
    )


LABS = [f"tests/integration/lab_{number}" for number in range(3)]


@pytest.mark.usefixtures("modules")
def test_files_with_scarce_needs_start_first_within_their_limits() -> None:
    waiting = [*LABS, "tests/integration/spark_1", "tests/integration/plain"]
    assert scheduler.next_file(waiting, [], 4) == "tests/integration/spark_1"
    assert scheduler.next_file([*LABS, "tests/integration/plain"], LABS[:2], 8) == "tests/integration/plain"
    assert not scheduler.is_free("tests/integration/spark_2", ["tests/integration/spark_1"])


@pytest.mark.usefixtures("modules")
def test_half_of_the_workers_run_integration_tests() -> None:
    waiting = ["tests/integration/a", "tests/algorithms/b"]
    assert scheduler.next_file(waiting, ["tests/integration/c"], 4) == "tests/integration/a"
    assert scheduler.next_file(waiting, ["tests/integration/c", "tests/integration/d"], 4) == "tests/algorithms/b"


def test_a_module_declares_its_needs_by_markers(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text("pytestmark = [pytest.mark.spark, pytest.mark.lab]\n")
    assert scheduler.needs_of("test_it.py", tmp_path) == ("lab", "spark")


def report(test: str, when: str, outcome: str) -> pytest.TestReport:
    return pytest.TestReport(test, ("", 0, ""), {}, outcome, None, when, duration=1.0)  # type: ignore[arg-type]


def test_passed_group_is_skipped_when_run_continues(tmp_path: Path) -> None:
    lines: list[str] = []
    terminal = SimpleNamespace(ensure_newline=lambda: None, write_line=lines.append)
    groups = Groups(terminal, tmp_path / "passed")  # type: ignore[arg-type]
    tests = [
        "tests/algorithms/test_x.py::test_1",
        "tests/algorithms/test_x.py::test_2",
        "tests/tl1_driver/test_y.py::test_3",
    ]
    groups.expect(tests)
    for test, outcome in zip(tests, ("passed", "failed", "passed"), strict=True):
        groups.pytest_runtest_logreport(report(test, "call", outcome))
        groups.pytest_runtest_logreport(report(test, "teardown", "passed"))
    assert lines == ["group algorithms: 1 failed, 1 passed; 4 s of tests", "group tl1_driver: 1 passed; 2 s of tests"]
    assert passed_groups(tmp_path / "passed") == {"tl1_driver"}

"""How the tests are run: one failure fails the run, whatever would come of a second try."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.unsteady import MOST, faults

ROOT = Path(__file__).parents[2]

FAILS_ONCE = """
import pathlib

def test_fails_the_first_time():
    before = pathlib.Path(__file__).with_name("ran")
    again = before.exists()
    before.touch()
    assert again
"""

UNSTEADY = """
import pytest

@pytest.mark.unsteady("the moon is full")
def test_fails():
    assert False
"""


MANY_UNSTEADY = f"""
import pytest

@pytest.mark.unsteady("the moon is full")
@pytest.mark.parametrize("number", range({MOST + 1}))
def test_fails(number):
    assert False
"""


LACKS_A_TOOL = """
import pytest

def test_needs_what_nobody_has():
    pytest.skip("needs a time machine")
"""


LACKS_A_MODULE = """
import pytest

pytest.importorskip("time_machine_of_nobody")
"""


def run(folder: Path, test: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a throw-away test as `make test` runs ours: with our settings and our conftest, from our directory."""
    file = folder / "test_thrown_away.py"
    file.write_text(test)
    ours = ["-c", ROOT / "pyproject.toml", f"--rootdir={ROOT}", "-p", "tests.conftest"]
    command = [ROOT / "scripts" / "run-tests", "-n", "0", "-o", f"cache_dir={folder / 'cache'}", *ours, file]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=200, env={**os.environ, **environment}
    )


def test_a_test_that_fails_once_has_failed(tmp_path: Path) -> None:
    done = run(tmp_path, FAILS_ONCE)
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout and "passed" not in done.stdout


@pytest.mark.parametrize(("test", "word"), [(LACKS_A_TOOL, "time machine"), (LACKS_A_MODULE, "time_machine_of_nobody")])
def test_what_is_left_out_where_every_test_must_run_has_failed(tmp_path: Path, test: str, word: str) -> None:
    done = run(tmp_path, test, BLAST_RUN_EVERY_TEST="1")
    assert done.returncode not in {0, pytest.ExitCode.NO_TESTS_COLLECTED}, done.stdout
    assert "left out where every test must run" in done.stdout and word in done.stdout


def test_an_unsteady_test_fails_the_run_and_says_what_it_is_known_for(tmp_path: Path) -> None:
    done = run(tmp_path, UNSTEADY)
    assert done.returncode == 1, done.stdout
    assert "the moon is full" in done.stdout


def test_too_many_marks_end_the_run_before_it_begins(tmp_path: Path) -> None:
    done = run(tmp_path, MANY_UNSTEADY)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert f"{MOST + 1} tests are marked unsteady, at most {MOST} may be" in done.stderr


@pytest.mark.parametrize(
    "file",
    [
        "tests/property/test_scheduling.py",
        "tests/unit/test_access.py",
        "tests/unit/test_store_disk.py",
        "tests/unit/test_agent_authentication.py",
        "tests/integration/test_secure_controller.py",
        "tests/integration/test_transport_refusals.py",
        "tests/integration/test_openflow_tls.py",
        "tests/fuzz/test_tl1_fuzz.py",
    ],
)
def test_what_watches_over_the_rest_may_not_be_unsteady(file: str) -> None:
    (fault,) = faults({f"{file}::test_it": "the machine is slow"})
    assert "must be steady" in fault


def test_a_mark_needs_a_reason_and_five_are_enough() -> None:
    few = {f"tests/unit/test_plan.py::test_{n}": "slow" for n in range(MOST)}
    assert faults(few) == []
    assert faults({**few, "tests/unit/test_plan.py::test_more": "slow"}) == [
        f"{MOST + 1} tests are marked unsteady, at most {MOST} may be"
    ]
    assert faults({"tests/unit/test_plan.py::test_it": " "}) == [
        "tests/unit/test_plan.py::test_it is marked unsteady without a reason"
    ]

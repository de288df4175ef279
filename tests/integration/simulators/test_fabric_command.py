"""`blast sim fabric` in a process of its own: with the real simulator, and ended in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from blast_sim.base.scenario_file import find_in
from blast_sim.fabric.scenario import HERE
from blast_sim.fabric.simulator import VARIABLE
from tests.blast_sim.fabric.test_fabric_command import SMALL
from tests.support.interrupted import TIMEOUT, ended, members, started
from tests.support.simulators.fake_rack_fabric import write_fake
from tests.support.simulators.results import results_of
from tests.support.waiting import eventually


def blast(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "blast_client.cli.command", "sim", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)


@pytest.mark.rust
def test_scenario_run_is_reproducible_and_errors_name_their_line(tmp_path: Path) -> None:
    words = ("fabric", "one-leaf", "--set", "duration_ns=100000", "--seeds", "1-2", "--json")
    first = blast(*words)
    assert first.returncode == 0, first.stderr
    results = results_of(first.stdout)
    assert results_of(blast(*words).stdout) == results
    cells = results["cells"]
    assert [cell["results"]["seed"] for cell in cells] == [1, 2]
    for cell in cells:
        (flow,) = cell["results"]["flows"]
        assert len(flow["destinations"]) == 8 and all(one["copies"] > 0 for one in flow["destinations"])
        assert cell["results"]["delivered_copies"] >= sum(one["copies"] for one in flow["destinations"])
    result = tmp_path / "result.json"
    result.write_text(first.stdout)
    rerun = blast("rerun", str(result))
    assert rerun.returncode == 0 and rerun.stdout.splitlines()[-1] == "2 results: 2 identical", rerun.stdout
    path = tmp_path / "mine.toml"
    path.write_text(find_in(HERE, "one-leaf").text.replace("leaves = 5", "leafs = 5"))
    rejected = blast("fabric", str(path))
    assert (rejected.returncode, rejected.stdout, rejected.stderr.count("\n")) == (2, "", 1)
    assert rejected.stderr.startswith(f"blast: {path}:9: "), rejected.stderr


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the arguments of a command that takes ten minutes."""
    monkeypatch.setenv(VARIABLE, str(write_fake(tmp_path)))
    path = tmp_path / "mine.toml"
    path.write_text(SMALL + f"seconds = 600\nlog = {str(tmp_path / 'log')!r}\n")
    return ["sim", "fabric", str(path)]


def running(tmp_path: Path, count: int) -> list[int]:
    def begun() -> list[int]:
        log = tmp_path / "log"
        numbers = [int(number) for number in log.read_text().split()] if log.exists() else []
        return numbers if len(numbers) == count else []

    return eventually(begun, f"{count} runs", TIMEOUT)


@pytest.mark.parametrize(("number", "cells"), [(signal.SIGINT, 3), (signal.SIGTERM, 1), (signal.SIGKILL, 3)])
def test_signal_ends_all_simulator_processes(slow: list[str], tmp_path: Path, number: int, cells: int) -> None:
    """Also when the signal reaches it alone, and not its whole group as from a terminal."""
    many = ["--sweep", "seed=1,2,3", "--processes", "3", "--keep", str(tmp_path / "kept")] if cells > 1 else []
    with started(*slow, *many) as process:
        running(tmp_path, cells)
        process.send_signal(number)
        process.wait(TIMEOUT)
        eventually(lambda: not members(process.pid), "all to end")
        assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert cells == 1 or list((tmp_path / "kept").iterdir()) == []


def test_interrupt_leaves_no_trace_file(slow: list[str], tmp_path: Path) -> None:
    with started(*slow, "--trace", str(tmp_path / "events.bin")) as process:
        running(tmp_path, 1)
        eventually(lambda: list(tmp_path.glob("events.bin*")), "an unfinished trace")
        assert ended(process) == (130, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "mine.toml", "rack-fabric"]


def test_killed_sweep_resumes_from_kept_results(slow: list[str], tmp_path: Path) -> None:
    keep = ["--keep", str(tmp_path / "kept")]
    with started(*slow, *keep, "--sweep", "fake.seconds=0,600", "--processes", "2") as process:
        eventually(lambda: list((tmp_path / "kept").glob("*.json")), "a result", TIMEOUT)
        running(tmp_path, 2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(TIMEOUT)
    resumed = blast(*slow[1:], *keep, "--sweep", "fake.seconds=0", "--json")
    assert resumed.returncode == 0 and len(json.loads(resumed.stdout)["cells"]) == 1
    assert len((tmp_path / "log").read_text().split()) == 2

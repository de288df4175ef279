"""`blast sim … --scheduler`: the same commands on a Dask cluster, processes and all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blast_sim.fabric.simulator import VARIABLE
from tests.blast_sim.fabric import test_fabric_command
from tests.blast_sim.flow.test_flow_scenarios import SMALL
from tests.support.simulators.fake_rack_fabric import write_fake
from tests.support.simulators.plugin_modules import CONTENDED, METHOD, NARROWEST, POLICY, WIDEST
from tests.support.simulators.results import results_of
from tests.support.waiting import eventually

pytestmark = pytest.mark.distributed

# Without the compiled solver processes are ready sooner; and what they compute must not depend on where they run.
ENVIRONMENT = {**os.environ, "BLAST_FAIR_SOLVER": "numpy"}
TIMEOUT = 200.0


@contextmanager
def started(log: Path, *command: str) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], stdout=output, stderr=subprocess.STDOUT, env=ENVIRONMENT, cwd=log.parent
        )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def logged(log: Path, pattern: str) -> str:
    """Return the first group of `pattern` once the log of a process matches it."""
    return eventually(lambda: re.search(pattern, log.read_text()), f"{pattern} in {log.name}", TIMEOUT)[1]


@pytest.fixture(scope="module")
def scheduler(workers_folder: Path) -> Iterator[str]:
    """Yield the address of a scheduler with two workers, each on a port of its own, which find a fake simulator."""
    tmp_path = workers_folder
    ENVIRONMENT[VARIABLE] = str(write_fake(tmp_path))
    alone = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0", "--no-show")
    log, worker_log = tmp_path / "scheduler.log", tmp_path / "worker.log"
    with started(log, "distributed.cli.dask_scheduler", "--port", "0", *alone):
        address = logged(log, r"Scheduler at:\s+(tcp://\S+)")
        options = ("--nworkers", "1", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        worker = ("distributed.cli.dask_worker", address, *options)
        other_log = tmp_path / "other_worker.log"
        with started(worker_log, *worker), started(other_log, *worker):
            logged(worker_log, r"(Registered to)")
            logged(other_log, r"(Registered to)")
            yield address


@pytest.fixture(scope="module")
def workers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which the workers run and look for modules."""
    return tmp_path_factory.mktemp("workers")


def sim(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "blast_client.cli.command", "sim", *arguments, "--json"]
    return subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT, timeout=TIMEOUT, check=False, cwd=cwd
    )


@pytest.mark.parametrize(
    ("command", "scenario", "options", "cells"),
    [
        ("flow", SMALL, ("--compute", "1"), 8),
        ("fabric", test_fabric_command.SMALL, ("--sweep", "flows.0.rate_gbps=10,20"), 4),
    ],
)
def test_cluster_and_local_run_have_equal_results(
    scheduler: str, tmp_path: Path, command: str, scenario: str, options: tuple[str, ...], cells: int
) -> None:
    (tmp_path / "mine.toml").write_text(scenario)
    words = (command, str(tmp_path / "mine.toml"), *options, "--seeds", "0-1")
    there = sim(*words, "--scheduler", scheduler, "--keep", str(tmp_path / "kept"))
    here = sim(*words, "--processes", "1")
    assert there.returncode == here.returncode == 0, there.stderr + here.stderr
    assert len(json.loads(there.stdout)["cells"]) == cells
    assert results_of(there.stdout) == results_of(here.stdout)
    assert len(list((tmp_path / "kept").glob("*.json"))) == cells


def write_plugins(folder: Path, key: str = NARROWEST) -> None:
    """Write a module with a policy, which sorts by `key`, and a method."""
    (folder / "outside.py").write_text(POLICY.format(key=key) + METHOD.format(factor=2) + PROCESSES)


PROCESSES = """

from os import getpid
from pathlib import Path

Path(__file__).with_name(f"process_{getpid()}").touch()
"""


def test_policy_and_method_outside_the_package_run_on_two_workers(
    scheduler: str, workers_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(CONTENDED.replace('methods = ["blast"]', 'methods = ["naive", "blast"]'))
    words = ("flow", "mine.toml", "--compute", "1", "--seeds", "0-7")
    words += ("--method", "naive,blast,outside:mine", "--policy", "paper,outside:Mine")
    for folder in (workers_folder, tmp_path):
        write_plugins(folder)
    there = sim(*words, "--scheduler", scheduler, "--keep", "kept", cwd=tmp_path)
    here = sim(*words, "--processes", "1", cwd=tmp_path)
    assert there.returncode == here.returncode == 0, there.stderr + here.stderr
    assert results_of(there.stdout) == results_of(here.stdout)
    assert len(list(workers_folder.glob("process_*"))) == 2
    rows = results_of(there.stdout)["cells"]
    assert len(rows) == 4 * 8 and {row["method"] for row in rows} == {"naive", "blast", "outside:mine"}
    for seed in range(8):
        of_seed = {(row["method"], row["policy"]): row["seconds"] for row in rows if row["seed"] == seed}
        assert of_seed["outside:mine", ""] == pytest.approx(2 * of_seed["naive", ""])
    plugins = json.loads(there.stdout)["provenance"]["plugins"]
    assert [(one["kind"], one["name"]) for one in plugins] == [("policy", "outside:Mine"), ("method", "outside:mine")]


def test_run_fails_if_worker_lacks_plugin(scheduler: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CONTENDED)
    (tmp_path / "elsewhere.py").write_text(POLICY.format(key=NARROWEST))
    words = ("flow", "mine.toml", "--policy", "elsewhere:Mine", "--scheduler", scheduler)
    ended = sim(*words, cwd=tmp_path)
    assert ended.returncode == 1
    assert "a worker lacks a plug-in of the command" in ended.stderr


def test_worker_rejects_plugin_with_different_source(scheduler: str, workers_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CONTENDED)
    write_plugins(workers_folder)
    write_plugins(tmp_path, WIDEST)
    words = ("flow", "mine.toml", "--policy", "outside:Mine", "--scheduler", scheduler)
    ended = sim(*words, cwd=tmp_path)
    assert ended.returncode == 1
    assert "the policy 'outside:Mine' of this worker differs from that of the command" in ended.stderr

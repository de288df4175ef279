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
from tests.support.fake_rack_fabric import write_fake
from tests.support.waiting import eventually
from tests.unit import test_fabric_command
from tests.unit.test_flow_scenarios import SMALL

pytest.importorskip("distributed")

# Without the compiled solver processes are ready sooner; and what they compute must not depend on where they run.
ENVIRONMENT = {**os.environ, "BLAST_FAIR_SOLVER": "numpy"}
PATIENCE = 60.0


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


def said(log: Path, pattern: str) -> str:
    """What a process says by and by."""
    return eventually(lambda: re.search(pattern, log.read_text()), f"{pattern} in {log.name}", PATIENCE)[1]


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """A scheduler with one worker, on ports of their own."""
    alone = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0", "--no-show")
    log, worker_log = tmp_path / "scheduler.log", tmp_path / "worker.log"
    with started(log, "distributed.cli.dask_scheduler", "--port", "0", *alone):
        address = said(log, r"Scheduler at:\s+(tcp://\S+)")
        options = ("--nworkers", "1", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        with started(worker_log, "distributed.cli.dask_worker", address, *options):
            said(worker_log, r"(Registered to)")
            yield address


def sim(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "blast_client.command", "sim", *arguments, "--json"]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=PATIENCE, check=False)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A scenario of the rack fabric for a program that stands for its simulator."""
    monkeypatch.setitem(ENVIRONMENT, VARIABLE, str(write_fake(tmp_path)))
    path = tmp_path / "fabric.toml"
    path.write_text(test_fabric_command.SMALL)
    return str(path)


def test_a_cluster_gives_what_this_machine_gives(scheduler: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SMALL)
    arguments = (str(path), "--compute", "1", "--seeds", "0-2")
    there = sim("flow", *arguments, "--scheduler", scheduler, "--keep", str(tmp_path / "kept"))
    here = sim("flow", *arguments, "--processes", "1")
    assert there.returncode == here.returncode == 0, there.stderr + here.stderr
    assert len(json.loads(there.stdout)["cells"]) == 12
    assert there.stdout == here.stdout
    assert len(list((tmp_path / "kept").glob("*.json"))) == 12


def test_a_cluster_runs_the_rack_fabric(fake: str, scheduler: str, tmp_path: Path) -> None:
    arguments = ("fabric", fake, "--sweep", "flows.0.rate_gbps=10,20", "--seeds", "0-2")
    there = sim(*arguments, "--scheduler", scheduler, "--keep", str(tmp_path / "kept"))
    here = sim(*arguments)
    assert there.returncode == here.returncode == 0, there.stderr + here.stderr
    assert len(json.loads(there.stdout)["cells"]) == 6
    assert there.stdout == here.stdout
    assert len(list((tmp_path / "kept").glob("*.json"))) == 6

"""`blast sim … --scheduler`: the same commands on a Dask cluster, processes and all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from blast_sim.fabric.simulator import VARIABLE
from tests.support.fake_rack_fabric import write_fake
from tests.support.waiting import eventually
from tests.unit import test_fabric_command
from tests.unit.test_flow_scenarios import SMALL

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="needs distributed: scripts/setup all")

# Without the compiled solver processes are ready sooner; and what they compute must not depend on where they run.
ENVIRONMENT = {**os.environ, "BLAST_FAIR_SOLVER": "numpy"}
PATIENCE = 200.0


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


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler with one worker, on ports of their own, which find the program that stands for the simulator."""
    tmp_path = tmp_path_factory.mktemp("cluster")
    ENVIRONMENT[VARIABLE] = str(write_fake(tmp_path))
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


@pytest.mark.parametrize(
    ("command", "scenario", "options", "cells"),
    [
        ("flow", SMALL, ("--compute", "1"), 8),
        ("fabric", test_fabric_command.SMALL, ("--sweep", "flows.0.rate_gbps=10,20"), 4),
    ],
)
def test_a_cluster_gives_what_this_machine_gives(
    scheduler: str, tmp_path: Path, command: str, scenario: str, options: tuple[str, ...], cells: int
) -> None:
    (tmp_path / "mine.toml").write_text(scenario)
    words = (command, str(tmp_path / "mine.toml"), *options, "--seeds", "0-1")
    there = sim(*words, "--scheduler", scheduler, "--keep", str(tmp_path / "kept"))
    here = sim(*words, "--processes", "1")
    assert there.returncode == here.returncode == 0, there.stderr + here.stderr
    assert len(json.loads(there.stdout)["cells"]) == cells
    assert there.stdout == here.stdout
    assert len(list((tmp_path / "kept").glob("*.json"))) == cells

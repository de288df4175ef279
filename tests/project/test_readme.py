"""The programs of README and first-application.md run against a real controller with emulated devices."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blast_client.api.address import DEFAULT_ADDRESS
from blast_controller.core.model.part_states import PartState
from tests.support.controller.core import make_fabric
from tests.support.controller.memory_controller import serving
from tests.support.controller.runtime import Running, running
from tests.support.transport.transport_hosts import agent

README = Path(__file__).parents[2] / "README.md"
GUIDE = README.parent / "docs" / "tutorials" / "first-application.md"


def programs(text: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


PROGRAMS = [program for program in programs(README) if "broadcast" not in program]
ROUND_TRIPS = [program for program in programs(README) if "broadcast" in program]
DIALOGUES = [program for program in programs(GUIDE) if "AsyncClient" in program]


@pytest.fixture
def lab() -> Iterator[tuple[Running, str]]:
    """Yield a controller of three racks with two hosts each, r1h1 to r3h2, and its address."""
    with running(make_fabric(3, [4])) as lab, serving(lab.make_handler()) as (_, host, port):
        yield lab, f"{host}:{port}"


def run(program: str, address: str) -> subprocess.CompletedProcess[str]:
    assert DEFAULT_ADDRESS in program
    words = [sys.executable, "-c", program.replace(DEFAULT_ADDRESS, address)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def test_there_is_a_program():
    assert (len(PROGRAMS), len(ROUND_TRIPS), len(DIALOGUES)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        *((program, r"send UDP to 239\.\d+\.\d+\.\d+:\d+, at most \d+ bit/s\n") for program in PROGRAMS),
        *((program, r"part 0: from byte 0 to 239\.\d+\.\d+\.\d+, \d+ ms\n") for program in DIALOGUES),
    ],
    ids=["README", "application guide"],
)
def test_program_runs_and_finishes_its_request(lab, program, printed):
    running_lab, address = lab
    done = run(program, address)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(printed, done.stdout)
    (request,) = running_lab.look().requests.values()
    assert request.state is PartState.DONE
    assert running_lab.look().active_count == 0


@pytest.mark.parametrize("program", PROGRAMS)
def test_failing_program_withdraws_its_request(lab, program):
    running_lab, address = lab
    done = run(re.sub(r"^( +)print\(.*$", r"\1raise SystemExit(7)", program, flags=re.MULTILINE), address)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    (request,) = running_lab.look().requests.values()
    assert request.state is PartState.WITHDRAWN


@pytest.mark.parametrize("program", ROUND_TRIPS)
def test_an_array_is_at_every_host_after_three_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    weights = np.arange(1000.0)
    hosts = ["r2h1", "r3h1"]
    with ExitStack() as stack:
        agents = [stack.enter_context(agent(tmp_path / host)) for host in hosts]
        monkeypatch.setenv("BLAST_CONTROLLER", "")
        for one in agents:
            monkeypatch.setenv("BLAST_FOLDER", str(one.directory))
            to = [f"{name}={address}:{port}" for name, address, port in (each.address for each in agents)]
            names: dict[str, Any] = {"weights": weights}
            exec(program.replace(json.dumps(hosts), json.dumps(to)), names)
            assert isinstance(names["weights"], np.memmap)
            assert (names["weights"] == weights).all()

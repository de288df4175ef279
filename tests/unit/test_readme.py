"""The programs that the README shows do what it says, on a real controller whose devices are played."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from blast_client.address import DEFAULT_ADDRESS
from blast_controller.core.part_states import PartState
from blast_controller.rpc.access import OPEN_POLICY
from blast_controller.rpc.gate import Gate
from blast_controller.rpc.handler import BlastHandler
from tests.support.core import make_fabric
from tests.support.memory_controller import serving
from tests.support.runtime import Running, running

README = Path(__file__).parents[2] / "README.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def lab() -> Iterator[tuple[Running, str]]:
    """A controller of three racks with two hosts each, r1h1 to r3h2, and its address."""
    with running(make_fabric(3, [4])) as lab:
        handler = BlastHandler(lab.runtime, "os-ken", lambda after, limit: (), Gate(OPEN_POLICY))
        with serving(handler) as (_, host, port):
            yield lab, f"{host}:{port}"


def run(program: str, address: str) -> subprocess.CompletedProcess[str]:
    assert DEFAULT_ADDRESS in program
    words = [sys.executable, "-c", program.replace(DEFAULT_ADDRESS, address)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def test_there_is_a_program():
    assert len(PROGRAMS) == 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs_and_gives_its_light_back(lab, program):
    running_lab, address = lab
    done = run(program, address)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"send UDP to 239\.\d+\.\d+\.\d+:\d+, at most \d+ bit/s\n", done.stdout)
    (request,) = running_lab.look().requests.values()
    assert request.state is PartState.DONE and request.current.bytes == 300_000_000
    assert running_lab.look().active_count == 0


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_fails_in_the_middle_gives_its_light_back_too(lab, program):
    running_lab, address = lab
    done = run(re.sub(r"^( +)print\(.*$", r"\1raise SystemExit(7)", program, flags=re.MULTILINE), address)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    (request,) = running_lab.look().requests.values()
    assert request.state is PartState.WITHDRAWN

"""The crate of the rack fabric: its own tests with debug assertions, and results that must stay as they are."""

from __future__ import annotations

import subprocess
from functools import reduce
from pathlib import Path

import pytest

from blast_sim.fabric.replication import measured, row_of, scenario
from blast_sim.fabric.simulator import Simulator, program

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT = 1200

pytestmark = pytest.mark.rust


@pytest.mark.timeout(TIMEOUT + 60)
def test_crate_passes_its_own_tests() -> None:
    command = [str(ROOT / "scripts" / "cargo"), "test", "--workspace", "--locked", "--offline", "--quiet"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert ended.returncode == 0, f"{ended.stdout[-8000:]}\n{ended.stderr[-4000:]}"


def test_release_build_output_has_expected_digest() -> None:
    folder = ROOT / "rack_fabric" / "tests"
    command = [str(program()), "run", str(folder / "repeated.json")]
    output = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.rstrip(b"\n")
    found = reduce(lambda digest, byte: (digest ^ byte) * 0x100000001B3 % 2**64, output, 0xCBF29CE484222325)
    assert f"{found:016x}" == (folder / "repeated.digest").read_text().strip()


@pytest.mark.parametrize("lossless", [False, True])
def test_simulator_reproduces_first_replication_rate(lossless: bool) -> None:
    """The flow-level simulator uses these rates."""
    found = row_of(1, Simulator(program()).run(scenario(1, lossless)))
    kept = measured(lossless)[0]
    assert (found["share"], found["delay_ns"]) == (kept.share, pytest.approx(kept.seconds * 1e9))

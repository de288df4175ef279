"""The crate of the rack fabric: its own tests with debug assertions, and results that must stay as they are."""

from __future__ import annotations

import subprocess
from functools import reduce
from pathlib import Path

import pytest

from blast_sim.fabric.replication import measured, row_of, scenario
from blast_sim.fabric.simulator import Simulator, program

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 1200

pytestmark = pytest.mark.rust


@pytest.mark.timeout(PATIENCE + 60)
def test_the_tests_of_the_crate() -> None:
    command = [str(ROOT / "scripts" / "cargo"), "test", "--workspace", "--locked", "--offline", "--quiet"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, f"{ended.stdout[-8000:]}\n{ended.stderr[-4000:]}"


def test_the_release_build_gives_the_bytes_that_the_crates_tests_expect_of_the_debug_build() -> None:
    folder = ROOT / "rack_fabric" / "tests"
    command = [str(program()), "run", str(folder / "repeated.json")]
    told = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.rstrip(b"\n")
    found = reduce(lambda digest, byte: (digest ^ byte) * 0x100000001B3 % 2**64, told, 0xCBF29CE484222325)
    assert f"{found:016x}" == (folder / "repeated.digest").read_text().strip()


@pytest.mark.parametrize("lossless", [False, True])
def test_the_first_row_of_the_rates_of_replication_is_found_again(lossless: bool) -> None:
    """Those that the flow-level simulator uses."""
    found = row_of(1, Simulator(program()).run(scenario(1, lossless)))
    kept = measured(lossless)[0]
    assert (found["share"], found["delay_ns"]) == (kept.share, pytest.approx(kept.seconds * 1e9))

"""The crate's own tests, with debug assertions and overflow checks; set-up for the long tests has compiled them."""

from __future__ import annotations

import subprocess
from functools import reduce
from pathlib import Path

import pytest

from blast_sim.fabric.simulator import program

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 1200


@pytest.mark.rust
@pytest.mark.test_all
@pytest.mark.timeout(PATIENCE + 60)
def test_the_tests_of_the_crate() -> None:
    command = [str(ROOT / "scripts" / "cargo"), "test", "--workspace", "--locked", "--offline", "--quiet"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, f"{ended.stdout[-8000:]}\n{ended.stderr[-4000:]}"


@pytest.mark.rust
def test_the_release_build_gives_the_bytes_that_the_crates_tests_expect_of_the_debug_build() -> None:
    folder = ROOT / "rack_fabric" / "tests"
    command = [str(program()), "run", str(folder / "repeated.json")]
    told = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.rstrip(b"\n")
    found = reduce(lambda digest, byte: (digest ^ byte) * 0x100000001B3 % 2**64, told, 0xCBF29CE484222325)
    assert f"{found:016x}" == (folder / "repeated.digest").read_text().strip()

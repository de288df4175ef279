"""The crate's own tests, with debug assertions and overflow checks; set-up has compiled them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 1200


@pytest.mark.rust
@pytest.mark.timeout(PATIENCE + 60)
def test_the_tests_of_the_crate() -> None:
    command = [str(ROOT / "scripts" / "cargo"), "test", "--workspace", "--locked", "--offline", "--quiet"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, f"{ended.stdout[-8000:]}\n{ended.stderr[-4000:]}"

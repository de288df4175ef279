"""What anybody may send by light, ten million times, against the compiled engine with all of its assertions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 1200


@pytest.mark.rust
@pytest.mark.long
@pytest.mark.timeout(PATIENCE + 60)
def test_nothing_that_comes_by_light_makes_the_engine_panic() -> None:
    cargo = [str(ROOT / "scripts" / "cargo"), "test", "--profile", "checked", "-p", "blast_engine", "--lib"]
    command = [*cargo, "--locked", "--offline", "--", "--ignored", "whatever_comes"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, f"{ended.stdout[-8000:]}\n{ended.stderr[-4000:]}"
    assert "test result: ok. 1 passed" in ended.stdout

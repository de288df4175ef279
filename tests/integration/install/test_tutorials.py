"""The tutorials hold: every command succeeds and prints what the page shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("page", ["quickstart", "first-application"])
def test_tutorial_commands_print_documented_output(page: str) -> None:
    command = [sys.executable, "scripts/run-pages", "--offline", f"docs/tutorials/{page}.md"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

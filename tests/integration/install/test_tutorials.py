"""The tutorials and the guide to drivers hold: every command succeeds and prints the output of its page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("page", ["tutorials/quickstart", "tutorials/first-application", "how-to/switch-drivers"])
def test_commands_of_a_page_print_documented_output(page: str) -> None:
    command = [sys.executable, "scripts/run-pages", "--offline", f"docs/{page}.md"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

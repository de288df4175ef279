"""The Debian packages and the guides' ways of installing, on a bare Debian 12: tests/support/bare_installation.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
STEPS = 10
pytestmark = [pytest.mark.bare, pytest.mark.test_all, pytest.mark.timeout(3600)]


def test_packages_install_upgrade_and_remove_on_bare_debian() -> None:
    """Of the last commit, as bare-debian takes it."""
    words = ["scripts/bare-debian", "python3", "-m", "tests.support.bare_installation"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    passed = [line for line in done.stdout.splitlines() if line.startswith("held: ")]
    assert (done.returncode, len(passed)) == (0, STEPS), f"{done.stdout}{done.stderr[-4000:]}"

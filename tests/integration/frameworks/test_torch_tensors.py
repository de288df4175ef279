"""Tensors of a real PyTorch, played by the system's Python, which has Debian's: ours has none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SYSTEM_PYTHON = "/usr/bin/python3"

pytestmark = [pytest.mark.torch, pytest.mark.test_all]


def test_received_tensors_equal_sent_tensors() -> None:
    words = [SYSTEM_PYTHON, "-W", "error::UserWarning", "-m", "tests.support.transport.torch_tensors"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(done.stdout)) == 8

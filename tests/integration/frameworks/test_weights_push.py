"""The benchmark of pushed weights, small: over granted optical transport and along a pipeline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "transfers" / "weights_push.py"


def test_weights_are_pushed_and_checked():
    words = ["--ways", "light,pipeline", "--megabytes", "4", "--workers", "2", "--repeats", "1", "--discard", "0"]
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), *words, "--rate-mbps", "100", "--json"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = {row["way"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows.keys() == {"light", "pipeline"}
    for row in rows.values():
        assert not row["failures"]
        assert 1.0 <= row["uplink_copies"] < 1.5
        # One copy on a link, less what the shaper lets through at once.
        assert row["seconds"] > (4_000_000 - 300_000) * 8 / 100e6

"""A sweep whose process is killed goes on where it was, when the same command is given again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import eventually
from tests.unit.test_flow_scenarios import SMALL

SEEDS = 40
PATIENCE = 60.0


def test_a_killed_sweep_goes_on(tmp_path: Path) -> None:
    path, kept = tmp_path / "mine.toml", tmp_path / "kept"
    path.write_text(SMALL)
    environment = {**os.environ, "BLAST_FAIR_SOLVER": "numpy"}
    flow = [sys.executable, "-m", "blast_client.command", "sim", "flow", str(path), "--seeds", f"0-{SEEDS - 1}"]
    flow += ["--compute", "1", "--json", "--processes", "1"]

    with subprocess.Popen([*flow, "--keep", str(kept)], env=environment, stdout=subprocess.DEVNULL) as first:
        eventually(lambda: kept.is_dir() and len(list(kept.glob("*.json"))) >= 3, "three results", PATIENCE)
        first.kill()
    before = {file.name: file.stat().st_mtime_ns for file in kept.glob("*.json")}
    assert 3 <= len(before) < 4 * SEEDS, "it was over before it was killed"

    again = subprocess.run([*flow, "--keep", str(kept)], env=environment, capture_output=True, text=True, check=True)
    whole = subprocess.run(flow, env=environment, capture_output=True, text=True, check=True)
    assert again.stdout == whole.stdout and len(json.loads(again.stdout)["cells"]) == 4 * SEEDS
    after = {file.name: file.stat().st_mtime_ns for file in kept.glob("*.json")}
    assert len(after) == 4 * SEEDS and before.items() <= after.items()

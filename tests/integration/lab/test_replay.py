"""A small trace replayed in the lab: the simulator's format, data intact."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.support.waiting import HANGING

pytestmark = pytest.mark.lab

BLAST = str(Path(sysconfig.get_path("scripts")) / "blast")
TRACE = """\
12 5
1 0 1 0 2 1:200 2:100
2 100 2 3 11 2 4:300 9:50
3 150 1 5 1 9:10
4 300 1 0 4 4:400 5:1 6:1 7:1
5 900 1 6 2 9:100 3:100
"""
"""Folded onto four racks, coflow 3 is within rack 1."""


def test_lab_replays_trace_with_intact_data(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text(TRACE)
    command = [BLAST, "lab", "replay", str(trace), "--racks", "4", "--volume", "maximum", "--scale", "250", "--json"]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=4 * HANGING)
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert (report["format"], report["made_by"], report["intact"]) == (1, "lab", 4)
    assert report["rules"]["within_a_rack"] == 1
    (row,) = report["policies"]
    assert (row["policy"], row["multicasts"], row["without_light"]) == ("srpt-lease", 4, 0)
    assert [one["name"] for one in row["completions"]] == ["1", "2", "4", "5"]
    for one in row["completions"]:
        assert one["seconds"] > one["bytes"] * 8 / 40e6
        assert 0 < one["compute_seconds"] < one["seconds"]
    assert row["mean_slowdown"] > 1

"""The rates of replication that the flow-level simulator uses are those that the rack fabric's simulator finds."""

from __future__ import annotations

import json
import subprocess

import pytest

from blast_sim.fabric.replication import measured, row_of, scenario
from blast_sim.fabric.simulator import program


@pytest.mark.rust
@pytest.mark.parametrize("lossless", [False, True])
def test_the_first_row_is_found_again(lossless: bool) -> None:
    text = json.dumps(scenario(1, lossless))
    told = subprocess.run([str(program()), "run", "-"], input=text, capture_output=True, text=True, check=True).stdout
    found, kept = row_of(1, json.loads(told)), measured(lossless)[0]
    assert (found["share"], found["delay_ns"]) == (kept.share, pytest.approx(kept.seconds * 1e9))

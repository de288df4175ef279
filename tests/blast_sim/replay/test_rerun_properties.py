"""Simulated results of random scenarios, computed again from their files alone: the same to the last bit."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from blast_client.cli.command import main
from blast_sim.fabric.simulator import VARIABLE
from blast_sim.traces.coflow_file import written
from blast_sim.traces.synthetic import synthetic
from tests.blast_sim.fabric import test_fabric_command
from tests.support.simulators.fake_rack_fabric import write_fake

FLOW = """\
title = "Random"

[network]
racks = {racks}
servers_per_rack = {servers}
uplink_gbps = {{ thin = {uplink} }}

[background]
racks_per_direction = {{ none = 0, some = 1 }}

[light]
splitters = {splitters}
fan_out = 4
may_pause = {may_pause}
may_split = {may_pause}

{workload}
[[run]]
methods = {methods}
networks = ["thin"]
backgrounds = ["none", "some"]
policies = ["paper", "srpt-lease"]
"""
MULTICASTS = """\
[multicasts]
groups = {groups}
racks_per_group = [2, 4]
disjoint = false
megabytes = {megabytes}
size_spread = {spread}
arrivals_per_second = {arrivals}
"""
JOBS = """\
[[jobs]]
name = "train"
count = 2
racks = 2
iterations = 3
megabytes = {megabytes}
compute_s = 0.2
shuffle_mb = 10.0
shuffle_peers = 1
aggregation_mb = 20.0
"""
METHODS = ("naive", "hdfs", "overlay", "pipeline", "trees", "torrent", "ip-multicast", "blast")


def flow_words(dice: random.Random, folder: Path) -> list[str]:
    workload = MULTICASTS if dice.random() < 0.7 else JOBS
    scenario = FLOW.format(
        racks=dice.randint(6, 12),
        servers=dice.randint(2, 4),
        uplink=dice.choice([4.0, 10.0, 37.5]),
        splitters=dice.randint(3, 6),
        may_pause=dice.choice(["true", "false"]),
        methods=json.dumps(dice.sample(METHODS, 2)),
        workload=workload.format(
            groups=dice.randint(2, 6),
            megabytes=dice.uniform(1, 40),
            spread=dice.choice([0.0, 1.2]),
            arrivals=dice.uniform(1, 50),
        ),
    )
    (folder / "random.toml").write_text(scenario)
    seeds = dice.choice(["3", "0,17"])
    compute = dice.choice(["recorded", "0", "3.7"])
    sweep = dice.choice([[], ["--sweep", "light.switching_ms=7.5,80"]])
    return ["flow", "random.toml", "--seeds", seeds, "--compute", compute, *sweep]


def replay_words(dice: random.Random, folder: Path) -> list[str]:
    trace = synthetic(dice.randint(0, 999), racks=8, coflows=10, mean_gap_ms=dice.uniform(50, 500))
    (folder / "trace.txt").write_text(written(trace))
    policies = ",".join(dice.sample(["paper", "smith", "srpt-lease", "las-lease", "fair-share"], 2))
    volume = dice.choice(["maximum", "median", "120"])
    words = ["replay", "trace.txt", "--policy", policies, "--volume", volume, "--seed", str(dice.randint(0, 99))]
    return [*words, "--splitters", str(dice.randint(0, 3)), *(["--shuffles"] if dice.random() < 0.5 else [])]


def fabric_words(dice: random.Random, folder: Path) -> list[str]:
    (folder / "random.toml").write_text(test_fabric_command.SMALL)
    rates = f"flows.0.rate_gbps={dice.uniform(1, 99)},{dice.randint(1, 99)}"
    seed = dice.randint(0, 9)
    return ["fabric", "random.toml", "--sweep", rates, "--seeds", f"{seed}-{seed + 1}"]


Words = Callable[[random.Random, Path], list[str]]
KINDS: list[Words] = [flow_words, flow_words, flow_words, replay_words, fabric_words]


@pytest.mark.parametrize("seed", range(20))
def test_random_simulated_result_repeats_from_its_file_alone(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(f"rerun/{seed}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, str(write_fake(tmp_path)))
    words = KINDS[seed % len(KINDS)](dice, tmp_path)
    form = "--json" if words[0] == "replay" else dice.choice(["--json", "--csv"])
    keep = [] if words[0] == "replay" else ["--keep", "kept"]
    assert main(["sim", *words, "--processes", "1", form, *keep]) == 0
    result = tmp_path / "result"
    result.write_text(capsys.readouterr().out)
    # Inputs that a result names by digest stay; inputs that it contains are deleted.
    (tmp_path / "random.toml").unlink(missing_ok=True)
    cells = sorted((tmp_path / "kept").glob("*.json")) if keep else []
    assert not keep or cells
    for file in (result, *cells[:2]):
        assert main(["sim", "rerun", file.name if file is result else f"kept/{file.name}", "--processes", "1"]) == 0
        record = capsys.readouterr().out
        assert record.splitlines()[-1].endswith(" identical"), record
        assert record.count(": identical\n") == len(record.splitlines()) - 1

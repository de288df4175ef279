"""`blast send` over trees: planned for a network file, or by an external plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.support.transport.transport_hosts import Agent, agents

BLAST = str(Path(sys.executable).with_name("blast"))
SIZE = 3 << 20
MEGABIT = 1e6


@pytest.fixture
def three(tmp_path: Path) -> Iterator[list[Agent]]:
    with agents(tmp_path, 3) as started:
        yield started


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "weights.bin"
    file.write_bytes(os.urandom(SIZE))
    return file


def network(folder: Path, receivers: list[Agent], to_first: float = 200 * MEGABIT) -> Path:
    """Write a network: 100 Mbit/s from the sender, but `to_first` to the first receiver; 200 Mbit/s elsewhere."""
    hosts = ["root", *(one.address[0] for one in receivers)]
    rates = {(start, end): 200 * MEGABIT for start, end in permutations(hosts, 2) if end != "root"}
    rates |= {("root", end): to_first if end == hosts[1] else 100 * MEGABIT for end in hosts[1:]}
    file = folder / "network.json"
    links = [[start, end, rate] for (start, end), rate in rates.items()]
    out = dict.fromkeys(hosts, 400 * MEGABIT)
    file.write_text(json.dumps({"hosts": hosts, "root": "root", "receivers": "all", "links": links, "out": out}))
    return file


def send(data: Path, receivers: list[Agent], *options: str | Path) -> subprocess.CompletedProcess[str]:
    to = ",".join(f"{name}={host}:{port}" for name, host, port in (one.address for one in receivers))
    command = [BLAST, "send", str(data), "--to", to, "--controller", "127.0.0.1:1", *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def transports(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the transports that a send reports in its JSON lines."""
    assert done.returncode == 0, done.stderr
    last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert all(receiver["complete"] for receiver in last["transfers"][0]["receivers"])
    return list(last["transfers"][0]["transports"])


def everywhere(data: Path, receivers: list[Agent]) -> bool:
    return all((one.directory / data.name).read_bytes() == data.read_bytes() for one in receivers)


def test_send_plans_trees_for_network_file(tmp_path: Path, data: Path, three: list[Agent]) -> None:
    done = send(data, three, "--via", "trees", "--network", network(tmp_path, three))
    assert done.returncode == 0, done.stderr
    assert "via trees" in done.stdout
    assert everywhere(data, three)


def test_send_follows_external_plan_of_trees(tmp_path: Path, data: Path, three: list[Agent]) -> None:
    file = tmp_path / "plan.json"
    planned = subprocess.run(
        [BLAST, "trees", str(network(tmp_path, three)), "--method", "bottleneck", "--json"],
        capture_output=True,
        check=True,
    )
    file.write_bytes(planned.stdout)
    assert transports(send(data, three, "--via", "trees", "--trees", file, "--json")) == ["trees"]
    assert everywhere(data, three)


def test_send_rejects_invalid_tree_options_before_sending(tmp_path: Path, data: Path, three: list[Agent]) -> None:
    file = network(tmp_path, three)
    for options, reason in [
        (("--via", "trees"), "need a network file"),
        (("--via", "pipeline", "--network", file), "a network file needs the transport"),
        (("--via", "trees", "--network", tmp_path / "nowhere.json"), "cannot read"),
        (("--via", "trees", "--trees", file), "is no plan of trees"),
    ]:
        done = send(data, three, *options)
        assert (done.returncode, done.stdout) == (2, "")
        assert reason in done.stderr and len(done.stderr.splitlines()) == 1
    done = send(data, three[:2], "--via", "trees", "--trees", tmp_path / "nowhere.json")
    assert (done.returncode, done.stdout) == (2, "")
    written = json.loads(file.read_text())
    written["hosts"][1] = "elsewhere"
    written["links"] = [
        [start, end, rate] for start, end, rate in written["links"] if three[0].address[0] not in (start, end)
    ]
    written["out"].pop(three[0].address[0])
    written["links"].append(["root", "elsewhere", MEGABIT])
    file.write_text(json.dumps(written))
    done = send(data, three, "--via", "trees", "--network", file)
    assert done.returncode == 2 and f"no host {three[0].address[0]!r}" in done.stderr
    assert not any((one.directory / data.name).exists() for one in three)

"""Warm trees in a lab, by the controller's defaults: they block no request, and repeated requests reuse them."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest

from blast_client import Client
from mininet_topos.demo.latency import KEEP_WARM_MS
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.topology.plan import LabPlan

pytestmark = pytest.mark.lab

PLAN = LabPlan(racks=6, hosts_per_rack=1, splitters={4: 2})
JOB, ONCE, OTHER = ("r1h1", ["r2h1", "r3h1"]), ("r4h1", ["r2h1", "r5h1"]), ("r5h1", ["r1h1", "r6h1"])


def served(stage: Stage, sender: str, receivers: list[str]) -> bool:
    """Request and finish without sending; return whether the request reused a warm tree."""
    with stage.granted(stage.new_request(sender, receivers, 1_000_000)) as grant:
        found = grant.timings.opticalMs is None
    stage.wait_dark()
    return found


def shown(address: str, *options: str) -> str:
    """Return the output of `blast fabric show`."""
    blast = str(Path(sysconfig.get_path("scripts")) / "blast")
    done = subprocess.run(
        [blast, "fabric", "show", "--controller", address, *options], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_lab_keeps_trees_warm_only_for_repeated_requests() -> None:
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.lab.lab import Lab

    with Lab(PLAN, keep_warm_ms=KEEP_WARM_MS) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(PLAN.summary))
        stage.wait_devices()
        assert [served(stage, *group) for group in (ONCE, OTHER)] == [False, False]
        assert client.fabric().lightTrees == []
        assert [served(stage, *JOB) for _ in range(4)] == [False, False, True, True]
        (tree,) = client.fabric().lightTrees
        assert (tree.state, tree.rootRack) == ("idle", "r1")
        expected = "warm trees: 1; grants on a warm tree: 2 of 6 (33%); evicted: 3; reclaimed: 0"
        assert expected in shown(lab.thrift)
        warm = json.loads(shown(lab.thrift, "--json"))["warm"]
        assert (warm["trees"], warm["warmHits"], warm["evicted"]) == (1, 2, 3)
        assert {"opticalSwitch": "ocs1", "fanOut": 4, "dark": 1, "lit": 1, "reserve": 1} in warm["resources"]
        assert served(stage, "r6h1", ["r1h1", "r5h1"]) is False, "the warm tree of the job blocks it"
        assert client.fabric().warm.reclaimed == 1 and client.fabric().lightTrees == []

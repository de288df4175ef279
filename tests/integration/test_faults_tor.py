"""A ToR's bridge re-made, its rules falsified while nobody looks, its daemon killed: what is wanted comes back."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from blast_api.ttypes import PartState

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.topology import tor_name
from tests.support.fabric_truth import assert_converged, dump_flows, guards, held_rules, ofctl
from tests.support.fault_bench import FaultBench, fault_bench
from tests.support.live_transfer import LiveTransfer
from tests.support.private_vswitch import PrivateSwitch, remake

pytestmark = pytest.mark.lab

FOREIGN = "cookie=0xfeed,priority=50000,ip,nw_dst=239.77.200.1,actions=drop"
STALE = "cookie=0xb1a5000000ffffff,priority=40000,in_port=91,ip,nw_src=10.0.9.9,nw_dst=239.77.99.99,actions=output:1"
TOR = 5


@pytest.fixture(scope="module")
def lab_bench() -> Iterator[FaultBench]:
    with fault_bench() as bench:
        yield bench


@pytest.fixture
def bench(lab_bench: FaultBench) -> Iterator[FaultBench]:
    yield lab_bench
    ofctl(lab_bench.lab, "del-flows", TOR, "cookie=0xfeed/-1")
    lab_bench.clear()


def test_a_bridge_that_is_deleted_and_made_again(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    intact = guards(bench.lab)
    with bench.bystander(), LiveTransfer(bench.lab, "r4h1", grant) as transfer:
        subprocess.run(["ovs-vsctl", "--timeout=10", "del-br", bench.lab.names.bridge(TOR)], check=True)
        remake(bench.lab, bench.lab.net[tor_name(TOR)])
        assert transfer.hears("r5h1", 20), "its rules come back by themselves"
    assert transfer.missed_by("r6h1") == 0 and transfer.missed_by("r5h1") > 0
    assert_converged(bench.lab, bench.client)
    assert guards(bench.lab) == intact
    assert bench.client.status(request.key).state == PartState.ACTIVE


def test_stale_missing_and_foreign_rules_found_at_reconnect(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    intact = guards(bench.lab)
    with bench.bystander(), LiveTransfer(bench.lab, "r4h1", grant) as transfer:
        with disconnected(bench):
            ofctl(bench.lab, "del-flows", TOR, f"ip,nw_dst={grant.groupAddress}")
            ofctl(bench.lab, "del-flows", TOR, "cookie=0xb1a5000000000000/0xffff0000ffffffff")
            ofctl(bench.lab, "add-flow", TOR, STALE)
            ofctl(bench.lab, "add-flow", TOR, FOREIGN)
        assert transfer.hears("r5h1", 20), "the missing rule comes back"
    assert transfer.missed_by("r6h1") == 0
    assert_converged(bench.lab, bench.client)
    assert "239.77.99.99" not in str(dump_flows(bench.lab, TOR)), "the stale rule is gone"
    assert guards(bench.lab) == intact
    assert "0xfeed" in str(dump_flows(bench.lab, TOR, "cookie=0xfeed/-1")), "the foreign rule stays"


def test_foreign_rules_are_reported_and_left_alone(bench: FaultBench) -> None:
    before = foreign_count(bench)
    ofctl(bench.lab, "add-flow", TOR, FOREIGN)
    assert foreign_count(bench) == before + 1
    assert bench.client.reconcile(dry_run=False).commands == []
    assert len(dump_flows(bench.lab, TOR, "cookie=0xfeed/-1")) == 1


def foreign_count(bench: FaultBench) -> int:
    """How many rules on the ToR the controller reports as somebody else's."""
    lines = bench.client.reconcile(dry_run=True).foreign
    return sum(int(re.match(r"\d+", line)[0]) for line in lines if f"rules on {TOR:016x}" in line)


def test_falsified_rules_are_found_on_demand(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    with bench.bystander():
        ofctl(bench.lab, "del-flows", TOR, f"ip,nw_dst={grant.groupAddress}")
        ofctl(bench.lab, "add-flow", TOR, STALE)
        found = bench.client.reconcile(dry_run=True).commands
        assert len(found) == 2 and any("remove" in c for c in found) and any("add" in c for c in found)
        assert bench.client.reconcile(dry_run=False).commands == found
        assert_converged(bench.lab, bench.client)
        assert "239.77.99.99" not in str(dump_flows(bench.lab, TOR))


def test_a_tor_whose_daemon_is_killed_comes_back_empty_and_is_filled(bench: FaultBench) -> None:
    with PrivateSwitch(bench.lab, TOR) as switch:
        bench.wait_devices()
        request = bench.new_request("r4h1", "r5h1", "r6h1")
        grant = bench.grant(request)
        wanted = held_rules(bench.lab)
        with bench.bystander(), LiveTransfer(bench.lab, "r4h1", grant) as transfer:
            assert transfer.hears("r5h1", 10)
            switch.restart()
            ofctl(bench.lab, "add-flow", TOR, FOREIGN)
            assert transfer.hears("r5h1", 30), "its rules come back by themselves"
        assert transfer.missed_by("r6h1") == 0 and transfer.missed_by("r5h1") > 0
        assert wanted <= held_rules(bench.lab)
        assert len(dump_flows(bench.lab, TOR, "cookie=0xfeed/-1")) == 1
        bench.clear()
    bench.wait_devices()


@contextmanager
def disconnected(bench: FaultBench) -> Iterator[None]:
    """The ToR looks for its controller where none is; rules stay, because it has a controller all the same."""
    bridge = bench.lab.names.bridge(TOR)
    words = ["ovs-vsctl", "--timeout=10"]
    controller = subprocess.run(
        [*words, "--bare", "get", "Bridge", bridge, "controller"], check=True, capture_output=True, text=True
    ).stdout.strip(" []\n")
    subprocess.run([*words, "set", "Controller", controller, 'target="tcp:127.0.0.1:1"'], check=True)
    try:
        bench.wait_for(lambda f: not f.racks[TOR - 1].connected, "the controller to notice")
        yield
    finally:
        target = f'target="tcp:{bench.lab.openflow}"'
        subprocess.run([*words, "set", "Controller", controller, target], check=True)
    bench.wait_devices()

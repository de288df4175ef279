"""Devices fail while light is live, or change behind the controller's back: what is wanted comes back.

The optical switch's agent is cut off, frozen and rebooted; a ToR's bridge is made anew and its rules falsified.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blast_api.ttypes import PartState

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.topology import tor_name
from tests.support.fabric_truth import assert_converged, dump_flows, guards, held_circuits, ofctl, tl1
from tests.support.fault_bench import FaultBench, fault_bench
from tests.support.live_transfer import LiveTransfer

pytestmark = pytest.mark.lab

SLOW = 1.0
FOREIGN = "cookie=0xfeed,priority=50000,ip,nw_dst=239.77.200.1,actions=drop"
STALE = "cookie=0xb1a5000000ffffff,priority=40000,in_port=91,ip,nw_src=10.0.9.9,nw_dst=239.77.99.99,actions=output:1"
TOR = 5


@pytest.fixture(scope="module")
def lab_bench() -> Iterator[FaultBench]:
    with fault_bench() as bench:
        yield bench


@pytest.fixture
def bench(lab_bench: FaultBench) -> Iterator[FaultBench]:
    """The shared lab, dark and whole before and after each test."""
    yield lab_bench
    lab_bench.lab.faults.slow_mirrors(0)
    ofctl(lab_bench.lab, "del-flows", TOR, "cookie=0xfeed/-1")
    lab_bench.clear()


# ----------------------------------------------------------------------------------------------------- optical switch


def test_cut_in_the_middle_of_a_connect_it_is_read_before_it_is_told_again(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    with bench.bystander():
        bench.lab.faults.slow_mirrors(SLOW)
        bench.client.submit(request)
        bench.wait_state(request, "configuring")
        bench.lab.faults.cut_sessions()
        bench.lab.faults.slow_mirrors(0)
        assert bench.client.await_event(request.key, 0, 20).grant is not None
        assert_converged(bench.lab, bench.client)


def test_frozen_it_holds_grants_up_and_thaws_without_harm(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    with bench.bystander():
        with frozen(bench):
            bench.client.submit(request)
            bench.wait_for(lambda f: not f.opticalSwitches[0].connected, "the controller to notice")
            assert bench.client.status(request.key).state == PartState.PENDING
        assert bench.client.await_event(request.key, 0, 20).grant is not None
        assert_converged(bench.lab, bench.client)


@contextmanager
def frozen(bench: FaultBench) -> Iterator[None]:
    """The agent's process stopped for the time of the block; its sockets stay open."""
    pid = bench.lab.optical_switch.agent_pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_rebooted_empty_it_gets_its_circuits_back(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    with LiveTransfer(bench.lab, "r4h1", grant) as transfer:
        before = held_circuits(bench.lab)
        bench.lab.optical_switch.stop_agent()
        bench.lab.optical_switch.start_agent()
        assert held_circuits(bench.lab) != before, "a power cycle forgets"
        assert transfer.hears("r5h1", 15) and transfer.hears("r6h1", 15), "the light comes back by itself"
    assert held_circuits(bench.lab) == before
    assert_converged(bench.lab, bench.client)
    assert bench.client.status(request.key).state == PartState.ACTIVE, "the grant held all the time"


def test_foreign_circuits_are_reported_and_left_alone(bench: FaultBench) -> None:
    """One on free ports, one from a free leg to a free rack: both are somebody's, whatever is reconciled."""
    foreign = {(7, 8), (12, 7)}
    with bench.bystander():
        tl1(bench.lab, "connect", *foreign)
        try:
            dry = blast(bench, "reconcile", "--dry-run")
            assert all(f"{i} to {o} on ocs1" in dry for i, o in foreign), dry
            report = bench.client.reconcile(dry_run=False)
            assert report.commands == [] and len(report.foreign) >= 2
            assert foreign <= held_circuits(bench.lab)
            bench.lab.kill_controller()
            bench.restart_controller()
            assert_converged(bench.lab, bench.client, foreign)
            unusable = {e.name: e.reason for e in bench.client.elements() if e.state == "unusable"}
            assert {"port:r7/91", "port:r8/91"} <= set(unusable), unusable
            assert "which Blast did not make" in unusable["port:r7/91"]
        finally:
            tl1(bench.lab, "disconnect", *foreign)
    bench.client.reconcile(dry_run=False)
    bench.wait_for(lambda f: all(not p.unusable for r in f.racks for p in r.opticalPorts), "the ports to be usable")


def test_a_circuit_of_ours_that_a_hand_removed_comes_back(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    bench.grant(request)
    with bench.bystander():
        lost = next(c for c in bench.tree(request).crossConnects if c.switchOutput == 5)
        tl1(bench.lab, "disconnect", (lost.switchInput, lost.switchOutput))
        assert len(bench.client.reconcile(dry_run=True).commands) == 1
        assert len(bench.client.reconcile(dry_run=False).commands) == 1
        assert_converged(bench.lab, bench.client)


def blast(bench: FaultBench, *words: str) -> str:
    """What the `blast` command prints."""
    command = [str(Path(sysconfig.get_path("scripts")) / "blast"), *words, "--controller", bench.lab.thrift]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# --------------------------------------------------------------------------------------------------------------- ToRs


def test_a_bridge_that_is_deleted_and_made_again(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    intact = guards(bench.lab)
    with bench.bystander(), LiveTransfer(bench.lab, "r4h1", grant) as transfer:
        subprocess.run(["ovs-vsctl", "--timeout=10", "del-br", bench.lab.names.bridge(TOR)], check=True)
        tor = bench.lab.net[tor_name(TOR)]
        tor.start(bench.lab.net.controllers)
        type(tor).batchStartup([tor])
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


def test_falsified_rules_are_found_on_demand(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    with bench.bystander():
        ofctl(bench.lab, "del-flows", TOR, f"ip,nw_dst={grant.groupAddress}")
        ofctl(bench.lab, "add-flow", TOR, STALE)
        # The periodic audit may have repaired a part of it already.
        found = bench.client.reconcile(dry_run=True).commands
        assert set(bench.client.reconcile(dry_run=False).commands) <= set(found)
        assert_converged(bench.lab, bench.client)
        assert "239.77.99.99" not in str(dump_flows(bench.lab, TOR))


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

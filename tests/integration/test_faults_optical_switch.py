"""The optical switch's agent cut off, frozen and rebooted while light is live; circuits that somebody else made."""

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

from tests.support.fabric_truth import assert_converged, held_circuits, tl1
from tests.support.fault_bench import FaultBench, fault_bench
from tests.support.live_transfer import LiveTransfer

pytestmark = pytest.mark.lab

SLOW = 1.0


@pytest.fixture(scope="module")
def lab_bench() -> Iterator[FaultBench]:
    with fault_bench() as bench:
        yield bench


@pytest.fixture
def bench(lab_bench: FaultBench) -> Iterator[FaultBench]:
    yield lab_bench
    lab_bench.lab.faults.slow_mirrors(0)
    lab_bench.clear()


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

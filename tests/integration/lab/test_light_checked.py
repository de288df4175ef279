"""Optical power is checked before and during a grant: retries, rerouted branches, faulty elements out of use."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blast_api.ttypes import Ended, EventKind, PartState
from mininet_topos.topology.plan import LabPlan

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from tests.support.controller.fabric_truth import assert_converged, held_circuits
from tests.support.controller.fault_bench import FaultBench, fault_bench
from tests.support.transport.live_transfer import LiveTransfer
from tests.support.waiting import eventually

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def lab_bench() -> Iterator[FaultBench]:
    with fault_bench(LabPlan(racks=6, hosts_per_rack=1, splitters={4: 2}), light_check="before_grant") as bench:
        yield bench


@pytest.fixture
def bench(lab_bench: FaultBench) -> Iterator[FaultBench]:
    """Yield the shared lab; release its elements and repair its fibers after each test."""
    yield lab_bench
    lab_bench.clear()
    broken = [element["name"] for element in elements(lab_bench, "unusable")]
    for element in broken:
        lab_bench.client.release_element(element)
    for name in ("output:s1/7", "output:s1/8", "output:s1/9", "output:s1/10", "port:r2/91", "port:r3/91"):
        lab_bench.lab.faults.mend_fiber(name)
        lab_bench.lab.faults.dim_fiber(name, 0)
    assert elements(lab_bench, "unusable") == []


def elements(bench: FaultBench, state: str) -> list[dict[str, Any]]:
    """Return the elements that `blast element list` prints for a state."""
    found: list[dict[str, Any]] = json.loads(blast(bench, "element", "list", "--state", state, "--json"))
    return found


def unusable(bench: FaultBench, name: str) -> dict[str, Any]:
    """Return the only unusable element, once the reservation that found its fault has released it."""
    (found,) = eventually(lambda: elements(bench, "unusable"), f"{name} out of use")
    assert found["name"] == name
    return found


def blast(bench: FaultBench, *words: str) -> str:
    """Run a `blast` command and return its output."""
    command = [str(Path(sysconfig.get_path("scripts")) / "blast"), *words, "--controller", bench.lab.thrift]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_controller_avoids_dark_output_and_marks_it_unusable(bench: FaultBench) -> None:
    bench.lab.faults.break_fiber("output:s1/7")
    request = bench.new_request("r1h1", "r2h1", "r3h1")
    grant = bench.grant(request)
    with LiveTransfer(bench.lab, "r1h1", grant) as transfer:
        transfer.goes_on()
    assert transfer.missed == {}
    assert "no light toward port:" in unusable(bench, "output:s1/7")["reason"]
    assert_converged(bench.lab, bench.client)
    assert 7 not in {source for source, _ in held_circuits(bench.lab)}


def test_controller_uses_released_output_again(bench: FaultBench) -> None:
    blast(bench, "element", "quarantine", "output:s1/7", "--reason", "being cleaned")
    assert [e["name"] for e in elements(bench, "unusable")] == ["output:s1/7"]
    blast(bench, "element", "release", "output:s1/7")
    assert elements(bench, "unusable") == []
    bench.grant(bench.new_request("r1h1", "r2h1", "r3h1"))
    assert 7 in {source for source, _ in held_circuits(bench.lab)}


def test_request_fails_with_reason_if_receiver_stays_dark(bench: FaultBench) -> None:
    bench.lab.faults.break_fiber("port:r3/91")
    with pytest.raises(Ended) as ended:
        bench.grant(bench.new_request("r1h1", "r2h1", "r3h1"))
    assert ended.value.state == PartState.FAILED
    assert "no light at port:r3/91" in ended.value.reason
    port = unusable(bench, "port:r3/91")
    assert port["reason"].startswith("no light over ")
    assert "output:" in port["reason"], "the outputs it was tried over are named, and in use again"
    bench.wait_for(lambda fabric: not fabric.lightTrees, "the light tree to be torn down")
    bench.grant(bench.new_request("r1h1", "r2h1", "r4h1"))


def test_alarm_on_lit_tree_reroutes_only_its_branch(bench: FaultBench) -> None:
    request = bench.new_request("r1h1", "r2h1", "r3h1")
    grant = bench.grant(request)
    before = {c.switchOutput: c.switchInput for c in bench.tree(request).crossConnects}
    output = before[3]
    splitter = bench.tree(request).splitters[0]
    with LiveTransfer(bench.lab, "r1h1", grant) as transfer:
        transfer.goes_on()
        sent = transfer.sent
        bench.lab.faults.break_fiber(f"output:{splitter}/{output}")
        assert transfer.recovers("r3h1", sent, 30), "the branch is led over another output"
    assert transfer.missed_by("r2h1") == 0, "receivers on other branches lose nothing"
    assert transfer.missed_by("r3h1") > 0, "the fiber was really broken"
    bench.wait_state(request, "lit")
    after = {c.switchOutput: c.switchInput for c in bench.tree(request).crossConnects}
    assert after[3] not in (output, before[2]) and after[2] == before[2]
    changed = bench.client.await_event(request.key, 1, 10)
    assert changed.kind == EventKind.CHANGED and changed.grant.reservation == grant.reservation
    unusable(bench, f"output:{splitter}/{output}")
    assert_converged(bench.lab, bench.client)


def test_controller_reroutes_branch_below_receiver_sensitivity(bench: FaultBench) -> None:
    """First it only loses some light, which its monitor shows; then too much for the receiver behind it."""
    request = bench.new_request("r1h1", "r2h1", "r3h1")
    grant = bench.grant(request)
    output = {c.switchOutput: c.switchInput for c in bench.tree(request).crossConnects}[3]
    name = f"output:{bench.tree(request).splitters[0]}/{output}"
    with LiveTransfer(bench.lab, "r1h1", grant) as transfer:
        bench.lab.faults.dim_fiber(name, 5.0)
        assert transfer.receives("r3h1", 30), "there is light enough"
        assert elements(bench, "unusable") == []
        sent = transfer.sent
        bench.lab.faults.dim_fiber(name, 30.0)
        assert transfer.recovers("r3h1", sent, 30), "the branch is led over another output"
    assert transfer.missed_by("r2h1") == 0 and transfer.missed_by("r3h1") > 0
    unusable(bench, name)
    bench.lab.faults.dim_fiber(name, 0)
    assert_converged(bench.lab, bench.client)

"""A lab with each kind of optical switch: packets, repairs, denials, lost sessions and power cycles are the same."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from blast_api.ttypes import Ended, MulticastRequest, PartState

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.demo.capture import Captures
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.kernel.errors import HostError
from mininet_topos.lab import registry
from mininet_topos.lab.cleanup import bridges_of, links_of, marked_processes
from mininet_topos.lab.lab import Lab
from mininet_topos.topology.plan import LabPlan
from mininet_topos.topology.switch_kinds import KINDS
from tests.support.controller.fabric_truth import assert_converged, held_circuits
from tests.support.controller.fault_bench import FaultBench, fault_bench
from tests.support.transport.live_transfer import LiveTransfer
from tests.support.waiting import eventually

pytestmark = pytest.mark.lab

PLAN = LabPlan(racks=5, hosts_per_rack=1, splitters={4: 1})
SMALL = LabPlan(racks=2, hosts_per_rack=1, splitters={2: 1})
PACKETS = 10
REPAIR_SECONDS = 30.0
"""Until packets arrive again: it takes some 50 ms, and a machine may be far slower."""


def remains(lab: str) -> list[object]:
    """Return the leftovers of a lab on this machine."""
    folders = [known for known in registry.known_labs() if known == lab]
    return [*marked_processes(lab), *bridges_of(lab), *links_of(lab), *folders]


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    try:
        KINDS[request.param].check()
    except HostError as error:
        pytest.skip(str(error))
    return str(request.param)


@pytest.fixture(scope="module")
def lab_bench(kind: str) -> Iterator[FaultBench]:
    with fault_bench(PLAN, switch=kind, knows_losses=True) as bench:
        yield bench
    assert remains(bench.lab.id) == []


@pytest.fixture
def bench(lab_bench: FaultBench) -> Iterator[FaultBench]:
    """Yield the shared lab, dark and without faults after each test."""
    yield lab_bench
    faults = lab_bench.lab.faults
    faults.deny()
    for splitter in PLAN.splitter_plans:
        for output in splitter.outputs:
            faults.raise_loss(f"output:{splitter.name}/{output}", 0)
    lab_bench.clear()
    for element in lab_bench.client.elements():
        if element.state == "unusable":
            lab_bench.client.release_element(element.name)


def output_to(bench: FaultBench, request: MulticastRequest, rack: int) -> int:
    """Return the splitter output that feeds the receiver of a rack."""
    tree = bench.tree(request)
    assert tree is not None
    return next(circuit.switchInput for circuit in tree.crossConnects if circuit.switchOutput == rack)


def test_packets_reach_exactly_the_receivers(bench: FaultBench) -> None:
    grant = bench.grant(bench.new_request("r1h1", "r2h1", "r4h1"))
    hosts = [host.name for rack in PLAN.rack_plans for host in rack.hosts]
    stage = Stage(bench.lab, bench.client, Results(PLAN.summary))
    with Captures(stage, hosts, grant.groupAddress) as captures:
        captures.send("r1h1", grant, PACKETS)
        assert captures.reached(PACKETS, {"r2h1", "r4h1"}) == {"r2h1", "r4h1"}
    assert_converged(bench.lab, bench.client)


def test_branch_with_raised_loss_moves_to_another_output(bench: FaultBench) -> None:
    request = bench.new_request("r1h1", "r2h1", "r3h1")
    grant = bench.grant(request)
    lossy, kept = output_to(bench, request, 3), output_to(bench, request, 2)
    with LiveTransfer(bench.lab, "r1h1", grant) as transfer:
        transfer.goes_on()
        sent = transfer.sent
        bench.lab.faults.raise_loss(f"output:s1/{lossy}", 30.0)
        assert transfer.recovers("r3h1", sent, REPAIR_SECONDS), "the branch has another output"
    assert transfer.missed_by("r2h1") == 0 and transfer.missed_by("r3h1") > 0
    bench.wait_state(request, "lit")
    assert output_to(bench, request, 3) not in (lossy, kept) and output_to(bench, request, 2) == kept
    assert_converged(bench.lab, bench.client)
    names = [element.name for element in bench.client.elements() if element.state == "unusable"]
    assert names == [f"output:s1/{lossy}"]


def test_denied_output_fails_request_and_nothing_stays_lit(bench: FaultBench) -> None:
    bench.lab.faults.deny(outputs=[3])
    with pytest.raises(Ended) as ended:
        bench.grant(bench.new_request("r1h1", "r2h1", "r3h1"))
    assert ended.value.state == PartState.FAILED and "ocs1" in ended.value.reason
    bench.wait_for(lambda fabric: not fabric.lightTrees, "the light tree to be torn down")
    bench.lab.faults.deny()
    bench.grant(bench.new_request("r1h1", "r2h1", "r3h1"))


def test_lost_sessions_touch_no_circuit(bench: FaultBench) -> None:
    grant = bench.grant(bench.new_request("r1h1", "r2h1", "r3h1"))
    held = held_circuits(bench.lab)
    log = bench.lab.directory / "controller.log"
    before = log.read_text().count("optical switch ocs1 is connected")
    with LiveTransfer(bench.lab, "r1h1", grant) as transfer:
        bench.lab.faults.cut_sessions()
        eventually(lambda: log.read_text().count("optical switch ocs1 is connected") > before, "a new session")
        bench.wait_devices()
    assert transfer.missed == {} and held_circuits(bench.lab) == held


def test_controller_restores_circuits_after_power_cycle(bench: FaultBench) -> None:
    request = bench.new_request("r1h1", "r2h1", "r3h1")
    grant = bench.grant(request)
    address, held = bench.lab.switch_address, held_circuits(bench.lab)
    with LiveTransfer(bench.lab, "r1h1", grant) as transfer:
        transfer.goes_on()
        sent = transfer.sent
        bench.lab.reboot_optical_switch()
        assert transfer.recovers("r2h1", sent, REPAIR_SECONDS) and transfer.receives("r3h1", REPAIR_SECONDS)
    assert bench.lab.switch_address == address
    assert_converged(bench.lab, bench.client)
    assert held_circuits(bench.lab) == held


def working_in(folder: Path) -> set[int]:
    """Return the processes with this working directory, which identifies a Redis even without its environment."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if str(entry.readlink()).removesuffix(" (deleted)") == str(folder):
                found.add(int(entry.parent.name))
    return found


def test_lab_removes_all_after_agent_is_killed(kind: str) -> None:
    with Lab(SMALL, switch=kind, controller=None) as lab:
        assert lab.describe()["switch"] == kind
        assert len(working_in(lab.optical_switch.folder)) == (1 if kind == "sonic-ocs" else 0)
        agent, folder = lab.optical_switch.agent_pid, lab.optical_switch.folder
        assert agent is not None
        os.kill(agent, signal.SIGKILL)
    assert remains(lab.id) == [] and working_in(folder) == set()

"""A power budget against a switch with power monitors: a grant promises exactly the monitored power."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from mininet_topos.topology.plan import LabPlan

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from tests.support.controller.fabric_truth import powers
from tests.support.controller.fault_bench import FaultBench, fault_bench
from tests.support.transport.live_transfer import LiveTransfer

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def lab_bench() -> Iterator[FaultBench]:
    with fault_bench(LabPlan(racks=6, hosts_per_rack=1, splitters={4: 1, 2: 1}), knows_losses=True) as bench:
        yield bench


@pytest.fixture
def bench(lab_bench: FaultBench) -> Iterator[FaultBench]:
    """Yield the shared lab; after each test, release the elements that a dimmed fiber made unusable."""
    yield lab_bench
    lab_bench.clear()
    for element in (element for element in lab_bench.client.elements() if element.state != "free"):
        lab_bench.client.release_element(element.name)


def blast(bench: FaultBench, *words: str) -> str:
    """Run a `blast` command and return its output."""
    command = [str(Path(sysconfig.get_path("scripts")) / "blast"), *words, "--controller", bench.lab.thrift]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_granted_power_equals_monitored_power(bench: FaultBench) -> None:
    request = bench.new_request("r1h1", "r2h1", "r3h1", "r4h1", "r5h1", "r6h1")
    grant = bench.grant(request)
    output = {rack.name: rack.opticalPorts[0].switchOutput for rack in bench.client.fabric().racks}
    shown = powers(bench.lab)
    assert len(grant.margins) == 5, "four leaves of 1:4 are not enough"
    assert len({round(margin.receivedDbm, 3) for margin in grant.margins}) == 2, "two of them are on the second level"
    for margin in grant.margins:
        assert margin.receivedDbm == pytest.approx(shown["out", output[margin.rack]], abs=0.06)
    smallest = grant.margins[0]
    assert f"minimum margin at {smallest.rack}" in blast(bench, "status", request.key)
    assert f"{smallest.sensitivityMarginDb:+.1f} dB to sensitivity" in blast(bench, "explain", request.key)


def test_receiver_goes_dark_once_loss_exceeds_margin(bench: FaultBench) -> None:
    request = bench.new_request("r1h1", "r2h1", "r3h1")
    grant = bench.grant(request)
    margin = next(margin for margin in grant.margins if margin.rack == "r3").sensitivityMarginDb
    assert margin > 10
    fiber = next(port for rack in bench.client.fabric().racks if rack.name == "r3" for port in rack.opticalPorts)
    with LiveTransfer(bench.lab, "r1h1", grant) as transfer:
        bench.lab.faults.dim_fiber(f"port:r3/{fiber.port}", margin - 0.2)
        assert transfer.receives("r3h1", 30), "that much is to spare"
        bench.lab.faults.dim_fiber(f"port:r3/{fiber.port}", margin + 0.2)
        transfer.goes_on(250)  # packets under way have arrived by then
        assert not transfer.receives("r3h1", 1.0), "and no more"
        assert transfer.receives("r2h1", 30)
        bench.lab.faults.dim_fiber(f"port:r3/{fiber.port}", 0.0)

"""`blast fabric verify` in a lab: a config that deliberately differs from the wiring, broken fibers, a live group."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blast_api.ttypes import FiberReport
from blast_client import Client, ControllerUnreachableError

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.lab.lab import Lab
from tests.support.controller.fabric_truth import held_circuits
from tests.support.controller.fault_bench import EIGHT_RACKS, LEASE_MS, FaultBench
from tests.support.waiting import at_rest, eventually

pytestmark = pytest.mark.lab

PROBING = 60.0
Edit = Callable[[str], str]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Eight racks, at 1 to 8; splitter s1 is fed by output 9, its outputs are at 9 to 12; s2 by 13, at 13 to 16.

    A controller with a wrong config has started first.
    """
    with Lab(EIGHT_RACKS, controller=None, min_lease_ms=LEASE_MS) as lab:
        with controller(lab, *SWAPPED):
            eventually(lambda: CHECKED in (lab.directory / "controller.log").read_text(), "the report")
        yield lab


@contextmanager
def controller(lab: Lab, *edits: Edit) -> Iterator[FaultBench]:
    """Run a controller with the edited configuration, which verifies the fabric at the first start."""
    right = text = lab.config.read_text()
    for edit in (changed(r"\[fabric\]\n", "[fabric]\nverify_at_first_start = true\n"), *edits):
        text = edit(text)
    lab.config.write_text(text)
    try:
        lab.start_controller()
        bench = FaultBench(lab)
        bench.wait_devices()
        try:
            yield bench
        finally:
            bench.close()
    finally:
        lab.stop_controller()
        lab.config.write_text(right)


def fiber_of(rack: str, side: str, number: int) -> Edit:
    """Return an edit that moves a rack's transmit fiber to another switch input, or its receive fiber to an output."""
    return changed(rf'(name = "{rack}"\n(?:.*\n)*?optical_ports = .*?{side} = )\d+', rf"\g<1>{number}")


def without_ports(rack: str) -> Edit:
    """Return an edit that removes all optical ports of a rack."""
    return changed(rf'(name = "{rack}"\n(?:.*\n)*?optical_ports = ).*', r"\g<1>[]")


def outputs_of(splitter: str, *outputs: int) -> Edit:
    """Return an edit that connects a splitter's outputs to these switch inputs."""
    return changed(rf'(name = "{splitter}"\n(?:.*\n)*?outputs = ).*', rf"\g<1>{list(outputs)}")


def changed(pattern: str, replacement: str) -> Edit:
    def edit(text: str) -> str:
        result, count = re.subn(pattern, replacement, text, count=1)
        assert count == 1, pattern
        return result

    return edit


SWAPPED = (fiber_of("r2", "input", 5), fiber_of("r5", "input", 2))
CHECKED = "fiber check complete"


def verified(bench: FaultBench) -> FiberReport:
    """Verify the fabric by the current controller, and return the report."""
    with Client(bench.lab.thrift, timeout=PROBING) as client:
        return client.verify_fabric()


def messages(report: FiberReport) -> dict[str, str]:
    return {fault.element: fault.message for fault in report.faults}


def test_verify_reports_broken_fibers_and_first_start_logs_check(lab: Lab) -> None:
    with controller(lab) as bench:
        log = (lab.directory / "controller.log").read_text()
        assert "port:r2/91: its transmit fiber is swapped with the transmit fiber of port:r5/91" in log
        assert f"{CHECKED}: 2 differ from the configuration" in log and log.count(CHECKED) == 1
        report = verified(bench)
        assert (report.faults, report.skipped) == ([], [])
        assert not held_circuits(lab)
        assert {element.state for element in bench.client.elements()} == {"free"}
        shown = run_command(lab)
        assert (shown.returncode, shown.stdout) == (0, "every fiber matches the configuration\n")
        broken = ("port:r3/91", "output:s1/11", "splitter:s2")
        for element in broken:
            lab.faults.break_fiber(element)
        try:
            report = verified(bench)
        finally:
            for element in broken:
                lab.faults.mend_fiber(element)
        assert messages(report) == {
            "port:r3/91": "its receive fiber is dead: no light arrives from output 3 of ocs1",
            "output:s1/11": "the output is dead: no light arrives at input 11 of ocs1",
            "splitter:s2": "no light arrives from any of its outputs when output 13 of ocs1 is lit",
        }
        assert verified(bench).faults == []


def run_command(lab: Lab) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sysconfig.get_path("scripts")) / "blast"), "fabric", "verify", "--controller", lab.thrift]
    return subprocess.run(command, capture_output=True, text=True, timeout=PROBING, check=False)


def test_verify_reports_exactly_the_wiring_differences(lab: Lab) -> None:
    """Two racks' transmit fibers and two splitters' outputs are swapped; one output is at a port without a name."""
    edits = (*SWAPPED, without_ports("r8"), outputs_of("s1", 9, 14, 11, 12), outputs_of("s2", 13, 10, 15, 8))
    with controller(lab, *edits) as bench:
        report = verified(bench)
        assert report.skipped == []
        assert messages(report) == {
            "port:r2/91": "its transmit fiber is swapped with the transmit fiber of port:r5/91",
            "port:r5/91": "its transmit fiber is swapped with the transmit fiber of port:r2/91",
            "output:s1/14": "the output is swapped with output:s2/10",
            "output:s2/10": "the output is swapped with output:s1/14",
            "output:s2/8": "the output is dead: no light arrives at input 8 of ocs1",
        }
        assert not held_circuits(lab)
        shown = run_command(lab)
        assert shown.returncode == 1
        assert shown.stdout.startswith("5 differences from the configuration:")


def test_verify_skips_live_group_without_packet_loss(lab: Lab) -> None:
    """The config swaps both fibers of two racks that are free, and the two are named as a pair."""
    edits = (
        fiber_of("r6", "input", 7),
        fiber_of("r7", "input", 6),
        fiber_of("r6", "output", 7),
        fiber_of("r7", "output", 6),
    )
    with controller(lab, *edits) as bench:
        with bench.bystander():
            (tree,) = bench.client.fabric().lightTrees
            for _ in range(2):
                report = verified(bench)
                assert messages(report) == {
                    "port:r6/91": "both its fibers are swapped with those of port:r7/91",
                    "port:r7/91": "both its fibers are swapped with those of port:r6/91",
                }
                held = {"port:r1/91", "port:r2/91", "port:r3/91", *(f"splitter:{name}" for name in tree.splitters)}
                assert set(report.skipped) == {f"{e}: held by reservation {tree.reservation}" for e in held}
                assert held_circuits(lab) == {(c.switchInput, c.switchOutput) for c in tree.crossConnects}
        bench.clear()


def test_restarted_controller_removes_leftover_probe_circuits(lab: Lab) -> None:
    with controller(lab, without_ports("r8"), outputs_of("s2", 13, 14, 15, 8)) as bench:
        with Client(lab.thrift, timeout=PROBING) as asking:
            asking_thread = in_background(asking)
            eventually(lambda: frozen_while_probing(lab), "circuits to probe through")
            lab.kill_controller()
            asking_thread.join()
        assert held_circuits(lab)
        bench.restart_controller()
        eventually(lambda: not held_circuits(lab), "the probes' circuits to be removed")
        eventually(lambda: {e.state for e in bench.client.elements()} == {"free"}, "everything to be free")
        assert set(messages(verified(bench))) == {"output:s2/8"}


def frozen_while_probing(lab: Lab) -> bool:
    """Stop the controller while it has circuits to probe through; return False, and let it continue, if it has none."""
    controller = lab.controller_pid
    assert controller is not None
    os.kill(controller, signal.SIGSTOP)
    # Commands that it has sent before may still be under way.
    if at_rest(lambda: held_circuits(lab)):
        return True
    os.kill(controller, signal.SIGCONT)
    return False


def in_background(client: Client) -> threading.Thread:
    def ask() -> None:
        with pytest.raises(ControllerUnreachableError):
            client.verify_fabric()

    thread = threading.Thread(target=ask)
    thread.start()
    return thread

"""The soak finds faults that are put into a real lab, passes without them, and leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mininet_topos.kernel.netdev import query
from mininet_topos.lab import registry
from tests.support.waiting import eventually

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")


if TYPE_CHECKING:
    from benchmarks.transfers.soak_bed.room import Room
    from mininet_topos.lab.agents import Agents

# Guards against hanging only; a lab of ten racks takes its time on a slow machine.
pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

BENCHMARKS = Path(__file__).parents[3] / "benchmarks" / "transfers"
SOAK = [sys.executable, str(BENCHMARKS / "soak.py")]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """Light for three groups, and three accounts of it that agree."""
    from benchmarks.transfers.soak_bed.room import Room
    from benchmarks.transfers.soak_bed.run import await_devices, lit

    with Room(tmp_path_factory.mktemp("soak"), tmp_path_factory.mktemp("hosts")) as room:
        await_devices(room)
        with lit(room):
            assert found(room) == []
            yield room


@pytest.fixture(scope="module")
def agents(room: Room) -> Iterator[Agents]:
    from benchmarks.transfers.soak_bed.scenario import TRANSFERS, hosts_of
    from mininet_topos.lab.relay import relay

    hosts = hosts_of(TRANSFERS)
    with room.agents(hosts) as agents, relay(room.lab, hosts):
        yield agents


def found(room: Room) -> list[str]:
    """Return the differences that remain once the readings have settled."""
    from benchmarks.transfers.soak_bed.comparison import differences
    from benchmarks.transfers.soak_bed.run import readings, settled

    return settled(lambda: differences(readings(room)))


def differences_now(room: Room) -> list[str]:
    from benchmarks.transfers.soak_bed.comparison import differences
    from benchmarks.transfers.soak_bed.run import readings

    return differences(readings(room))


def test_soak_finds_leaked_flow(room: Room) -> None:
    bridge = room.bridges[9]
    match = "ip,in_port=1,nw_src=10.0.9.1,nw_dst=239.77.250.9"
    rule = f"cookie=0xb1a5000100000fff,priority=40000,{match},actions=output:91"

    def leaked() -> list[str]:
        query(["ovs-ofctl", "-O", "OpenFlow13", "add-flow", bridge, rule])
        return differences_now(room)

    try:
        # The controller may reconcile in between and remove the rule.
        (fault,) = eventually(leaked, "a difference")
        assert fault == (
            "the ToR has the rule 10.0.9.1 -> 239.77.250.9 from port 1 to 91 on datapath 9, and the journal does not"
        )
    finally:
        query(["ovs-ofctl", "-O", "OpenFlow13", "--strict", "del-flows", bridge, f"priority=40000,{match}"])
    assert found(room) == []


def test_soak_finds_wrong_copy_that_sender_reports_as_success(room: Room, agents: Agents) -> None:
    from benchmarks.transfers.soak_bed.report import Call
    from benchmarks.transfers.soak_bed.transfers import Sender

    class CorruptingSender(Sender):
        """Changes one byte of one copy before it is compared."""

        def _run_send(self, path: Path, sender: str, receivers: Sequence[str]) -> tuple[int, str, bool]:
            result = super()._run_send(path, sender, receivers)
            copy = agents.folder(receivers[0]) / path.name
            data = bytearray(copy.read_bytes())
            data[len(data) // 2] ^= 1
            copy.write_bytes(data)
            return result

    calls: list[Call] = []
    sender = CorruptingSender(room, agents, 1, 3600.0, calls.append)
    sender.start()
    try:
        eventually(lambda: calls, event="a file to be sent", within=300.0)
    finally:
        sender.kill()
        sender.join()
    assert calls[0].fault == "", "the sender reports success"
    (fault,) = sender.received.wrong
    assert fault.endswith("the SHA-256 differs from the original's")
    assert sender.received.intact >= 1


@pytest.mark.test_all
def test_short_soak_passes_and_leaves_nothing() -> None:
    command = [*SOAK, "--minutes", "0.5", "--clients", "12", "--hostile", "5", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as soak:
        out, errors = soak.communicate()
    assert soak.returncode == 0, (out[-2000:], errors[-2000:])
    report = json.loads(out)
    assert report["compared"] and report["failures"] == [] and report["files"]["intact"] > 0
    assert set(report["hostile"]) == {"flood 1", "frames 2", "vanish 3", "extend 4", "view 5", "forge", "garbage"}
    assert report["hostile"]["flood 1"]["connections"] > 0 and report["hostile"]["garbage"]["agent connections"] > 0
    assert report["calls"]["soak"]["all calls"]["due"] > 0 and report["calls"]["baseline"]["all calls"]["due"] > 0
    assert registry.labs_built_by(soak.pid) == []


def test_ctrl_c_prints_results_and_leaves_nothing() -> None:
    command = [*SOAK, "--minutes", "30", "--clients", "8", "--hostile", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as soak:
        assert soak.stderr is not None
        assert "baseline" in soak.stderr.readline()
        (lab,) = registry.labs_built_by(soak.pid)
        soak.send_signal(signal.SIGINT)
        out, errors = soak.communicate()
    assert soak.returncode == 130, (out, errors)
    assert "interrupted: no final comparison" in out and "honest calls" in out
    assert "Traceback" not in errors
    assert registry.labs_built_by(soak.pid) == []
    from benchmarks.transfers.soak_bed.room import left_by

    assert left_by(lab) == []

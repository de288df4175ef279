"""The `blast` command against a real controller in a lab: what a user types, sees and gets as exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from blast_api.ttypes import FabricStatus
from blast_client import Client
from mininet_topos.plan import LabPlan
from tests.support.waiting import HANGING, eventually

if TYPE_CHECKING:
    from mininet_topos.lab import Lab

BLAST = [str(Path(sys.executable).with_name("blast"))]

pytestmark = pytest.mark.lab


def blast(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*BLAST, *arguments], capture_output=True, text=True, timeout=4 * HANGING, check=False, **more
    )


def wait_for(controller: str, wanted: Callable[[FabricStatus], bool]) -> None:
    with Client(controller) as client:
        eventually(lambda: wanted(client.fabric()), "the fabric to be as wanted")


def everything_is_connected(fabric: FabricStatus) -> bool:
    return all(device.connected for device in (*fabric.racks, *fabric.opticalSwitches))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.lab import Lab

    with Lab(LabPlan(racks=8, hosts_per_rack=1, splitters={4: 1})) as lab:
        wait_for(lab.thrift, everything_is_connected)
        yield lab


@pytest.fixture(scope="module")
def controller(lab: Lab) -> str:
    return lab.thrift


def test_a_request_from_start_to_finish(controller: str) -> None:
    at = ("--controller", controller, "--json")
    granted = blast("request", "--from", "r1h1", "--to", "r2h1,r3h1", "--bytes", "3MB", "--key", "k1", *at)
    assert granted.returncode == 0, granted.stderr
    assert json.loads(granted.stdout)["groupAddress"].startswith("239.77.")
    extended = blast("extend", "k1", "--add", "r4h1", "--time", "5s", *at)
    assert extended.returncode == 0, extended.stderr
    assert json.loads(extended.stdout)["receivers"] == ["r2h1", "r3h1", "r4h1"]
    assert "r4h1" in blast("status", "k1", "--controller", controller).stdout
    shown = blast("fabric", "show", "--controller", controller)
    assert shown.returncode == 0 and "r4" in shown.stdout
    assert blast("fabric", "svg", "--controller", controller).stdout.startswith("<svg")
    assert blast("top", "--once", "--controller", controller).returncode == 0
    assert blast("finish", "k1", *at).returncode == 0
    again = blast("finish", "k1", *at)
    assert again.returncode == 0, "finishing twice is the same as once"
    assert blast("withdraw", "k1", *at).returncode == 1, "it has ended"


@pytest.mark.parametrize(
    ("receivers", "words"),
    [("r9h9", "no host 'r9h9'"), ("r2h1,r2h1", "twice"), ("r2h1,r3h1,r4h1,r5h1,r6h1", "at most 5")],
)
def test_wrong_input(controller: str, receivers: str, words: str) -> None:
    done = blast("request", "--from", "r1h1", "--to", receivers, "--bytes", "1MB", "--controller", controller)
    assert done.returncode == 2
    assert words in done.stderr and len(done.stderr.strip().splitlines()) <= 2


def test_explain_names_who_is_in_the_way(controller: str) -> None:
    at = ("--controller", controller)
    first = blast("request", "--from", "r2h1", "--to", "r3h1,r4h1", "--bytes", "3GB", "--key", "in the way", *at)
    assert first.returncode == 0, first.stderr
    try:
        late = ("--from", "r5h1", "--to", "r4h1,r6h1", "--bytes", "3MB", "--key", "late")
        assert blast("request", *late, "--no-wait", *at).returncode == 0
        told = json.loads(blast("explain", "late", "--json", *at).stdout)
        assert any("default/in the way" in blocker for blocker in told["blockers"])
        assert told["estimatedStartMs"] > 0 and "--remove r4h1" in told["smallestChange"]
        assert "blocked by" in blast("explain", "late", *at).stdout
    finally:
        assert blast("finish", "in the way", *at).returncode == 0
        blast("withdraw", "late", *at)


def test_an_absent_device_is_status_1(lab: Lab, controller: str) -> None:
    """Said at once, and the request is as it was."""
    at = ("--controller", controller)
    assert blast("request", "--from", "r5h1", "--to", "r6h1", "--bytes", "1GB", "--key", "away", *at).returncode == 0
    lab.optical_switch.stop_agent()
    lost = lab.names.bridge(8)
    subprocess.run(["ovs-vsctl", "set-controller", lost, "tcp:127.0.0.1:1"], check=True)
    try:
        wait_for(controller, lambda fabric: not (fabric.opticalSwitches[0].connected or fabric.racks[7].connected))
        for host, word in (("r7h1", "ocs1"), ("r8h1", "disconnected")):
            refused = blast("extend", "away", "--add", host, *at)
            assert refused.returncode == 1, refused.stderr
            assert word in refused.stderr and len(refused.stderr.strip().splitlines()) == 1
            assert "nothing came" not in refused.stderr and "start one" not in refused.stderr
    finally:
        subprocess.run(["ovs-vsctl", "set-controller", lost, f"tcp:{lab.openflow}"], check=True)
        lab.optical_switch.start_agent()
    wait_for(controller, everything_is_connected)
    assert blast("finish", "away", *at).returncode == 0

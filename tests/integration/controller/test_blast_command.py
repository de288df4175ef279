"""The `blast` command against a real controller in a lab: commands, output and exit statuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from blast_api.ttypes import FabricStatus
from blast_client import Client
from mininet_topos.topology.plan import LabPlan
from tests.support.waiting import HANGING, eventually

BLAST = [str(Path(sys.executable).with_name("blast"))]

pytestmark = pytest.mark.lab


def blast(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*BLAST, *arguments], capture_output=True, text=True, timeout=4 * HANGING, check=False)


@pytest.fixture
def controller() -> Iterator[str]:
    """Yield the address of a lab's controller, once every device is connected."""
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.lab.lab import Lab

    with Lab(LabPlan(racks=8, hosts_per_rack=1, splitters={4: 1})) as lab:
        with Client(lab.thrift) as client:
            eventually(lambda: everything_is_connected(client.fabric()), "every device to be connected")
        yield lab.thrift


def everything_is_connected(fabric: FabricStatus) -> bool:
    return all(device.connected for device in (*fabric.racks, *fabric.opticalSwitches))


def test_commands_serve_request_from_submission_to_finish(controller: str) -> None:
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

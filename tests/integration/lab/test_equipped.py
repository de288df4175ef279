"""Hosts of a lab that send to each other by `blast send`, while devices and fibers break and are repaired."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from blast_client import Client
from mininet_topos.lab.agents import Agents
from mininet_topos.lab.cleanup import marked_processes
from mininet_topos.topology.plan import LabPlan
from tests.support.transport.folder_trees import seen, varied
from tests.support.waiting import HANGING, eventually

if TYPE_CHECKING:
    from mininet_topos.lab.lab import Lab
    from mininet_topos.lab.prompt import LabPrompt

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[3]
PLAN = LabPlan(racks=4, hosts_per_rack=1, splitters={4: 2})
EXAMPLE = ROOT / "examples" / "lab" / "broken_fiber.py"


@pytest.fixture(scope="module")
def room() -> Iterator[tuple[Lab, Agents]]:
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.lab.host_environment import equipped
    from mininet_topos.lab.lab import Lab

    with Lab(PLAN, min_lease_ms=60_000) as lab, equipped(lab) as agents:
        yield lab, agents


@pytest.fixture
def prompt(room: tuple[Lab, Agents], tmp_path: Path) -> LabPrompt:
    """Return a prompt without a terminal; tests call its commands."""
    from mininet_topos.lab.prompt import LabPrompt

    lab, agents = room
    (tmp_path / "nothing").touch()
    with (tmp_path / "nothing").open() as nothing:
        return LabPrompt(lab, agents, stdin=nothing, script=nothing.name)


def connected(lab: Lab) -> bool:
    with Client(lab.thrift) as client:
        fabric = client.fabric()
    return all(device.connected for device in (*fabric.racks, *fabric.opticalSwitches))


def sent(room: tuple[Lab, Agents], path: Path, name: str, *options: str) -> str:
    """Send a file from r1h1 to r2h1 and r3h1, and return the output of the command."""
    words = " ".join(["blast", "send", str(path), "--to", "r2h1,r3h1", "--as", name, *options])
    output: str = room[0].host("r1h1").cmd(words)
    assert "2 of 2 receivers have it, verified" in output, output
    return output


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.bin"
    path.write_bytes(os.urandom(500_000))
    return path


def test_hosts_send_file_and_folder_optically_by_host_name(room, file: Path, tmp_path: Path) -> None:
    folder = varied(tmp_path / "data")
    assert "via optical" in sent(room, file, "by-light", "--via", "optical")
    assert "via optical" in sent(room, folder, "folder", "--via", "optical")
    for host in ("r2h1", "r3h1"):
        assert (room[1].folder(host) / "by-light").read_bytes() == file.read_bytes()
        assert seen(room[1].folder(host) / "folder") == seen(folder)


def test_rebooted_devices_controller_and_host_serve_again(room, prompt: LabPrompt, file: Path, capsys) -> None:
    for thing in ("r2", "ocs1", "controller", "r2h1"):
        prompt.onecmd(f"reboot {thing}")
        assert capsys.readouterr().out.count("\n") == 1
        eventually(lambda: connected(room[0]), "all devices to connect", within=4 * HANGING)
        assert "via optical" in sent(room, file, f"after-{thing}", "--via", "optical")


def test_broken_optical_path_does_not_prevent_delivery(room, prompt: LabPrompt, file: Path) -> None:
    for number, (broken, mended) in enumerate(
        [("cut r3 rx", "mend r3 rx"), ("deny ocs1 all", "deny ocs1 none"), ("dim r3 rx 60", "mend r3 rx")]
    ):
        prompt.onecmd(broken)
        try:
            sent(room, file, f"broken-{number}")
        finally:
            prompt.onecmd(mended)
        for host in ("r2h1", "r3h1"):
            assert (room[1].folder(host) / f"broken-{number}").read_bytes() == file.read_bytes()


def test_broken_fiber_example_reports_intact_transfer() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--size", "5MB"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    lab, *_, sent_, intact = map(json.loads, done.stdout.splitlines())
    assert sent_["status"] == 0 and intact["hosts"] == ["r2h1", "r3h1", "r4h1"]
    assert not marked_processes(lab["id"])

"""The `blast` command against a real controller in a lab: what a user types, sees and gets as exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from blast_api.ttypes import FabricStatus, Unsupported
from blast_client import Client
from mininet_topos.plan import LabPlan
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from mininet_topos.lab import Lab

BLAST = [str(Path(sys.executable).with_name("blast"))]

pytestmark = pytest.mark.lab


def blast(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*BLAST, *arguments], capture_output=True, text=True, timeout=60, check=False, **more)


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
    ("arguments", "status", "words"),
    [
        (("--from", "nobody", "--to", "r2h1", "--bytes", "1MB"), 2, "no host 'nobody'"),
        (("--from", "r1h1", "--to", "r1h1,r2h1", "--bytes", "1MB"), 2, "among the receivers"),
        (("--from", "r1h1", "--to", "r2h1,r2h1", "--bytes", "1MB"), 2, "twice"),
        (("--from", "r1h1", "--to", "", "--bytes", "1MB"), 2, ""),
        (("--from", "r1h1", "--to", "r2h1", "--bytes", "0"), 2, ""),
        (("--from", "r1h1", "--to", "r2h1", "--bytes", "-3"), 2, ""),
        (("--from", "r1h1", "--to", "r2h1,r3h1,r4h1,r5h1,r6h1", "--bytes", "1MB"), 2, "at most 5"),
    ],
)
def test_wrong_input(controller: str, arguments: tuple[str, ...], status: int, words: str) -> None:
    done = blast("request", *arguments, "--controller", controller)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) <= 2


def test_no_controller_there() -> None:
    done = blast("status", "--controller", "127.0.0.1:1")
    assert done.returncode == 1
    assert "127.0.0.1:1" in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_what_is_not_served_says_so(controller: str) -> None:
    with Client(controller) as client:
        assert "login" not in client.version().features
        with pytest.raises(Unsupported):
            client.login("token")


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


def test_a_killed_demo_leaves_nothing_behind_after_down(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [*BLAST, "lab", "demo", "--requests", "5", "--svg", str(tmp_path / "x.svg")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    told = []
    try:
        for line in demo.stdout or ():
            told.append(line)
            if line.startswith("(b)"):
                break
        mine = [lab for lab in _labs() if _belongs(lab, demo.pid)]
        assert mine, f"no lab of the demo's among {_labs()}; it told (status {demo.poll()}):\n{''.join(told)}"
        time.sleep(0.3)  # in the middle of it
    finally:
        with suppress(ProcessLookupError):
            os.killpg(demo.pid, signal.SIGKILL)
        demo.wait()
        if demo.stdout:
            demo.stdout.close()
    (lab,) = mine
    assert _remains(lab), "a killed demo leaves something to clean"
    assert blast("lab", "down", lab).returncode == 0
    assert _remains(lab) == []


def _labs() -> list[str]:
    folder = Path("/run/blast-lab")
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _belongs(lab: str, pid: int) -> bool:
    """Whether a process with the lab's mark descends from `pid`."""
    return any(_parent_chain(found, pid) for found in _marked(lab))


def _marked(lab: str) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                environment = (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"BLAST_LAB={lab}".encode() in environment:
                found.append(int(process.name))
    return found


def _parent_chain(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def _remains(lab: str) -> list[str]:
    """Processes, bridges, links and folders of a lab."""
    bridges = subprocess.run(
        ["ovs-vsctl", "--bare", "--columns=name", "find", "bridge", f"external_ids:blast-lab={lab}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    links = [path.name for path in Path("/sys/class/net").iterdir() if path.name.startswith(f"{lab}t")]
    folder = [str(Path("/run/blast-lab") / lab)] if (Path("/run/blast-lab") / lab).exists() else []
    return [*map(str, _marked(lab)), *bridges, *links, *folder]

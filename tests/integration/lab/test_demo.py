"""`blast lab demo` as a user runs it: to its end, ended by a signal, and through the script of `make demo`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mininet_topos.lab import registry
from mininet_topos.lab.cleanup import bridges_of, down, links_of, marked_processes

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[3]
BLAST = Path(sys.executable).with_name("blast")

LATENCIES = {
    "call_and_commit_after", "compute", "commit_before", "openflow", "optical", "total", "first_datagram",
}  # fmt: skip
TRANSFER = {"name", "receivers", "bytes", "seconds", "hashes_equal", "uplink_copies", "light_rate_mbps", "core_share"}
TRANSFER |= {"repeated_copies", "faults"}
FLOOR = {"ping", "commit_before", "commit_after", "barrier", "tl1", "total"}


def remains(lab: str) -> list[object]:
    known = [entry for entry in registry.known_labs() if entry == lab]
    return [*marked_processes(lab), *bridges_of(lab), *links_of(lab), *known]


@pytest.mark.timeout(1000)
def test_demo_completes_and_writes_measurements(tmp_path: Path) -> None:
    out, svg = tmp_path / "demo.json", tmp_path / "demo.svg"
    command = [BLAST, "lab", "demo", "--requests", "5", "--iterations", "1"]
    done = subprocess.run(
        [*command, "--json", out, "--svg", svg], capture_output=True, text=True, timeout=900, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    results = json.loads(out.read_text())
    assert set(results["latency_ms"]) == LATENCIES and set(results["floor_ms"]) == FLOOR
    for steps in (results["latency_ms"], results["floor_ms"]):
        assert all(set(step) == {"p50", "p99", "n"} and step["n"] == 5 for step in steps.values())
    assert all(step["p50"] > 0 for step in results["floor_ms"].values())
    check_transfers(results["transfers"])
    assert results["holds"] and [check for check in results["checks"] if not check["holds"]] == []
    assert {check["scene"] for check in results["checks"]} == set("abcdefgh")
    assert {one["scene"] for one in results["measured"]} == set("abcdf")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    for scene in "abcdefgh":
        assert f"\n({scene}) " in done.stdout


def check_transfers(transfers: list[dict[str, object]]) -> None:
    assert all(set(transfer) == TRANSFER for transfer in transfers)
    by_name = {transfer["name"]: transfer for transfer in transfers}
    assert {"optical-1", "unicast", "pipeline", *(f"group-{name}" for name in "ABCDEF")} <= set(by_name)
    assert by_name["optical-1"]["receivers"] == by_name["unicast"]["receivers"] == 7
    assert by_name["optical-1"]["bytes"] >= 8_000_000
    for transfer in transfers:
        assert transfer["hashes_equal"] is True and transfer["light_rate_mbps"] == 100
        if str(transfer["name"]).startswith(("unicast", "pipeline")):
            assert transfer["uplink_copies"] is None
            assert transfer["core_share"] >= 7
        else:
            # Optical losses on a busy machine are repaired over the packet core; there is no other source.
            assert 0 < transfer["uplink_copies"] - transfer["repeated_copies"] <= 1.05
            assert transfer["uplink_copies"] + transfer["core_share"] > 1


@contextmanager
def playing(command: list[str | Path]) -> Iterator[subprocess.Popen[str]]:
    """Run a demo in a process session of its own, and yield it when it plays scene (a)."""
    # A shell makes its background jobs ignore SIGINT, which child processes inherit.
    demo = subprocess.Popen(
        ["env", "--default-signal=INT", *command, "--requests", "900"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        for line in demo.stdout or ():
            if line.startswith("(a)"):
                break
        yield demo
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
        demo.communicate()


@pytest.mark.timeout(300)
def test_signal_ends_demo_and_removes_its_lab(tmp_path: Path) -> None:
    with playing([BLAST, "lab", "demo", "--svg", tmp_path / "x.svg"]) as demo:
        (lab,) = registry.labs_built_by(demo.pid)
        try:
            demo.send_signal(signal.SIGINT)
            assert demo.wait(200) == 130
            assert remains(lab) == []
        finally:
            down(lab)


@pytest.mark.timeout(300)
def test_demo_script_removes_lab_of_killed_demo(tmp_path: Path) -> None:
    before = set(registry.known_labs())
    with playing([ROOT / "scripts" / "demo", "--svg", tmp_path / "x.svg"]) as script:
        (lab,) = [new for new in registry.known_labs() if new not in before and descends(new, script.pid)]
        try:
            os.kill(registry.read_state(lab)["owner"]["pid"], signal.SIGKILL)
            assert script.wait(200) == 137
            assert remains(lab) == []
        finally:
            down(lab)


def descends(lab: str, ancestor: int) -> bool:
    """Return whether the lab's owner is a child of process `ancestor`."""
    owner = registry.read_state(lab)["owner"]["pid"]
    status = Path(f"/proc/{owner}/stat").read_text()
    return int(status.rpartition(")")[2].split()[1]) == ancestor

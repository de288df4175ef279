"""The order of the scenes, on one lab."""

from __future__ import annotations

import argparse
import sysconfig
import tarfile
from pathlib import Path

from blast_client import Client
from blast_client.fabric.svg import fabric_svg
from mininet_topos.demo import changes, contention, iperf, iterations, latency, one_way
from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.report import table, write_json
from mininet_topos.demo.results import Results
from mininet_topos.demo.settings import demo_plan
from mininet_topos.demo.stage import Stage
from mininet_topos.lab.cleanup import bridges_of, links_of, marked_processes
from mininet_topos.lab.lab import Lab
from mininet_topos.lab.registry import known_labs

__all__ = ["play", "write_json"]

_ARCHIVE_BYTES = 9_000_000
LEASE_MS = 600_000
"""The lease, long enough for scenes on slow machines."""
_LEGEND = "ok and FAIL lines are checks and determine the exit status; info lines are measurements of this machine."
POLICY = "paper"
"""The policy for which scene (d) checks the order of grants."""


def play(args: argparse.Namespace) -> Results:
    """Run every scene on one lab. Raises LabError, TransportError and the client's errors."""
    plan = demo_plan(args.racks)
    with Lab(plan, min_lease_ms=LEASE_MS, policy=POLICY) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(plan.summary))
        stage.write_line(
            f"Blast demo: {plan.summary}\nlab {lab.id}; if the demo is killed, clean up with: blast lab down {lab.id}"
        )
        stage.write_line(_LEGEND)
        stage.wait_devices()
        path = args.file or _standard_library(lab.directory / "stdlib.tar")
        _scenes(stage, args, path)
    _look_for_remains(stage)
    stage.write_line("")
    for line in table(stage.results):
        stage.write_line(line)
    stage.write_line(f"\npicture of the lit fabric: {args.svg}")
    return stage.results


def _scenes(stage: Stage, args: argparse.Namespace, path: Path) -> None:
    latency.play(stage, args.requests)
    with Receivers(stage, stage.first_hosts()[: iterations.MAX_RECEIVERS + 1]) as receivers:
        iterations.play(stage, receivers, path, args.iterations)
        contention.play(stage, receivers)
    changes.play(stage)
    iperf.play(stage)
    one_way.play(stage)
    _picture(stage, args.svg)


def _look_for_remains(stage: Stage) -> None:
    """Check that the lab is removed completely."""
    stage.open_scene("h", "Cleanup of the lab")
    lab = stage.lab.id
    remains = (*marked_processes(lab), *bridges_of(lab), *links_of(lab), *(one for one in known_labs() if one == lab))
    seen = ", ".join(map(str, remains)) or "no process, bridge, interface or folder"
    stage.check("no resource of the lab is left", not remains, seen)


def _picture(stage: Stage, path: Path) -> None:
    stage.wait_dark()
    sender, *others = stage.first_hosts()[: iterations.MAX_RECEIVERS + 1]
    with stage.granted(stage.new_request(sender, others, 1_000_000, "picture")):
        path.write_text(fabric_svg(stage.client.fabric()))


def _standard_library(path: Path) -> Path:
    """Return a real file that every machine has: the Python standard library as one archive of at least 8 MB."""
    with tarfile.open(path, "w") as archive:
        for source in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
            if "site-packages" not in source.parts:
                archive.add(source, recursive=False)
            if archive.offset >= _ARCHIVE_BYTES:
                break
    return path

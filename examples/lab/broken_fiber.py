"""A fiber breaks under a transfer: the lab from Python, as root.

    .venv/bin/python examples/lab/broken_fiber.py [--size 20MB]

Sends a file from r1h1 to three racks by light, cuts the fiber into r3 while it is under way, and prints what the
controller and the sender made of it, as JSON lines. Everything that `Lab` has, and every fault, can be used so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from blast_api.ttypes import LightTreeStatus
from blast_client import Client
from blast_client.units import parse_bytes
from mininet_topos.controller_config import PATIENT_LEASE_MS
from mininet_topos.equipped import equipped, shell_of
from mininet_topos.lab import Lab
from mininet_topos.plan import LabPlan

PLAN = LabPlan(racks=4, hosts_per_rack=1, splitters={4: 2})
RECEIVERS = ("r2h1", "r3h1", "r4h1")
LONGEST = 60.0
"""Seconds to wait for light."""


def main() -> None:
    """Build, send, break, tell."""
    parser = argparse.ArgumentParser(description="Cut a fiber under a transfer.")
    parser.add_argument("--size", type=parse_bytes, default=parse_bytes("20MB"), help="of the file (20MB)")
    size = parser.parse_args().size
    with (
        tempfile.TemporaryDirectory() as folder,
        Lab(PLAN, min_lease_ms=PATIENT_LEASE_MS) as lab,
        equipped(lab) as agents,
        Client(lab.thrift) as client,
    ):
        file = Path(folder) / "model.bin"
        file.write_bytes(os.urandom(size))
        tell("lab", id=lab.id, hosts=agents.hosts)
        sender = send(lab, file)
        tree = await_light(client)
        tell("lit", leaves=tree.leafRacks, splitters=tree.splitters)
        lab.faults.break_fiber("port:r3/91")
        tell("cut", element="port:r3/91")
        said = sender.communicate()[0].splitlines()
        result = json.loads(said[-1])
        tell("sent", status=sender.returncode, transfers=result["transfers"])
        tell("intact", hosts=[h for h in RECEIVERS if (agents.folder(h) / file.name).read_bytes() == file.read_bytes()])


def send(lab: Lab, file: Path) -> subprocess.Popen[str]:
    """`blast send` at r1h1, under way."""
    command = ["blast", "send", str(file), "--to", ",".join(RECEIVERS), "--via", "optical", "--json"]
    sender: subprocess.Popen[str] = lab.host("r1h1").popen(
        command, env={**os.environ, **shell_of(lab, "r1h1")}, stdout=subprocess.PIPE, stderr=None, text=True
    )
    return sender


def await_light(client: Client) -> LightTreeStatus:
    """The first tree that is lit."""
    give_up = time.monotonic() + LONGEST
    while time.monotonic() < give_up:
        lit = [tree for tree in client.fabric().lightTrees if tree.state == "lit"]
        if lit:
            return lit[0]
        time.sleep(0.01)
    raise SystemExit("no light")


def tell(event: str, **facts: object) -> None:
    """A line of JSON."""
    print(json.dumps({"event": event, **facts}), flush=True)


if __name__ == "__main__":
    main()

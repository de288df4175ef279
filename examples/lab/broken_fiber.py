"""Script that breaks a fiber during a transfer in the lab. Run it as root.

    .venv/bin/python examples/lab/broken_fiber.py [--size 20MB]

It sends a file from r1h1 to three racks over the optical transport, cuts the fiber into r3 during the transfer, and
prints the events and the result as JSON lines. Use `Lab` and its other faults in the same way.
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
from blast_client.cli.units import parse_bytes
from mininet_topos.lab.host_environment import equipped, shell_of
from mininet_topos.lab.lab import Lab
from mininet_topos.topology.plan import LabPlan

PLAN = LabPlan(racks=4, hosts_per_rack=1, splitters={4: 2})
RECEIVERS = ("r2h1", "r3h1", "r4h1")
MIN_LEASE_MS = 60_000
"""Minimum lease: longer than the transfer, which continues after the cut."""
GRANT_TIMEOUT = 60.0
"""Seconds."""


def main() -> None:
    """Build the lab, start a transfer, cut the fiber, and print the result."""
    parser = argparse.ArgumentParser(description="Cut a fiber under a transfer.")
    parser.add_argument("--size", type=parse_bytes, default=parse_bytes("20MB"), help="file size (default: 20MB)")
    size = parser.parse_args().size
    with (
        tempfile.TemporaryDirectory() as folder,
        Lab(PLAN, min_lease_ms=MIN_LEASE_MS) as lab,
        equipped(lab) as agents,
        Client(lab.thrift) as client,
    ):
        file = Path(folder) / "model.bin"
        file.write_bytes(os.urandom(size))
        report("lab", id=lab.id, hosts=agents.hosts)
        sender = send(lab, file)
        tree = await_lit_tree(client)
        report("lit", leaves=tree.leafRacks, splitters=tree.splitters)
        lab.faults.break_fiber("port:r3/91")
        report("cut", element="port:r3/91")
        lines = sender.communicate()[0].splitlines()
        result = json.loads(lines[-1])
        report("sent", status=sender.returncode, transfers=result["transfers"])
        intact = [host for host in RECEIVERS if (agents.folder(host) / file.name).read_bytes() == file.read_bytes()]
        report("intact", hosts=intact)


def send(lab: Lab, file: Path) -> subprocess.Popen[str]:
    """Start `blast send` on r1h1."""
    command = ["blast", "send", str(file), "--to", ",".join(RECEIVERS), "--via", "optical", "--json"]
    sender: subprocess.Popen[str] = lab.host("r1h1").popen(
        command, env={**os.environ, **shell_of(lab, "r1h1")}, stdout=subprocess.PIPE, stderr=None, text=True
    )
    return sender


def await_lit_tree(client: Client) -> LightTreeStatus:
    """Return the first lit tree. Raise SystemExit after `GRANT_TIMEOUT` seconds."""
    deadline = time.monotonic() + GRANT_TIMEOUT
    while time.monotonic() < deadline:
        lit = [tree for tree in client.fabric().lightTrees if tree.state == "lit"]
        if lit:
            return lit[0]
        time.sleep(0.01)
    raise SystemExit(f"no tree is lit after {GRANT_TIMEOUT:g} s; see the log of the lab's controller")


def report(event: str, **fields: object) -> None:
    """Print an event as a JSON line."""
    print(json.dumps({"event": event, **fields}), flush=True)


if __name__ == "__main__":
    main()

r"""The lab's topology for Mininet's own command, which runs the system's Python.

Examples::

    mn --custom mininet_topos/mn_custom.py --topo blast,racks=4,splitters=4x2 --controller none --test pingall
    mn --custom mininet_topos/mn_custom.py --topo blast,preset=paper-testbed \
       --controller remote,ip=127.0.0.1,port=6653

Parameters of `--topo blast`: `preset` and those of `LabPlan`, `splitters` as WAYSxCOUNT joined by `+`. The packet
network works with any controller or none; light needs one that speaks TL1 too: its configuration for this topology is
written to the lab's directory under /run/blast-lab, which Mininet's `info` output names.

Mininet executes this file and takes over all its names: `topos` adds a topology, and `cleanup` replaces Mininet's own,
which after an error would delete every bridge and many processes of the machine.
"""

from __future__ import annotations

import atexit
import sys
from pathlib import Path
from typing import Any

import __main__

_labs: list[str] = []


def cleanup() -> None:
    """Remove what this process built, and nothing else."""
    while _labs:
        down(_labs.pop())


# At once and not only when Mininet has read the file: an import that fails below must not end in its own.
vars(__main__)["cleanup"] = cleanup

# Mininet gives the file no __file__.
sys.path.insert(0, str(Path(sys._getframe().f_code.co_filename).resolve().parents[1]))

from mininet_topos.kernel.addresses import free_address  # noqa: E402
from mininet_topos.kernel.mininet_import import info  # noqa: E402
from mininet_topos.lab import registry  # noqa: E402
from mininet_topos.lab.cleanup import down  # noqa: E402
from mininet_topos.lab.controller_config import INTERACTIVE_LEASE_MS, Endpoints, Service, render  # noqa: E402
from mininet_topos.topology.build import BlastTopo, Build  # noqa: E402
from mininet_topos.topology.plan import parse_splitters, preset  # noqa: E402

OPENFLOW, THRIFT = "127.0.0.1:6653", "127.0.0.1:9090"


def blast(**changes: Any) -> BlastTopo:
    """Claim a lab id and return its topology, with the parameters of `mn --topo blast,NAME=VALUE,…`."""
    if "splitters" in changes:
        changes["splitters"] = parse_splitters(changes["splitters"].replace("+", ","))
    plan = preset(changes.pop("preset", "small"), **changes)
    names = registry.claim()
    _labs.append(names.lab)
    tl1, directory = free_address(), registry.directory(names.lab)
    endpoints, service = Endpoints(THRIFT, OPENFLOW, tl1), Service(directory / "journal.sqlite", INTERACTIVE_LEASE_MS)
    (directory / "controller.toml").write_text(render(plan, endpoints, service))
    info(f"*** Lab {names.lab}: {plan.summary}\n*** Configuration: {directory / 'controller.toml'}\n")
    return BlastTopo(plan, Build(names, tl1, directory / "ocs1.log"))


topos = {"blast": blast}
atexit.register(cleanup)

"""Labs for integration tests: small, quickly built, each with its own id, and removed after the test."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mininet_topos.kernel.netdev import batch, query
from mininet_topos.lab.cleanup import down
from mininet_topos.topology.counters import Traffic, interface_traffic
from mininet_topos.topology.optical_fabric import OpticalFabric
from mininet_topos.topology.plan import LabPlan
from tests.support.waiting import at_rest, eventually

if TYPE_CHECKING:
    from mininet_topos.lab.lab import Lab

MakeLab = Callable[..., "Lab"]
BLAST_PRIORITY = 40000


@pytest.fixture
def make_lab() -> Iterator[MakeLab]:
    """Yield a function that starts labs, without controller and switch unless asked for; stop them at the end."""
    from mininet_topos.lab.lab import Lab

    labs: list[Lab] = []

    def make(plan: LabPlan, **options: object) -> Lab:
        lab = Lab(plan, **{"controller": None, "agent": None, **options})
        lab.start()
        labs.append(lab)
        return lab

    yield make
    for lab in labs:
        lab.stop()
        down(lab.id)


class LightBench:
    """A lab whose optical switch and ToRs are set by hand, and whose fibers can be lit and watched one by one."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.plan = lab, lab.plan
        run_tc = partial(batch, "tc", namespace_pid=lab.optical_switch.pid)
        self.fabric = OpticalFabric(lab.names, lab.plan.ocs_ports, lab.plan.splitter_plans, run_tc)
        self.fabric.prepare()

    def connect(self, *circuits: tuple[int, int]) -> None:
        """Add circuits; others stay."""
        self.fabric.apply([], circuits)

    def disconnect(self, *circuits: tuple[int, int]) -> None:
        """Remove circuits."""
        self.fabric.apply(circuits, [])

    def light(self) -> dict[int, Traffic]:
        """Return the counters of every rack's first optical port."""
        return {rack.number: self.lab.counters.optical(rack.number) for rack in self.plan.rack_plans}

    def shine(self, rack: int, frames: int = 50) -> dict[int, int]:
        """Put frames into the transmit fiber of a rack; rack → how many came out of its receive fiber."""
        before = self.light()
        emit(self.lab.names.optical_at_tor(rack, 1), frames)
        after = at_rest(self.light)
        return {n: seen for n in after if (seen := after[n].received_packets - before[n].received_packets)}

    def steer(self, rack: int, match: str, actions: str) -> None:
        """Add a rule to a rack's ToR, as Blast would."""
        bridge = self.lab.names.bridge(self.plan.rack_plans[rack - 1].datapath)
        rule = f"cookie=0xb1a5000000000001,priority={BLAST_PRIORITY},{match},actions={actions}"
        query(["ovs-ofctl", "-O", "OpenFlow13", "add-flow", bridge, rule])


def emit(interface: str, frames: int) -> None:
    """Send frames out of an interface of the root namespace, as its owner would."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((interface, 0))
        before = interface_traffic(interface).sent_packets
        frame = bytes.fromhex("01005e4d0001 02b1a5000101 0800".replace(" ", "")) + bytes(500)
        for _ in range(frames):
            sender.send(frame)
        eventually(lambda: interface_traffic(interface).sent_packets >= before + frames, "the transmitter to send")


@pytest.fixture(scope="module")
def content(request: pytest.FixtureRequest) -> bytes:
    """Return random bytes, as many as `SIZE` of the module."""
    return random.Random(77).randbytes(request.module.SIZE)


@pytest.fixture
def file(tmp_path: Path, content: bytes) -> Path:
    """Return the path of a file with the module's `content`."""
    path = tmp_path / "content.bin"
    path.write_bytes(content)
    return path

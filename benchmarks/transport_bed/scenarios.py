"""The Kascade paper's scenarios (section IV), on a bed: what is built, who sends how."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from transport_bed.bed import Plan
from transport_bed.programs import HERE
from transport_bed.shape import UNSHAPED, Shape
from transport_bed.tools.blast import PORT, BlastPipeline

if TYPE_CHECKING:
    from transport_bed.run import Run

HOSTS_PER_RACK = 10
SHAPE = Shape(16.0)
UPLINKS = Shape(64.0)
"""A rack's link to the core carries what four of its ten hosts can send."""
LONG_SHAPE = Shape(400.0)
ONE_WAY_MS = 8.0
_RELAY_PORT = 7010
_FIRST_FAR = 2
"""The sender and host 1 are on one site, every further host is on one of its own."""


@dataclass(frozen=True)
class Scenario:
    """`section` of the paper; what is built for so many receivers; the pipeline for the run with this number."""

    name: str
    section: str
    receivers: tuple[int, ...]
    megabytes: int
    plan: Callable[[int], Plan]
    pipeline: Callable[[int, int], BlastPipeline]
    tools: tuple[str, ...] = field(default=())
    """Other tools that can be compared with here."""
    to_disk: bool = False

    @property
    def rate_mbps(self) -> float | None:
        """Of a host's link."""
        return self.plan(self.receivers[0]).shape.rate_mbps


def racks(receivers: int) -> Plan:
    """Hosts in racks of `HOSTS_PER_RACK`, the sender in the first."""
    hosts = range(receivers + 1)
    grouped = tuple(tuple(hosts[start : start + HOSTS_PER_RACK]) for start in range(0, len(hosts), HOSTS_PER_RACK))
    return Plan(receivers, SHAPE, grouped, UPLINKS, light=False)


def one_network(shape: Shape) -> Callable[[int], Plan]:
    """All hosts on one network."""
    return lambda receivers: Plan(receivers, shape, light=False)


def in_order(_receivers: int, _seed: int) -> BlastPipeline:
    """Along the racks, which is the natural order of the names."""
    return BlastPipeline()


def in_random_order(receivers: int, seed: int) -> BlastPipeline:
    """Another one for every seed."""
    pipeline = BlastPipeline()
    order = random.Random(f"{receivers} {seed}").sample(range(1, receivers + 1), receivers)
    pipeline.names = {receiver: f"n{place}" for place, receiver in enumerate(order, 1)}
    return pipeline


class FarPipeline(BlastPipeline):
    """Every receiver but the first is reached through a relay beside it, which adds the way to its site."""

    def prepare(self, run: Run) -> None:
        """The relays too."""
        super().prepare(run)
        for receiver in run.receivers:
            if receiver >= _FIRST_FAR:
                address = run.bed.packet_address(receiver)
                ends = [f"{address}:{_RELAY_PORT}", f"{address}:{PORT}", str(ONE_WAY_MS)]
                relay = run.start(receiver, "relay", [sys.executable, HERE / "delay_relay.py", *ends])
                relay.await_line("ready", run.deadline)
                self.ports[receiver] = _RELAY_PORT


SCALE = (10, 25, 50, 75, 100)
PEERS = ("udpcast", "taktuk-chain", "taktuk-tree")
SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("ordered", "IV-A", SCALE, 20, racks, in_order, PEERS),
        Scenario("random", "IV-C", SCALE, 20, racks, in_random_order),
        Scenario("disk", "IV-D", SCALE, 20, racks, in_order, to_disk=True),
        Scenario(
            "sites",
            "IV-E",
            (1, 2, 3, 4, 5, 6),
            200,
            one_network(LONG_SHAPE),
            lambda _receivers, _seed: FarPipeline(),
        ),
        Scenario("small", "IV-F", SCALE, 50, one_network(UNSHAPED), in_order, PEERS),
    )
}

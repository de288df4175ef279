"""The Kascade paper's scenarios (section IV), on a bed: what is built, which tools can work there, in which order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations

from transport_bed.bed import SENDER, Bed, Plan
from transport_bed.distance import apart
from transport_bed.shape import UNSHAPED, Shape
from transport_bed.tools.blast_send import BlastSend
from transport_bed.tools.clustered import NaiveByClush, UdpcastByClush
from transport_bed.tools.open_mpi import OpenMpi
from transport_bed.tools.served import Served
from transport_bed.tools.taktuk import TakTukChain, TakTukTree

HOSTS_PER_RACK = 10
SHAPE = Shape(16.0)
UPLINKS = Shape(64.0)
"""A rack's link to the core carries what four of its ten hosts can send."""
LONG_SHAPE = Shape(400.0)
ONE_WAY_MS = 8.0

OURS = BlastSend.name
COMMANDS: dict[str, type[Served]] = {
    tool.name: tool for tool in (BlastSend, UdpcastByClush, TakTukChain, TakTukTree, OpenMpi, NaiveByClush)
}
"""What is compared, each as one command that starts everything itself."""
PEERS = tuple(name for name in COMMANDS if name != OURS)


def in_order(receivers: int, _seed: int) -> list[int]:
    """Along the racks, which is the natural order of the names."""
    return list(range(1, receivers + 1))


def in_random_order(receivers: int, seed: int) -> list[int]:
    """Another one for every seed; the same for every tool."""
    return random.Random(f"{receivers} {seed}").sample(range(1, receivers + 1), receivers)


@dataclass(frozen=True)
class Scenario:
    """`section` of the paper; what is built for so many receivers; the order of receivers in the run of this number."""

    name: str
    section: str
    receivers: tuple[int, ...]
    megabytes: int
    plan: Callable[[int], Plan]
    order: Callable[[int, int], Sequence[int]] = in_order
    unable: Mapping[str, str] = field(default_factory=dict)
    """Tools that cannot work here, and why."""
    to_disk: bool = False
    one_way_ms: float = 0.0
    """Between any two hosts but the sender and the first receiver, which are at one site."""

    @property
    def rate_mbps(self) -> float | None:
        """Of a host's link."""
        return self.plan(self.receivers[0]).shape.rate_mbps

    @contextmanager
    def distances(self, bed: Bed) -> Iterator[None]:
        """What the bed needs for `one_way_ms`."""
        pairs = [pair for pair in combinations(bed.plan.hosts, 2) if pair != (SENDER, 1)]
        if not self.one_way_ms or not pairs:
            yield
            return
        with apart(bed, pairs, self.one_way_ms):
            yield


def racks(receivers: int) -> Plan:
    """Hosts in racks of `HOSTS_PER_RACK`, the sender in the first."""
    hosts = range(receivers + 1)
    grouped = tuple(tuple(hosts[start : start + HOSTS_PER_RACK]) for start in range(0, len(hosts), HOSTS_PER_RACK))
    return Plan(receivers, SHAPE, grouped, UPLINKS, light=False)


def one_network(shape: Shape) -> Callable[[int], Plan]:
    """All hosts on one network."""
    return lambda receivers: Plan(receivers, shape, light=False)


SCALE = (5, 10, 25, 50, 75, 100)
_ROUTED = {UdpcastByClush.name: "its multicast does not pass a router by itself; the paper leaves it out here as well"}
SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("ordered", "IV-A", SCALE, 20, racks),
        Scenario("fast", "IV-B", (1, 2, 4, 7, 10, 14), 500, one_network(UNSHAPED)),
        Scenario("random", "IV-C", SCALE, 20, racks, in_random_order),
        Scenario("disk", "IV-D", SCALE, 20, racks, to_disk=True),
        Scenario(
            "sites",
            "IV-E",
            (1, 2, 3, 4, 5, 6),
            200,
            one_network(LONG_SHAPE),
            unable=_ROUTED,
            one_way_ms=ONE_WAY_MS,
        ),
        Scenario("small", "IV-F", SCALE, 50, one_network(UNSHAPED)),
    )
}

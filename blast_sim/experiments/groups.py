"""Senders, receivers, sizes and times of multicasts, drawn from a scenario's section with a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

from blast_sim.flow.network import RackNetwork
from blast_sim.methods.method import Multicast
from blast_sim.scenarios.schema import MulticastsSection

MEGABYTE = 1_000_000


def multicasts(section: MulticastsSection, network: RackNetwork, seed: int) -> list[tuple[float, Multicast]]:
    """Return every multicast with its submission time in seconds, in order of time."""
    dice = random.Random(f"flow/groups/{seed}")
    racks = _rack_sets(section, network, dice)
    moments = _moments(section, dice)
    return [(next(moments), _multicast(section, network, number, group, dice)) for number, group in enumerate(racks)]


def pods_of(racks: int, pods: int) -> list[range]:
    """Return the racks of each pod, divided as `Optics` divides them among optical switches."""
    ends = [-(-number * racks // pods) for number in range(pods + 1)]
    return [range(*both) for both in pairwise(ends)]


def servers_of(network: RackNetwork, racks: Sequence[int]) -> list[int]:
    """Return all servers of these racks."""
    return [server for rack in racks for server in network.servers_of(rack)]


def _rack_sets(section: MulticastsSection, network: RackNetwork, dice: random.Random) -> list[list[int]]:
    sizes = [dice.randint(*section.rack_range) for _ in range(section.groups)]
    pods = pods_of(network.racks, section.pods)
    if not section.disjoint:
        return [dice.sample(pods[number % section.pods], size) for number, size in enumerate(sizes)]
    shuffled = [iter(dice.sample(pod, len(pod))) for pod in pods]
    return [[next(shuffled[number % section.pods]) for _ in range(size)] for number, size in enumerate(sizes)]


def _moments(section: MulticastsSection, dice: random.Random) -> Iterator[float]:
    now = 0.0
    while True:
        if section.arrivals_per_second is not None:
            now += dice.expovariate(section.arrivals_per_second)
        yield now


def _multicast(
    section: MulticastsSection, network: RackNetwork, number: int, racks: Sequence[int], dice: random.Random
) -> Multicast:
    factor = math.exp(dice.gauss(0.0, section.size_spread)) if section.size_spread else 1.0
    size = max(1, round(section.megabytes * MEGABYTE * factor))
    sender, *receivers = servers_of(network, racks)
    tenant = f"tenant{number % section.tenants}"
    deadline = section.deadline_factor and section.deadline_factor * 8 * size / network.light_rate
    return Multicast(f"m{number}", sender, tuple(receivers), size, tenant, deadline)

"""Worlds for tests of the flow-level simulator, and independently computed answers."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence

import numpy as np

from blast_sim.fair import Paths, fair_rates
from blast_sim.flow.background import Rounds
from blast_sim.flow.engine import EXACT, Simulation, Stepping
from blast_sim.flow.network import RackNetwork
from blast_sim.methods.method import Method, Multicast, World

GIGABIT = 1e9


def small_network(racks: int = 6, servers: int = 4, uplink: float = 16.0, light_ports: int = 1) -> RackNetwork:
    """Return a network with server links and optical ports of 10 Gbit/s."""
    return RackNetwork(racks, servers, 10 * GIGABIT, uplink * GIGABIT, 10 * GIGABIT, light_ports)


def world(network: RackNetwork, each_way: int = 0, seed: int = 0, stepping: Stepping = EXACT) -> World:
    """Return a network with `each_way` background flows in each direction, otherwise idle."""
    simulation = Simulation(network.capacities, Rounds(network, each_way), stepping)
    return World(network, simulation, random.Random(seed))


def group(network: RackNetwork, racks: Iterable[int], size: int = 300_000_000, name: str = "m") -> Multicast:
    """Return a multicast from the first server of the first rack to all other servers of these racks."""
    sender, *receivers = (server for rack in racks for server in network.servers_of(rack))
    return Multicast(name, sender, tuple(receivers), size)


def times_of(where: World, method: Method, multicasts: Sequence[Multicast]) -> dict[str, float]:
    """Return the completion times of multicasts that all start at 0."""
    taken: dict[str, float] = {}
    for one in multicasts:
        method.send(one, lambda one=one: taken.update({one.name: where.simulation.clock.now}))
    where.simulation.run(lambda: len(taken) == len(multicasts))
    return taken


def played_plainly(capacities: np.ndarray, paths: Sequence[Sequence[int]], bits: Sequence[float]) -> list[float]:
    """Return the end of each of these flows, which begin together, with all rates recomputed after every end."""
    ends = [math.inf] * len(paths)
    left = dict(enumerate(bits))
    now = 0.0
    while left:
        names = list(left)
        rates = fair_rates(capacities, Paths.of([paths[name] for name in names]), solver="numpy")
        moments = [left[name] / rate for name, rate in zip(names, rates, strict=True)]
        step = min(moments)
        now += step
        for name, rate, moment in zip(names, rates, moments, strict=True):
            left[name] -= rate * step
            if moment <= step * (1 + 1e-12):
                ends[name] = now
                del left[name]
    return ends

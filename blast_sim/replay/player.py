"""Plays a workload under one policy: requests at their arrivals, and shuffles after them.

Every job has one server in each of its racks for its multicast (the n-th job the n-th server, cyclically). Shuffles
share the racks' uplinks only: a rack's part in one is spread over the rack's servers. Traffic within a rack uses no
link.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np

from blast_sim.fair import Paths
from blast_sim.fair.paths import Places
from blast_sim.flow.engine import Simulation
from blast_sim.methods.hdfs import hdfs
from blast_sim.methods.method import Multicast, Phased, World
from blast_sim.methods.naive import naive
from blast_sim.methods.overlay import overlay
from blast_sim.methods.pipeline import pipeline
from blast_sim.methods.trees import trees
from blast_sim.replay.result import MulticastOutcome, ReplayOutcome
from blast_sim.replay.setting import Setting
from blast_sim.traces.workload import Shuffle, Workload
from blast_sim.traces.workload import TraceMulticast as Request

FALLBACKS = {"naive": naive, "pipeline": pipeline, "trees": trees, "overlay": overlay, "hdfs": hdfs}
RACK_LINKS = slice(1, 3)
"""Where the racks' links stand in a path between servers of two racks."""


class Player:
    """One run; `ended` is called whenever a multicast or a shuffle is done."""

    def __init__(self, workload: Workload, setting: Setting, policy: str, on_end: Callable[[], None]) -> None:
        self._workload = workload
        self._on_end = on_end
        network = setting.network
        self._world = World(network, Simulation(network.capacities), random.Random("replay"))
        self._clock = self._world.simulation.clock
        self._sent = [self._multicast(place, one) for place, one in enumerate(workload.multicasts)]
        servers = dict.fromkeys(server for one in self._sent for server in one.servers)
        self._blast = setting.blast(
            self._world, servers, policy, Phased(self._world, FALLBACKS[setting.light.fallback])
        )
        self._done: dict[str, float] = {}
        self._shuffled: dict[str, float] = {}
        self._following = {one.after: one for one in workload.shuffles if one.after is not None}

    def play(self) -> ReplayOutcome:
        """Play from the first arrival to the last end. Raises StalledError, which would be a method's fault."""
        for request, sent in zip(self._workload.multicasts, self._sent, strict=True):
            self._clock.at(request.arrival, partial(self._blast.send, sent, partial(self._arrived, request)))
        for shuffle in self._workload.shuffles:
            if shuffle.after is None:
                self._clock.at(shuffle.arrival, partial(self._shuffle, shuffle))
        total = len(self._workload.multicasts), len(self._workload.shuffles)
        self._world.simulation.run(lambda: (len(self._done), len(self._shuffled)) == total)
        return ReplayOutcome([self._played(one) for one in self._workload.multicasts], self._shuffled)

    def _played(self, request: Request) -> MulticastOutcome:
        compute = self._blast.computes.get(request.name)
        return MulticastOutcome(request, self._done[request.name], compute or 0.0, compute is not None)

    def _multicast(self, place: int, request: Request) -> Multicast:
        per_rack = self._world.network.servers_per_rack
        sender, *receivers = (rack * per_rack + place % per_rack for rack in (request.sender, *request.receivers))
        return Multicast(request.name, sender, tuple(receivers), request.bytes)

    def _arrived(self, request: Request) -> None:
        self._done[request.name] = self._clock.now - request.arrival
        self._on_end()
        if request.name in self._following:
            self._shuffle(self._following[request.name])

    def _shuffle(self, shuffle: Shuffle) -> None:
        begun = self._clock.now
        senders, receivers = np.array(shuffle.senders), np.array(shuffle.receivers)
        bits = 8.0 * np.array(shuffle.bytes) / len(senders)
        sources, targets = np.repeat(senders, len(receivers)), np.tile(receivers, len(senders))
        across = sources != targets
        if not across.any():
            self._shuffle_done(shuffle, begun)
            return
        left = int(across.sum())

        def ended(which: Places) -> None:
            nonlocal left
            left -= len(which)
            if not left:
                self._shuffle_done(shuffle, begun)

        paths = self._between(sources[across], targets[across])
        self._world.simulation.start(paths, np.tile(bits, len(senders))[across], ended)

    def _shuffle_done(self, shuffle: Shuffle, begun: float) -> None:
        self._shuffled[shuffle.name] = self._clock.now - begun
        self._on_end()

    def _between(self, sources: Places, targets: Places) -> Paths:
        network = self._world.network
        whole = network.between_racks(sources * network.servers_per_rack, targets * network.servers_per_rack)
        return Paths.rows(whole.links.reshape(len(whole), -1)[:, RACK_LINKS])

"""The interface of a multicast method: it sends from one server to others on a simulation, and reports completion."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from blast_sim.flow.engine import Simulation
from blast_sim.flow.network import RackNetwork
from blast_sim.flow.phases import Graph, Phase

Order = Literal["sequential", "parallel"]
"""The order of parts: one after another, or all at once."""

Done = Callable[[], None]
"""Called when every receiver has all data."""


@dataclass(frozen=True, slots=True)
class Multicast:
    """One sender (a server), its receivers, and the data; `name` is unique.

    `tenant` and `deadline` (seconds from submission) matter to policies of the optical network only.
    """

    name: str
    sender: int
    receivers: tuple[int, ...]
    bytes: int
    tenant: str = "default"
    deadline: float | None = None

    @property
    def bits(self) -> float:
        """The size of the data."""
        return 8.0 * self.bytes

    @property
    def servers(self) -> tuple[int, ...]:
        """The sender and the receivers."""
        return (self.sender, *self.receivers)


@dataclass(frozen=True, slots=True)
class World:
    """Where methods work: a network, flows on it, and dice of the run's own."""

    network: RackNetwork
    simulation: Simulation
    dice: random.Random

    def by_rack(self, servers: Sequence[int]) -> dict[int, list[int]]:
        """Return servers by their rack, racks and servers in order of appearance."""
        found: dict[int, list[int]] = {}
        for server in servers:
            found.setdefault(self.network.rack_of(server), []).append(server)
        return found


class Method(Protocol):
    """A way to multicast, at work in one world."""

    def send(self, multicast: Multicast, done: Done) -> None:
        """Begin to send now."""


class Phased:
    """A method whose transfers are known at the start, as `phases` returns them."""

    def __init__(self, world: World, phases: Callable[[World, Multicast], Sequence[Phase]]) -> None:
        self._world = world
        self._phases = phases

    def send(self, multicast: Multicast, done: Done) -> None:
        """Begin to send now."""
        Graph(self._world.simulation, self._phases(self._world, multicast), done).start()

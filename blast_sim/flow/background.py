"""Synthetic unicast traffic in rounds (Blast, section VI-A): endless flows, replaced at the start of each round."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from blast_sim.fair import Paths
from blast_sim.flow.network import RackNetwork


@dataclass(frozen=True, slots=True)
class Rounds:
    """In round t server j of rack i talks to server j of the racks i + t ± 1, … i + t ± `each_way`, modulo racks.

    Endless flows between the same two servers are one flow, whatever rounds they are of. A flow that would end in its
    own rack is a loop-back and uses no link. Needs 2 x `each_way` < racks, so that no two of a round are the same.
    Light traffic has 3 each way, heavy traffic 40.
    """

    network: RackNetwork
    each_way: int
    seconds: float = 1.0

    def number(self, now: float) -> int:
        """Return the number of the round at the time `now`."""
        return math.floor(now / self.seconds)

    def end(self, number: int) -> float:
        """Return the time in seconds at which a round is over; infinite without traffic."""
        return (number + 1) * self.seconds if self.each_way else math.inf

    def shifts(self, number: int) -> list[int]:
        """Return the rack distances at which every server has a peer; most of them stay in the next round."""
        racks = self.network.racks
        away = {(number + side * step) % racks for step in range(1, self.each_way + 1) for side in (1, -1)}
        return sorted(away - {0})

    def paths(self, shift: int) -> Paths:
        """Return the flows of all servers to their peers at this rack distance."""
        servers = np.arange(self.network.servers)
        return self.network.between_racks(
            servers, (servers + shift * self.network.servers_per_rack) % self.network.servers
        )

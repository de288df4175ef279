"""Data that hosts pass on block by block: how long the last block takes behind a flow over all hops.

A host sends a block on when it has all of it and has sent the one before. With one rate for each hop, the last host has
the last of n equal blocks after the sum over the hops of block / rate, and n - 1 times block / rate of the slowest hop.
One flow of all data over all hops takes n times block / rate of the slowest hop; `lag` is the rest. The hops that are
faster than the slowest one add what they take for a block, and not what the slowest one takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from blast_sim.fair import Paths
from blast_sim.fair.paths import Numbers

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Relays:
    """`hops` has the links of each of `edges`, which form a tree of hosts; they pass on blocks of `block` bits."""

    edges: Sequence[Edge]
    hops: Paths
    block: float

    @property
    def flow(self) -> Paths:
        """One flow over all hops."""
        return Paths(np.array([0, len(self.hops.links)], np.int64), self.hops.links)

    def alone(self, capacities: Numbers) -> Numbers:
        """Return the rate of each hop without other traffic."""
        return np.minimum.reduceat(capacities[self.hops.links], self.hops.offsets[:-1])

    def lag(self, rates: Numbers, pace: float = np.inf) -> float:
        """Return the seconds from the end of the flow to the arrival of the last block, at these rates of the hops.

        A sender that paces itself sends no faster than `pace`.
        """
        return self.block * max(0.0, longest(self.edges, (1 / rates).tolist()) - 1 / min(pace, float(rates.min())))


def longest(edges: Sequence[Edge], lengths: Iterable[float]) -> float:
    """Return the length of the longest path from the root of a tree to a leaf; `lengths` are those of the edges."""
    above = {receiver: (sender, length) for (sender, receiver), length in zip(edges, lengths, strict=True)}
    found = dict.fromkeys({sender for sender, _ in edges} - above.keys(), 0.0)
    for host in above:
        path = [host]
        while path[-1] not in found:
            path.append(above[path[-1]][0])
        for one in reversed(path[:-1]):
            sender, length = above[one]
            found[one] = found[sender] + length
    return max(found.values())

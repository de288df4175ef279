"""A two-level overlay in the manner of SplitStream with Spark's topology awareness (Blast, section VI-A).

A swarm of n cuts the data into n - 1 stripes; its first member sends a different one to each of the others, each of
whom passes it on to the rest. The sender and a leader in every other rack are a swarm, and the sender and each leader
are the first of a swarm in their rack. The paper leaves open whether the second stage waits for the end of the first:
`parallel` stages begin together, as if leaders had data to pass on from the start.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blast_sim.fair import Paths
from blast_sim.flow.phases import Phase, in_sequence
from blast_sim.methods.method import Multicast, Order, World


def overlay(world: World, multicast: Multicast, stages: Order = "sequential") -> list[Phase]:
    """Return two phases: a swarm between racks, of one server each, and swarms within all racks."""
    racks = list(world.by_rack(multicast.servers).values())
    between, *within = (_swarm(world, swarm, multicast.bits) for swarm in ([rack[0] for rack in racks], *racks))
    paths = Paths.concatenate([phase.paths for phase in within])
    inside = Phase(paths, np.repeat([phase.bits for phase in within], [len(p.paths) for p in within]))
    return in_sequence(between, inside) if stages == "sequential" else [between, inside]


def _swarm(world: World, members: Sequence[int], bits: float) -> Phase:
    """Return one phase with all flows of a swarm."""
    first, *others = members
    pairs = [(first, other) for other in others]
    pairs += [(one, other) for one in others for other in others if other != one]
    paths = world.network.unicast([one for one, _ in pairs], [other for _, other in pairs])
    return Phase(paths, bits / max(1, len(others)))

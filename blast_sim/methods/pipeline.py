"""A pipeline (Kascade): every server passes on to the next what it gets from the one before, block by block.

Buffers are small against the data, so all hops have the rate of the slowest: the pipeline is one flow over all its
hops, and the last block passes each of them at its own rate (`blast_sim/flow/relays.py`). The order is by rack, the
sender's first, so that each rack is entered and left once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

from blast_sim.flow.phases import Phase
from blast_sim.flow.relays import Edge, Relays
from blast_sim.methods.method import Multicast, World

BLOCK = 64_064
"""Bytes that a server takes in before it passes them on: a block of our transport at the Ethernet MTU, 44 datagrams."""


def pipeline(world: World, multicast: Multicast) -> list[Phase]:
    """Return one phase: a flow of the data over all hops."""
    order = list(chain.from_iterable(world.by_rack(multicast.servers).values()))
    relays = relays_along(world, list(pairwise(order)), multicast.bits)
    return [Phase(relays.flow, multicast.bits, relays=relays)]


def relays_along(world: World, edges: Sequence[Edge], bits: float) -> Relays:
    """Return the hops between these servers for the data, which may be less than a block."""
    hops = world.network.unicast([sender for sender, _ in edges], [receiver for _, receiver in edges])
    return Relays(edges, hops, min(8.0 * BLOCK, bits))

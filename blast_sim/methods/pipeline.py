"""A pipeline (Kascade): every server passes on to the next what it gets from the one before, chunk by chunk.

Buffers are small against the data, so all hops have the rate of the slowest: the pipeline is one flow over all its
hops. The last server gets the first chunk when all before it have passed that on, one chunk's time a hop. The order is
by rack, the sender's first, so that each rack is entered and left once.
"""

from __future__ import annotations

from itertools import chain

from blast_sim.flow.phases import Phase
from blast_sim.methods.method import Multicast, World

CHUNK = 1_000_000
"""Bytes that a server takes in before it passes them on."""


def pipeline(world: World, multicast: Multicast) -> list[Phase]:
    """One flow of the data and of the chunks that fill the pipeline."""
    order = list(chain.from_iterable(world.by_rack(multicast.servers).values()))
    fill = (len(order) - 2) * min(CHUNK, multicast.bytes) * 8.0
    return [Phase(world.network.chain(order), multicast.bits + fill)]

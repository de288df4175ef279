"""Naive unicast (Blast, section VI-A): a flow of its own to every receiver, all at the same time."""

from __future__ import annotations

from blast_sim.flow.phases import Phase
from blast_sim.methods.method import Multicast, World


def naive(world: World, multicast: Multicast) -> list[Phase]:
    """Return one phase: flows from the sender to every receiver."""
    sources = [multicast.sender] * len(multicast.receivers)
    return [Phase(world.network.unicast(sources, multicast.receivers), multicast.bits)]

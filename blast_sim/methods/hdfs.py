"""HDFS (Blast, section VI-A): the sender writes blocks with three replicas, then everybody reads the closest ones.

Readings of what the paper leaves open: blocks are written one after another; of a block the two copies flow at the same
time, from the sender to another server of its rack and on from there to a server in another rack of the group. When all
are written every receiver reads all blocks at once, each from a replica in its own rack if there is one, with equally
close ones by lot. A server that holds a replica does not read that block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from blast_sim.flow.phases import Phase, in_sequence
from blast_sim.methods.method import Multicast, World

BLOCK = 64_000_000
"""Bytes; Hadoop's default, decimal like the paper's sizes."""

Replicas = tuple[int, ...]


def hdfs(world: World, multicast: Multicast) -> list[Phase]:
    """A phase for each block that is written, and one in which all are read."""
    blocks = [min(BLOCK, multicast.bytes - first) * 8.0 for first in range(0, multicast.bytes, BLOCK)]
    replicas = [_replicas(world, multicast) for _ in blocks]
    writes = [_write(world, where, bits) for where, bits in zip(replicas, blocks, strict=True)]
    return in_sequence(*writes, _read(world, multicast.receivers, replicas, blocks))


def _replicas(world: World, multicast: Multicast) -> Replicas:
    """The sender, a second server of its rack, and one in another rack of the group, or of all if it has no other."""
    network, sender = world.network, multicast.sender
    here = network.rack_of(sender)
    beside = [server for server in network.servers_of(here) if server != sender]
    elsewhere = [server for server in multicast.receivers if network.rack_of(server) != here]
    elsewhere = elsewhere or [server for server in range(network.servers) if network.rack_of(server) != here]
    return (sender, *(world.dice.choice(choices) for choices in (beside, elsewhere) if choices))


def _write(world: World, replicas: Replicas, bits: float) -> Phase:
    return Phase(world.network.unicast(replicas[:-1], replicas[1:]), bits)


def _read(world: World, readers: Sequence[int], replicas: Sequence[Replicas], blocks: Sequence[float]) -> Phase:
    """Equal blocks that one reads from another are one entry with a multiplicity: they get equal rates throughout."""
    flows = Counter(
        (_closest(world, reader, where), reader, bits)
        for reader in readers
        for where, bits in zip(replicas, blocks, strict=True)
        if reader not in where
    )
    sources, targets, bits_each = zip(*flows, strict=True) if flows else ((), (), ())
    return Phase(world.network.unicast(sources, targets), np.array(bits_each), multiplicity=list(flows.values()))


def _closest(world: World, reader: int, replicas: Replicas) -> int:
    rack = world.network.rack_of(reader)
    return world.dice.choice([one for one in replicas if world.network.rack_of(one) == rack] or replicas)

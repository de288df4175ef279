"""HDFS (Blast, section VI-A): the sender writes blocks with three replicas, then every receiver reads the closest ones.

The copies of a block are written at the same time, from the sender to another server of its rack and on from there to a
server in another rack. When all blocks are written every receiver reads them, each from a replica in its own rack if
there is one, otherwise from a random one of equally close replicas. A server that holds a replica does not read that
block.

`HdfsReading` covers the points that the paper leaves open. Blast's advantage depends on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from blast_sim.flow.phases import Phase, in_sequence
from blast_sim.methods.method import Multicast, Order, World

BLOCK = 64_000_000
"""Bytes; Hadoop's default, decimal like the paper's sizes."""

Replicas = tuple[int, ...]
Stored = tuple[Replicas, float]
"""Where a block is, and its bits."""


@dataclass(frozen=True, slots=True)
class HdfsReading:
    """The points that the paper leaves open: the order of writes and reads, and the rack of the third replica.

    Blocks are written and read one after another or all at once. The third replica is in the group or in the whole
    cluster. With sequential reads, no receiver begins a block before all have the previous one.
    """

    writes: Order = "sequential"
    third_replica: Literal["group", "cluster"] = "group"
    reads: Order = "parallel"


DEFAULT_READING = HdfsReading()


def hdfs(world: World, multicast: Multicast, reading: HdfsReading = DEFAULT_READING) -> list[Phase]:
    """Return the phases that write the blocks, and then the phases that read them."""
    blocks = [min(BLOCK, multicast.bytes - first) * 8.0 for first in range(0, multicast.bytes, BLOCK)]
    replicas = [_replicas(world, multicast, reading.third_replica == "group") for _ in blocks]
    stored = list(zip(replicas, blocks, strict=True))
    writes = [_write(world, some) for some in _steps(stored, reading.writes)]
    reads = [_read(world, multicast.receivers, some) for some in _steps(stored, reading.reads)]
    return in_sequence(*writes, *reads)


def _steps(stored: Sequence[Stored], order: Order) -> list[Sequence[Stored]]:
    """Return the blocks of each step."""
    return [stored] if order == "parallel" else [[one] for one in stored]


def _replicas(world: World, multicast: Multicast, in_group: bool) -> Replicas:
    """Return the sender, a second server of its rack, and a server of another rack.

    The other rack is of the group if `in_group` and the group has one, otherwise any.
    """
    network, sender = world.network, multicast.sender
    here = network.rack_of(sender)
    beside = [server for server in network.servers_of(here) if server != sender]
    elsewhere = [server for server in multicast.receivers if in_group and network.rack_of(server) != here]
    elsewhere = elsewhere or [server for server in range(network.servers) if network.rack_of(server) != here]
    return (sender, *(world.dice.choice(choices) for choices in (beside, elsewhere) if choices))


def _write(world: World, stored: Sequence[Stored]) -> Phase:
    copies = [(one, other, bits) for replicas, bits in stored for one, other in pairwise(replicas)]
    sources, targets, bits_each = zip(*copies, strict=True) if copies else ((), (), ())
    return Phase(world.network.unicast(sources, targets), np.array(bits_each))


def _read(world: World, readers: Sequence[int], stored: Sequence[Stored]) -> Phase:
    """Return the phase in which the readers read these blocks from the closest replicas.

    Equal blocks of one reader from one server are one entry with a multiplicity: they get equal rates throughout.
    """
    flows = Counter(
        (_closest(world, reader, where), reader, bits)
        for reader in readers
        for where, bits in stored
        if reader not in where
    )
    sources, targets, bits_each = zip(*flows, strict=True) if flows else ((), (), ())
    return Phase(world.network.unicast(sources, targets), np.array(bits_each), multiplicity=list(flows.values()))


def _closest(world: World, reader: int, replicas: Replicas) -> int:
    rack = world.network.rack_of(reader)
    return world.dice.choice([one for one in replicas if world.network.rack_of(one) == rack] or replicas)

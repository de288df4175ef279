"""Several balanced trees at once (`algorithms/balanced`), each with a part of the data in proportion to its rate.

Servers pass on block by block what they get, and buffers are small against the data, so all edges of a tree have the
rate of its slowest: a tree is one flow over all its edges. Its root paces it, so it never exceeds the rate it was
planned with, and has less where others compete. The last server gets its first block when those before it have passed
that on, one block's time for each edge but the first on the longest way. Over a thin tree a block takes long: trees
that would end after all others, and cost more by that than they bring, are left out.

Trees are planned between racks, with what the links carry when nobody else is there; how the data is split stays as
planned. Within a rack each tree is a chain, whose last server sends to the next racks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

import numpy as np

from algorithms.balanced.exact import exact
from algorithms.balanced.fpfr import searches
from algorithms.balanced.network import Network as Hosts
from algorithms.balanced.plan import Plan, Tree, edges, highest_rate
from blast_sim.fair import Paths
from blast_sim.flow.phases import Phase
from blast_sim.methods.method import Multicast, World
from blast_sim.methods.pipeline import CHUNK

MOST_PLANNED = 256
"""Racks of a group up to which the best trees are looked for; beyond, it is a single one, found at once."""

Edge = tuple[int, int]


def trees(world: World, multicast: Multicast) -> list[Phase]:
    """One phase: a flow for each tree, of its part of the data and of the blocks that fill it. Raises Disconnected."""
    racks = world.by_rack(multicast.servers)
    chains = list(racks.values())
    if len(chains) == 1:
        within = list(pairwise(chains[0]))
        return [Phase(_flow(world, within), _with_fill(multicast.bits, _height(within) - 1))]
    plan = planned(world.network.as_hosts(list(racks)))
    ways = [list(_between(chains, tree)) for tree in plan.trees]
    bits = worthwhile(multicast.bits, plan.rates, [_height(way) - 1 for way in ways])
    used = len(bits)
    flows = Paths.concatenate([_flow(world, way) for way in ways[:used]])
    return [Phase(flows, bits, rate_caps=plan.rates[:used])]


def worthwhile(bits: float, rates: Sequence[float], waits: Sequence[int]) -> list[float]:
    """What the first so many trees have to carry if they carry everything, for the number that is through first.

    The fastest tree comes first; over each the last server waits for so many blocks.
    """
    splits = (_split(bits, rates[:used], waits) for used in range(1, len(rates) + 1))
    return min(splits, key=lambda split: max(carried / rate for carried, rate in zip(split, rates, strict=False)))


def _split(bits: float, rates: Sequence[float], waits: Sequence[int]) -> list[float]:
    whole = sum(rates)
    return [_with_fill(bits * rate / whole, wait) for rate, wait in zip(rates, waits, strict=False)]


def _with_fill(bits: float, wait: int) -> float:
    return bits + wait * min(8.0 * CHUNK, bits)


def planned(hosts: Hosts) -> Plan:
    """The best trees; for a large group the first of FPFR, which is the best there is where all links are alike."""
    if hosts.size <= MOST_PLANNED:
        return exact(hosts)
    tree, _ = next(searches(hosts))
    return Plan((tree,), (highest_rate(hosts, tree),))


def _between(chains: Sequence[Sequence[int]], tree: Tree) -> Iterator[Edge]:
    """The edges between servers: a tree between racks, and a chain through each of these."""
    yield from chain.from_iterable(map(pairwise, chains))
    for sender, receiver in edges(tree):
        yield chains[sender][-1], chains[receiver][0]


def _flow(world: World, way: Sequence[Edge]) -> Paths:
    hops = world.network.unicast([sender for sender, _ in way], [receiver for _, receiver in way])
    return Paths(np.array([0, len(hops.links)]), hops.links)


def _height(way: Sequence[Edge]) -> int:
    """The edges of the longest way from the root to a leaf."""
    parents = {receiver: sender for sender, receiver in way}
    heights = dict.fromkeys(parents.values() - parents.keys(), 0)
    for server in parents:
        above = [server]
        while above[-1] not in heights:
            above.append(parents[above[-1]])
        for one in reversed(above[:-1]):
            heights[one] = heights[parents[one]] + 1
    return max(heights.values())

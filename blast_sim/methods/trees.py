"""Several balanced trees at once (`algorithms/balanced`), each with a part of the data in proportion to its rate.

Servers forward block by block, and buffers are small compared with the data, so all edges of a tree have the rate of
its slowest: a tree is one flow over all its edges. Its root paces it, so it never exceeds its planned rate, and gets
less under contention. The last block passes the edges of the longest path at their own rates
(`blast_sim/flow/relays.py`), because hosts pace more than one block at once. Over a thin tree a block takes long: trees
that would end after all others, and cost more than they add, are left out.

Trees are planned between racks, with the capacities of idle links; the split of the data stays as planned. Within a
rack each tree is a chain, whose last server sends to the next racks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from algorithms.balanced.exact import exact
from algorithms.balanced.fpfr import searches
from algorithms.balanced.network import Network as Hosts
from algorithms.balanced.plan import MulticastPlan, Tree, edges, max_rate
from blast_sim.flow.phases import Phase
from blast_sim.flow.relays import Edge, longest
from blast_sim.methods.method import Multicast, World
from blast_sim.methods.pipeline import BLOCK, pipeline, relays_along

MAX_PLANNED = 256
"""Racks of a group up to which the best trees are looked for; beyond, it is a single one, found at once."""


def trees(world: World, multicast: Multicast) -> list[Phase]:
    """Return a phase for each tree, all at once: a flow of its part of the data.

    Raises DisconnectedError, SolverError.
    """
    racks = world.by_rack(multicast.servers)
    chains = list(racks.values())
    if len(chains) == 1:
        return pipeline(world, multicast)
    plan = planned(world.network.as_hosts(list(racks)))
    paths = [list(_between(chains, tree)) for tree in plan.trees]
    slowness = [_slowness(world, way) for way in paths]
    parts = worthwhile(multicast.bits, plan.rates, slowness)
    found = []
    for way, bits, rate in zip(paths, parts, plan.rates, strict=False):
        relays = relays_along(world, way, bits)
        found.append(Phase(relays.flow, bits, rate_caps=rate, relays=relays))
    return found


def worthwhile(bits: float, rates: Sequence[float], slowness: Sequence[float]) -> list[float]:
    """Return the amounts for the first trees if they carry all data, for the number of trees that completes first.

    The fastest tree comes first; `slowness` is the delay in seconds of the last server of each tree.
    """
    splits = [_split(bits, rates[:used]) for used in range(1, len(rates) + 1)]
    return min(splits, key=lambda parts: max(map(_seconds, parts, rates, slowness)))


def _split(bits: float, rates: Sequence[float]) -> list[float]:
    whole = sum(rates)
    return [bits * rate / whole for rate in rates]


def _seconds(bits: float, rate: float, slowness: float) -> float:
    """Return the seconds until the last server has its last block, in a network without other traffic."""
    return bits / rate + min(8.0 * BLOCK, bits) * (slowness - 1 / rate)


def _slowness(world: World, way: Sequence[Edge]) -> float:
    """Return the seconds that a bit takes over the longest path, without other traffic."""
    relays = relays_along(world, way, 1.0)
    return longest(way, (1 / relays.alone(world.network.capacities)).tolist())


def planned(hosts: Hosts) -> MulticastPlan:
    """Return the best trees; for a group of more than `MAX_PLANNED` racks, the first tree of FPFR.

    That tree is the best one where all links are equal.
    """
    if hosts.size <= MAX_PLANNED:
        return exact(hosts)
    tree, _ = next(searches(hosts))
    return MulticastPlan((tree,), (max_rate(hosts, tree),))


def _between(chains: Sequence[Sequence[int]], tree: Tree) -> Iterator[Edge]:
    """Yield the edges between servers: a chain through each rack, and a tree between racks."""
    yield from chain.from_iterable(map(pairwise, chains))
    for sender, receiver in edges(tree):
        yield chains[sender][-1], chains[receiver][0]

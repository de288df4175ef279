"""The mixture of unicast and multicast in which the Blast paper measures its greedy (section III-C.3), on 200 racks.

The text gives 300 MB to groups of 100 to 1000 servers, beside unicast between racks as in real data centers, and one
splitter 1:4 for three racks are ours. It leaves open how many groups compete, whether two of them may share a rack,
and what the receivers are by which a volume is multiplied: servers, or racks, which are all that the matching knows.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

from blast_sim.allocation.workloads import (
    FAMILIES,
    FAN_OUT,
    SERVERS_PER_RACK,
    WorkloadEdge,
    WorkloadInstance,
    unicast_pairs,
)

RACKS = 200
MEGABYTES = 300.0
MAX_OF_A_PAIR = {"racks": (10.0, 300.0), "servers": (100.0, 12_000.0)}
"""Median and most of a unicast request in MB, of one server, or of all in a rack."""

OCCUPIED = 0.9
"""The paper's own share of servers in groups that have none in common (section VI-A)."""


def sharing(place: str, groups: int, seed: int, receivers: str) -> WorkloadInstance:
    """Draw groups of all sizes that may share racks; `place` is contig or random, weights count `receivers`."""
    rng = random.Random(f"sw{place}{groups}{seed}{receivers}")
    edges = FAMILIES[{"contig": "P-contig", "random": "P-random"}[place]](rng, RACKS, groups)
    if receivers == "racks":
        edges = [replace(edge, weight=MEGABYTES * (len(edge.racks) - 1)) for edge in edges]
    return _with_unicast(f"sharing-{place}-{receivers}", seed, edges, rng, receivers)


def apart(place: str, servers: int, seed: int, receivers: str, occupied: float = OCCUPIED) -> WorkloadInstance:
    """Draw groups of one size without common racks, as many as the share `occupied` of the racks holds.

    `place` and `receivers` are as in `sharing`.
    """
    rng = random.Random(f"apart{place}{servers}{seed}{receivers}")
    racks = list(range(RACKS))
    if place == "random":
        rng.shuffle(racks)
    each = math.ceil(servers / SERVERS_PER_RACK)
    weight = MEGABYTES * (each - 1 if receivers == "racks" else servers - 1)
    firsts = range(0, int(occupied * RACKS) - each + 1, each)
    edges = [WorkloadEdge(tuple(racks[first : first + each]), weight) for first in firsts]
    return _with_unicast(f"apart-{place}-{receivers}", seed, edges, rng, receivers)


def _with_unicast(
    name: str, seed: int, edges: list[WorkloadEdge], rng: random.Random, receivers: str
) -> WorkloadInstance:
    pairs = unicast_pairs(rng, RACKS, *MAX_OF_A_PAIR[receivers])
    return WorkloadInstance(name, seed, (1,) * RACKS, {FAN_OUT: RACKS // 3}, tuple(edges + pairs))

"""Workload families for allocation and measurements, reproducible bit for bit from a name and a seed.

Every family draws from `random.Random(f"{name}/{seed}/{racks}/{groups}")` in a fixed order. Defaults: a 1:4 splitter
per three racks, one port per rack, 40 servers per rack, weights in MB x receivers (the paper's volume). A name that
ends in `+uni` adds four unicast requests per rack.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from algorithms.b_matching.feasibility import Choose, Feasibility
from algorithms.b_matching.group import CompetingGroup, directional_ports, shared_ports

SERVERS_PER_RACK = 40
"""The servers per rack in the simulations of Blast (section VI-A)."""
FAN_OUT = 4


@dataclass(frozen=True, slots=True)
class WorkloadEdge:
    """One request: its racks, the sender's first, and what serving it is worth."""

    racks: tuple[int, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class WorkloadInstance:
    """A fabric and the requests that compete for it; `budgets[v]` ports at rack v, `pool` splitters by ways."""

    name: str
    seed: int
    budgets: tuple[int, ...]
    pool: Mapping[int, int]
    edges: tuple[WorkloadEdge, ...]

    @property
    def racks(self) -> int:
        """The number of racks of the fabric."""
        return len(self.budgets)

    @property
    def multicasts(self) -> int:
        """The number of requests that join more than two racks."""
        return sum(len(edge.racks) > 2 for edge in self.edges)

    def groups(self, directional: bool = False) -> list[CompetingGroup]:
        """Return the requests as groups of the matching, named by their index."""
        vertices = directional_ports(self.racks) if directional else shared_ports
        return [
            CompetingGroup(
                number, vertices(edge.racks[0], edge.racks[1:]), len(edge.racks), len(edge.racks) - 1, edge.weight
            )
            for number, edge in enumerate(self.edges)
        ]

    def feasibility(self, directional: bool = False, choose: Choose | None = None) -> Feasibility:
        """Return the idle fabric."""
        return Feasibility(self.budgets * 2 if directional else self.budgets, self.pool, choose)


def instance(name: str, seed: int, racks: int, groups: int, pool: Mapping[int, int] | None = None) -> WorkloadInstance:
    """Return the instance of family `name`; `pool` replaces the family's own splitters (mixed pools).

    Raises KeyError for a family that does not exist.
    """
    base, unicast = (name.removesuffix("+uni"), True) if name.endswith("+uni") else (name, False)
    rng = random.Random(f"{name}/{seed}/{racks}/{groups}")
    edges = FAMILIES[base](rng, racks, groups)
    if unicast:
        edges += unicast_pairs(rng, racks, *((10.0, 300.0) if base == "P-rackrecv" else (100.0, 12000.0)))
    return WorkloadInstance(
        name, seed, _budgets(base, rng, racks), pool or {FAN_OUT: _splitters(base, racks)}, tuple(edges)
    )


def _splitters(base: str, racks: int) -> int:
    if base.startswith("ADV"):
        return racks
    return {"P-random-b4": 4 * (racks // 3), "FB-K/4": racks // 3 // 4}.get(base, racks // 3)


def _budgets(base: str, rng: random.Random, racks: int) -> tuple[int, ...]:
    if base == "FB-hetb":
        return tuple(rng.choices([1, 2, 4], [0.6, 0.3, 0.1], k=racks))
    return ({"P-b2": 2, "P-random-b4": 4}.get(base, 1),) * racks


def unicast_pairs(rng: random.Random, racks: int, median: float, limit: float) -> list[WorkloadEdge]:
    """Return four requests from each rack to others, lognormal around `median` and at most `limit`."""
    edges = []
    for rack in range(racks):
        for _ in range(4):
            other = rng.randrange(racks - 1)
            other += other >= rack
            edges.append(WorkloadEdge((rack, other), min(limit, median * math.exp(rng.gauss(0, 1.5)))))
    return edges


def _contiguous(rng: random.Random, racks: int, groups: int) -> list[WorkloadEdge]:
    """Draw jobs on 100 to 1000 servers of neighboring racks, whole racks at a time."""
    edges = []
    for _ in range(groups):
        servers = rng.randint(100, 1000)
        first = rng.randrange(racks)
        taken = min(racks, math.ceil(servers / SERVERS_PER_RACK))
        edges.append(WorkloadEdge(tuple((first + n) % racks for n in range(taken)), 300.0 * (servers - 1)))
    return edges


def _contiguous_by_racks(rng: random.Random, racks: int, groups: int) -> list[WorkloadEdge]:
    return [replace(e, weight=300.0 * (len(e.racks) - 1)) for e in _contiguous(rng, racks, groups)]


def _offset(rng: random.Random, racks: int, groups: int) -> list[WorkloadEdge]:
    """Draw contiguous groups whose first server is anywhere in its rack."""
    edges = []
    for _ in range(groups):
        servers = rng.randint(100, 1000)
        first = rng.randrange(SERVERS_PER_RACK * racks)
        last = (first + servers - 1) // SERVERS_PER_RACK
        taken = dict.fromkeys(rack % racks for rack in range(first // SERVERS_PER_RACK, last + 1))
        edges.append(WorkloadEdge(tuple(taken), 300.0 * (servers - 1)))
    return edges


def _anywhere(rng: random.Random, racks: int, groups: int) -> list[WorkloadEdge]:
    """Draw groups of the contiguous sizes with racks anywhere."""
    edges = []
    for _ in range(groups):
        servers = rng.randint(100, 1000)
        taken = min(racks, math.ceil(servers / SERVERS_PER_RACK))
        edges.append(WorkloadEdge(tuple(rng.sample(range(racks), taken)), 300.0 * (servers - 1)))
    return edges


def _papers_triples(rng: random.Random, racks: int, groups: int) -> list[WorkloadEdge]:
    """Draw disjoint groups of three racks, as in the paper's section VI."""
    shuffled = list(range(racks))
    rng.shuffle(shuffled)
    return [WorkloadEdge(tuple(shuffled[3 * n : 3 * n + 3]), 300.0 * 119) for n in range(groups)]


def _random_triples(rng: random.Random, racks: int, groups: int) -> list[WorkloadEdge]:
    return [WorkloadEdge(tuple(rng.sample(range(racks), 3)), 300.0 * 119) for _ in range(groups)]


def _many_triples(rng: random.Random, racks: int, groups: int) -> list[WorkloadEdge]:
    edges = []
    for _ in range(groups):
        weight = 300.0 * 119 * rng.uniform(0.5, 1.5)
        edges.append(WorkloadEdge(tuple(rng.sample(range(racks), 3)), weight))
    return edges


def _heavy_tailed(rng: random.Random, racks: int, groups: int) -> list[WorkloadEdge]:
    """Draw groups of Pareto width and lognormal size, as a substitute for a production coflow trace."""
    edges = []
    for _ in range(groups):
        taken = min(racks // 2, 2 + int(rng.paretovariate(0.8)))
        size = min(1e4, max(1.0, math.exp(rng.gauss(math.log(30), 2))))
        edges.append(WorkloadEdge(tuple(rng.sample(range(racks), taken)), size * (taken - 1) * SERVERS_PER_RACK))
    return edges


def _three_to_five(rng: random.Random, racks: int, groups: int) -> list[WorkloadEdge]:
    edges = []
    for _ in range(groups):
        taken = rng.randint(3, 5)
        weight = math.exp(rng.gauss(math.log(300), 1)) * SERVERS_PER_RACK * (taken - 1)
        edges.append(WorkloadEdge(tuple(rng.sample(range(racks), taken)), weight))
    return edges


def _star(rng: random.Random, racks: int, groups: int) -> list[WorkloadEdge]:
    """Return groups that mislead weight / racks: a bait of barely better score blocks ten groups at once.

    `rng` and `groups` are not used.
    """
    edges = []
    for first in range(0, racks - 99, 100):
        edges += [WorkloadEdge(tuple(range(first + 10 * n, first + 10 * n + 10)), 10.0) for n in range(10)]
        edges.append(WorkloadEdge(tuple(range(first, first + 100, 10)), 10 * (1 + 1e-6)))
    return edges


def _long(rng: random.Random, racks: int, groups: int) -> list[WorkloadEdge]:
    """Return groups that mislead weight / racks: a bait of two racks blocks a group of fifty.

    `rng` and `groups` are not used.
    """
    edges = []
    for first in range(0, racks - 49, 50):
        edges.append(WorkloadEdge(tuple(range(first, first + 50)), 50.0))
        edges.append(WorkloadEdge((first, first + 1), 2.0002))
    return edges


Family = Callable[[random.Random, int, int], list[WorkloadEdge]]

FAMILIES: Mapping[str, Family] = {
    "P-contig": _contiguous,
    "P-rackrecv": _contiguous_by_racks,
    "P-offset": _offset,
    "P-random": _anywhere,
    "P-b2": _contiguous,
    "P-random-b4": _anywhere,
    "S36-disjoint": _papers_triples,
    "S36-random": _random_triples,
    "S-many": _many_triples,
    "FB": _heavy_tailed,
    "FB-K/4": _heavy_tailed,
    "FB-hetb": _heavy_tailed,
    "R3-5": _three_to_five,
    "ADV-star": _star,
    "ADV-long": _long,
}

MIXED_POOLS: tuple[tuple[str, int, Mapping[int, int]], ...] = (
    ("FB", 500, {4: 20, 16: 5, 64: 1}),
    ("FB", 500, {4: 8, 16: 2, 64: 1}),
    ("P-random", 60, {4: 10, 16: 2}),
    ("P-contig", 100, {4: 20, 16: 4, 64: 1}),
    ("P-contig", 100, {4: 8, 16: 2}),
    ("R3-5", 200, {4: 20, 16: 5, 64: 1}),
)
"""(family, groups, pool) of the mixed-pool cases, on 200 racks."""

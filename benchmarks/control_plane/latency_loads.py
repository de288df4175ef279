"""The requests of `request_latency.py`, in rounds; each setting for warm trees has its own requests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from mininet_topos.demo.groups import cold_groups
from mininet_topos.topology.plan import preset

Group = tuple[str, list[str]]
"""A sender and its receivers."""

ROOMS = {
    "cold": preset("small"),
    "iterative": preset("small"),
    "mix": preset("small", racks=12, hosts_per_rack=1, splitters={4: 4}),
}
"""The lab of each load."""
ROUND_REQUESTS = 20
"""Requests of a round that count."""
RACKS = 4
"""Racks of the iterative group."""
JOBS, JOB_RACKS, RETURNING = 3, 3, 0.7
"""The mix: number of jobs, racks of every group, and the share of requests by jobs."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its kind, its group, and whether its latency counts."""

    kind: str
    group: Group
    counts: bool = True


Rounds = list[list[Asked]]


def max_requests(load: str) -> int:
    """Return the maximum number of requests that count per setting, limited by the number of distinct groups."""
    return {"cold": 280, "mix": 1000}.get(load, 100_000)


def draw(load: str, index: int, count: int, requests: int) -> Rounds:
    """Return the requests of the setting `index` of `count`, identical in every run.

    The first requests of a round do not count: trees of the previous round are torn down, and no group has returned
    yet.
    """
    plan = ROOMS[load]
    hosts = [rack.hosts[0].name for rack in plan.rack_plans]
    sizes = [min(ROUND_REQUESTS, requests - done) for done in range(0, requests, ROUND_REQUESTS)]
    match load:
        case "cold":
            groups = iter(cold_groups(plan, count * (requests + len(sizes)))[index::count])
            return [[Asked(load, next(groups), counts=place > 0) for place in range(size + 1)] for size in sizes]
        case "iterative":
            group = _group(hosts[index : index + RACKS])
            return [[Asked(load, group, counts=place > 1) for place in range(size + 2)] for size in sizes]
        case _:
            dice = random.Random(f"blast/mix/{index}")
            one_shots = _distinct_groups(hosts, dice)
            return [_mixed(hosts, size, one_shots, dice) for size in sizes]


def _mixed(hosts: list[str], size: int, one_shots: Iterator[Group], dice: random.Random) -> list[Asked]:
    jobs = [_group(hosts[JOB_RACKS * number : JOB_RACKS * (number + 1)]) for number in range(JOBS)]
    twice = [Asked("returning", job, counts=False) for job in jobs * 2]
    kinds = ["returning" if dice.random() < RETURNING else "one-shot" for _ in range(size)]
    return twice + [Asked(kind, dice.choice(jobs) if kind == "returning" else next(one_shots)) for kind in kinds]


def _distinct_groups(hosts: list[str], dice: random.Random) -> Iterator[Group]:
    """Yield random groups, each only once."""
    seen: set[tuple[str, ...]] = set()
    while True:
        chosen = tuple(dice.sample(hosts, JOB_RACKS))
        if chosen not in seen:
            seen.add(chosen)
            yield _group(list(chosen))


def _group(hosts: list[str]) -> Group:
    return hosts[0], hosts[1:]

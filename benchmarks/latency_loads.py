"""The requests of `request_latency.py`, in turns; each way of keeping trees has requests of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from mininet_topos.demo.groups import cold_groups
from mininet_topos.plan import preset

Group = tuple[str, list[str]]
"""A sender and its receivers."""

ROOMS = {
    "cold": preset("small"),
    "iterative": preset("small"),
    "mix": preset("small", racks=12, hosts_per_rack=1, splitters={4: 4}),
}
"""The lab of each load."""
TURN = 20
"""Requests of a turn that count."""
RACKS = 4
"""Of the iterative group."""
JOBS, JOB_RACKS, RETURNING = 3, 3, 0.7
"""Of the mix: jobs, racks of every group, and the share of requests by jobs."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its kind, its group, and whether its latency counts."""

    kind: str
    group: Group
    counts: bool = True


Turns = list[list[Asked]]


def max_requests(load: str) -> int:
    """Return how many requests of each way may count: there are no more different groups."""
    return {"cold": 280, "mix": 1000}.get(load, 100_000)


def draw(load: str, way: int, ways: int, requests: int) -> Turns:
    """Return the requests of one way, the same ones in every run.

    Each turn begins with some that do not count: trees of the turn before are gone, and no group has returned yet.
    """
    plan = ROOMS[load]
    hosts = [rack.hosts[0].name for rack in plan.rack_plans]
    sizes = [min(TURN, requests - done) for done in range(0, requests, TURN)]
    match load:
        case "cold":
            groups = iter(cold_groups(plan, ways * (requests + len(sizes)))[way::ways])
            return [[Asked(load, next(groups), counts=place > 0) for place in range(size + 1)] for size in sizes]
        case "iterative":
            group = _group(hosts[way : way + RACKS])
            return [[Asked(load, group, counts=place > 1) for place in range(size + 2)] for size in sizes]
        case _:
            dice = random.Random(f"blast/mix/{way}")
            strangers = _strangers(hosts, dice)
            return [_mixed(hosts, size, strangers, dice) for size in sizes]


def _mixed(hosts: list[str], size: int, strangers: Iterator[Group], dice: random.Random) -> list[Asked]:
    jobs = [_group(hosts[JOB_RACKS * number : JOB_RACKS * (number + 1)]) for number in range(JOBS)]
    twice = [Asked("returning", job, counts=False) for job in jobs * 2]
    kinds = ["returning" if dice.random() < RETURNING else "one-shot" for _ in range(size)]
    return twice + [Asked(kind, dice.choice(jobs) if kind == "returning" else next(strangers)) for kind in kinds]


def _strangers(hosts: list[str], dice: random.Random) -> Iterator[Group]:
    """Yield random groups, none of them twice."""
    seen: set[tuple[str, ...]] = set()
    while True:
        chosen = tuple(dice.sample(hosts, JOB_RACKS))
        if chosen not in seen:
            seen.add(chosen)
            yield _group(list(chosen))


def _group(hosts: list[str]) -> Group:
    return hosts[0], hosts[1:]

"""What the request latency benchmark asks for: requests by load, in turns; each way of keeping trees has its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from mininet_topos.demo.groups import cold_groups
from mininet_topos.plan import LabPlan, preset

Group = tuple[str, list[str]]
"""A sender and its receivers."""

ROOMS = {
    "cold": preset("small"),
    "iterative": preset("small"),
    "mix": preset("small", racks=12, hosts_per_rack=1, splitters={4: 4}),
}
"""The loads, and the lab that each is for."""

TURN = 20
"""Requests of a turn that count."""
RACKS = 4
"""Of the group that comes again and again."""
JOBS, JOB_RACKS, RETURNING = 3, 3, 0.7
"""Of the mix: jobs that ask again and again, racks of every group, and how often it is a job that asks."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: of what kind, for whom, and whether its latency counts."""

    kind: str
    group: Group
    counts: bool = True


Turns = list[list[Asked]]


def most_requests(load: str) -> int:
    """How many of each way may count: there are no more different groups."""
    return {"cold": 280, "mix": 1000}.get(load, 100_000)


def draw(load: str, way: int, ways: int, requests: int) -> Turns:
    """The requests of one of so many ways, so many of which count; the same ones in every run.

    Each turn begins with some that do not: what the turn before has left is gone, and nobody has come back yet.
    """
    plan = ROOMS[load]
    sizes = [min(TURN, requests - done) for done in range(0, requests, TURN)]
    match load:
        case "cold":
            groups = iter(cold_groups(plan, ways * (requests + len(sizes)))[way::ways])
            return [[Asked(load, next(groups), counts=place > 0) for place in range(size + 1)] for size in sizes]
        case "iterative":
            hosts = _hosts(plan)[way : way + RACKS]
            return [[Asked(load, _group(hosts), counts=place > 1) for place in range(size + 2)] for size in sizes]
        case _:
            dice = random.Random(f"blast/mix/{way}")
            strangers = _strangers(_hosts(plan), dice)
            return [_mixed(_hosts(plan), size, strangers, dice) for size in sizes]


def _mixed(hosts: list[str], size: int, strangers: Iterator[Group], dice: random.Random) -> list[Asked]:
    jobs = [_group(hosts[JOB_RACKS * number : JOB_RACKS * (number + 1)]) for number in range(JOBS)]
    twice = [Asked("returning", job, counts=False) for job in jobs * 2]
    kinds = ["returning" if dice.random() < RETURNING else "one-shot" for _ in range(size)]
    return twice + [Asked(kind, dice.choice(jobs) if kind == "returning" else next(strangers)) for kind in kinds]


def _strangers(everybody: list[str], dice: random.Random) -> Iterator[Group]:
    """Random groups, none of them twice."""
    seen: set[tuple[str, ...]] = set()
    while True:
        hosts = tuple(dice.sample(everybody, JOB_RACKS))
        if hosts not in seen:
            seen.add(hosts)
            yield _group(list(hosts))


def _hosts(plan: LabPlan) -> list[str]:
    return [rack.hosts[0].name for rack in plan.rack_plans]


def _group(hosts: list[str]) -> Group:
    return hosts[0], hosts[1:]

"""Which groups the latency scene asks for: all different, each one within what the splitters can join."""

from __future__ import annotations

import random
from math import comb

from algorithms.splitter_tree import max_leaves
from mininet_topos.plan import LabPlan

FEWEST_RECEIVERS = 2
"""With one there would be no splitter in it."""


def widest_group(plan: LabPlan) -> int:
    """The most racks that one tree can join, sender's included."""
    return min(plan.racks, 1 + max_leaves(plan.splitters, None))


def max_groups(plan: LabPlan) -> int:
    """How many different groups (a sender, its receivers) there are, one host a rack."""
    others = plan.racks - 1
    return plan.racks * sum(comb(others, n) for n in range(FEWEST_RECEIVERS, widest_group(plan)))


def cold_groups(plan: LabPlan, count: int) -> list[tuple[str, list[str]]]:
    """`count` different groups of the racks' first hosts, the same ones in every run.

    Raises ValueError when there are fewer.
    """
    if count > max_groups(plan):
        raise ValueError(f"{plan.racks} racks have only {max_groups(plan)} different groups")
    hosts = [rack.hosts[0].name for rack in plan.rack_plans]
    widest = widest_group(plan)
    rng = random.Random("blast/latency")
    groups: dict[tuple[str, tuple[str, ...]], None] = {}
    while len(groups) < count:
        sender, *receivers = rng.sample(hosts, rng.randint(FEWEST_RECEIVERS + 1, widest))
        groups[sender, tuple(sorted(receivers))] = None
    return [(sender, list(receivers)) for sender, receivers in groups]

"""The groups of the latency scene: all distinct, each within the reach of the splitters."""

from __future__ import annotations

import random
from math import comb

from algorithms.splitter_tree import max_leaves
from mininet_topos.topology.plan import LabPlan

MIN_RECEIVERS = 2
"""A group with one receiver would use no splitter."""


def widest_group(plan: LabPlan) -> int:
    """Return the maximum number of racks of one tree, including the sender's."""
    return min(plan.racks, 1 + max_leaves(plan.splitters, None))


def max_groups(plan: LabPlan) -> int:
    """Return the number of distinct groups (a sender, its receivers), with one host per rack."""
    others = plan.racks - 1
    return plan.racks * sum(comb(others, n) for n in range(MIN_RECEIVERS, widest_group(plan)))


def cold_groups(plan: LabPlan, count: int) -> list[tuple[str, list[str]]]:
    """Return `count` distinct groups of the racks' first hosts, the same in every run.

    Raises ValueError if there are fewer.
    """
    if count > max_groups(plan):
        raise ValueError(f"{plan.racks} racks have only {max_groups(plan)} distinct groups")
    hosts = [rack.hosts[0].name for rack in plan.rack_plans]
    widest = widest_group(plan)
    rng = random.Random("blast/latency")
    groups: dict[tuple[str, tuple[str, ...]], None] = {}
    while len(groups) < count:
        sender, *receivers = rng.sample(hosts, rng.randint(MIN_RECEIVERS + 1, widest))
        groups[sender, tuple(sorted(receivers))] = None
    return [(sender, list(receivers)) for sender, receivers in groups]

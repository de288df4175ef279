"""The plan of a method for a network, and its expected rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from algorithms.balanced import testbeds
from algorithms.balanced.best_trees import without_thin
from algorithms.balanced.clusters import host_trees
from algorithms.balanced.exact import exact
from algorithms.balanced.fpfr import fpfr
from algorithms.balanced.network import Network
from blast_sim.trees.trees_plan import PlanOptions, answer_of, as_json
from mininet_topos.sites.plan import Pair, SitesPlan

METHODS = ("semi-flat", "bottleneck", "fpfr", "balanced", "exact")


@dataclass(frozen=True)
class Planned:
    """Trees as `blast trees --json` prints them, and their rate in bits of data per second."""

    rate: float
    trees: dict[str, Any]


def planned(network: Network, method: str) -> Planned:
    """Return the plan of a method with the trees that a transfer uses.

    Trees of `fpfr` send at the rates that it assumes, because it does not shape them to feasible rates.
    """
    plan = answer_of(network, PlanOptions(method)).plan
    sent = fpfr(network) if method == "fpfr" else without_thin(network, plan)
    return Planned(plan.rate, as_json(network, sent))


def planned_clusters(count: int, nodes: int, scale: float) -> Planned:
    """Return the optimum of the preset `clusters`, its rates times `scale`, as trees over single hosts."""
    clusters, network = testbeds.clusters(count, nodes), testbeds.das(count, nodes).numbered()
    plan = exact(network)
    trees = host_trees(clusters, clusters[0].members[0].name, network, plan)
    scaled = [{"rate": tree.rate * scale, "edges": [edge[::-1] for edge in tree.parents.items()]} for tree in trees]
    rate = plan.rate * scale
    return Planned(rate, {"rate": rate, "bound": rate, "trees": scaled})


def interior(plan: Planned, root: str) -> str:
    """Return the host, not the root, that forwards most of the data."""
    passed: dict[str, float] = {}
    for tree in plan.trees["trees"]:
        for sender, _ in tree["edges"]:
            passed[sender] = passed.get(sender, 0.0) + tree["rate"]
    return max((host for host in passed if host != root), key=lambda host: passed[host])


def dearest_path(plan: SitesPlan, root: str) -> tuple[Pair, SitesPlan, float]:
    """Return the path at half of whose rate the optimum is lowest, the sites with that rate, and their optimum."""
    used = {
        (start, end) for tree in planned(plan.network(root), "exact").trees["trees"] for start, end in tree["edges"]
    }
    cases = []
    for path in sorted(used):
        left = replace(plan, rates={**plan.rates, path: plan.rates[path] / 2})
        cases.append((path, left, planned(left.network(root), "exact").rate))
    return min(cases, key=lambda case: case[2])

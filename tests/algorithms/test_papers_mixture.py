"""The mixture in which the Blast paper measures its greedy: the readings for which "over 99 %" is true."""

from __future__ import annotations

from itertools import product

import pytest

from algorithms.b_matching.exact import exact
from algorithms.b_matching.optimized import total
from algorithms.b_matching.scores import FLOOR, by_score
from blast_sim.allocation.papers_mixture import apart, sharing
from blast_sim.allocation.workloads import WorkloadInstance

PLACES, COUNTED = ("contig", "random"), ("racks", "servers")


def share_of_optimum(instance: WorkloadInstance) -> float:
    optimum = exact(instance.groups(), instance.feasibility(), 30.0)
    assert optimum.gap is not None and optimum.gap < 1e-6
    return total(by_score(FLOOR[0], instance.groups(), instance.feasibility())) / optimum.value


@pytest.mark.parametrize(("place", "counted", "servers"), [*product(PLACES, COUNTED, (100, 250, 500, 1000))])
def test_separate_groups_share_no_rack_and_weigh_volume_of_receivers(place: str, counted: str, servers: int) -> None:
    made = apart(place, servers, 3, counted)
    groups = made.edges[: made.multicasts]
    racks = [rack for group in groups for rack in group.racks]
    assert len(racks) == len(set(racks)) <= 180 < len(racks) + len(groups[0].racks)
    assert {len(group.racks) for group in groups} == {-(-servers // 40)}
    receivers = servers - 1 if counted == "servers" else -(-servers // 40) - 1
    assert {group.weight for group in groups} == {300.0 * receivers}
    assert all(len(pair.racks) == 2 for pair in made.edges[made.multicasts :]) and len(made.edges) == len(groups) + 800


def test_contiguous_placement_uses_neighboring_racks() -> None:
    contig, scattered = (apart(place, 1000, 0, "racks").edges[0].racks for place in PLACES)
    assert contig == tuple(range(25)) and scattered != contig


@pytest.mark.parametrize(("place", "counted", "servers"), [*product(PLACES, COUNTED, (100, 500, 1000))])
def test_greedy_is_over_99_percent_optimal_without_shared_racks(place: str, counted: str, servers: int) -> None:
    assert 0.99 < share_of_optimum(apart(place, servers, 1, counted)) <= 1.0 + 1e-9


@pytest.mark.parametrize("servers", [100, 1000])
def test_greedy_is_over_99_percent_optimal_with_half_of_the_racks(servers: int) -> None:
    assert share_of_optimum(apart("contig", servers, 1, "racks", occupied=0.5)) > 0.99


@pytest.mark.parametrize(("counted", "groups", "seed"), [("racks", 60, 1), ("servers", 20, 1)])
def test_greedy_is_below_95_percent_where_groups_share_racks(counted: str, groups: int, seed: int) -> None:
    assert share_of_optimum(sharing("contig", groups, seed, counted)) < 0.95

"""The benchmark's workloads follow the fact sheet and are reproducible."""

from __future__ import annotations

import math
import random

import pytest

from blast_sim.allocation import workloads
from blast_sim.allocation.papers_mixture import sharing


def test_instance_depends_only_on_its_seed():
    for name in [*workloads.FAMILIES, "P-contig+uni", "P-rackrecv+uni"]:
        groups = 36 if name.startswith("S36") else 50
        first, again = (workloads.instance(name, 1, 120, groups) for _ in range(2))
        assert first == again
        if not name.startswith("ADV"):
            assert first.edges != workloads.instance(name, 2, 120, groups).edges


def test_p_contig_follows_its_definition():
    rng = random.Random("P-contig/7/200/2")
    for edge in workloads.instance("P-contig", 7, 200, 2).edges:
        servers = rng.randint(100, 1000)
        first = rng.randrange(200)
        assert edge.racks == tuple((first + n) % 200 for n in range((servers + 39) // 40))
        assert edge.weight == 300 * (servers - 1)


def test_heavy_tail_follows_its_definition():
    rng = random.Random("FB/0/60/3")
    for edge in workloads.instance("FB", 0, 60, 3).edges:
        racks = min(30, 2 + int(rng.paretovariate(0.8)))
        size = min(1e4, max(1.0, math.exp(rng.gauss(3.4011973816621555, 2))))
        assert edge.racks == tuple(rng.sample(range(60), racks))
        assert edge.weight == pytest.approx(size * (racks - 1) * 40)


@pytest.mark.parametrize(
    ("name", "pool", "budgets"),
    [
        ("P-contig", {4: 66}, {1}),
        ("P-b2", {4: 66}, {2}),
        ("P-random-b4", {4: 264}, {4}),
        ("FB-K/4", {4: 16}, {1}),
        ("FB-hetb", {4: 66}, {1, 2, 4}),
        ("ADV-star", {4: 200}, {1}),
    ],
)
def test_family_has_its_splitters_and_port_budgets(name, pool, budgets):
    made = workloads.instance(name, 0, 200, 50)
    assert dict(made.pool) == pool
    assert set(made.budgets) == budgets


def test_unicast_adds_four_pairs_per_rack_after_the_multicasts():
    made = workloads.instance("P-contig+uni", 3, 200, 60)
    pairs = made.edges[60:]
    assert made.multicasts == 60
    assert [edge.racks[0] for edge in pairs] == [rack for rack in range(200) for _ in range(4)]
    assert all(edge.racks[0] != edge.racks[1] and 0 < edge.weight <= 12000 for edge in pairs)
    assert max(edge.weight for edge in workloads.instance("P-rackrecv+uni", 3, 200, 60).edges[60:]) == 300


def test_case_of_the_paper_has_no_contention():
    made = workloads.instance("S36-disjoint", 0, 120, 36)
    racks = [rack for edge in made.edges for rack in edge.racks]
    assert len(racks) == len(set(racks)) == 108


def test_baits_share_one_rack_with_each_good_group():
    made = workloads.instance("ADV-star", 0, 200, 0)
    assert len(made.edges) == 22
    for block in (made.edges[:11], made.edges[11:]):
        *good, bait = block
        assert all(len(set(edge.racks) & set(bait.racks)) == 1 for edge in good)


def test_directional_instance_has_twice_as_many_ports():
    made = workloads.instance("R3-5", 0, 50, 10)
    one, two = made.groups(), made.groups(directional=True)
    assert [g.ports.bit_count() for g in one] == [g.ports.bit_count() for g in two]
    assert made.feasibility(directional=True).left(99) == 1
    assert {g.ports.bit_length() <= 50 for g in one} == {True}
    assert {g.ports.bit_length() <= 50 for g in two} == {False}


def test_sharing_instance_has_groups_and_pairs():
    made = sharing("random", 5, 1, "racks")
    assert (made.racks, len(made.edges), dict(made.pool)) == (200, 805, {4: 66})
    assert made == sharing("random", 5, 1, "racks")

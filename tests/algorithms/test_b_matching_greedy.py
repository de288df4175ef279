"""The greedy on the kernel against a plain transcription of the paper's text, on the workload families."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.b_matching.feasibility import Feasibility, by_count
from algorithms.b_matching.greedy import score, select
from algorithms.b_matching.group import CompetingGroup, bits, directional_ports, shared_ports
from tests.support.simulators.matching import NaiveGreedy, papers_text, vertices

ports_a_rack = st.sampled_from([(1,), (2,), (1, 2, 4), (0, 1)])


@st.composite
def fabrics(draw):
    """Draw (groups, budgets by vertex): racks in a row or anywhere, tied weights, one port count or two directions."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    racks, count = draw(st.integers(2, 40)), draw(st.integers(0, 60))
    widest, place = draw(st.integers(2, 25)), draw(st.sampled_from(["contiguous", "anywhere"]))
    directional, ports = draw(st.booleans()), draw(ports_a_rack)
    weights = draw(st.sampled_from([(300.0,), (1.0, 2.0, 3.0), None]))
    join = directional_ports(racks) if directional else shared_ports
    groups = []
    for number in range(count):
        size = rng.randint(2, max(2, min(widest, racks)))
        first = rng.randrange(racks)
        row = [(first + n) % racks for n in range(size)]
        joined = row if place == "contiguous" else rng.sample(range(racks), size)
        weight = rng.lognormvariate(6, 1) if weights is None else rng.choice(weights) * size
        groups.append(CompetingGroup(number, join(joined[0], joined[1:]), size, size - 1, weight))
    return groups, [rng.choice(ports) for _ in range(racks * (1 + directional))]


@given(fabrics(), st.integers(0, 20), st.sampled_from([2, 3, 4, 8, 16]), st.none() | st.integers(0, 8))
def test_selection_equals_transcription_of_paper(fabric, splitters, fan_out, max_splitters):
    groups, budgets = fabric
    feasibility = Feasibility(budgets, {fan_out: splitters}, by_count(max_splitters))
    found = select(groups, feasibility)
    as_text = [(g.name, vertices(g), g.racks, g.weight) for g in groups]
    assert [g.name for g, _ in found] == papers_text(as_text, budgets, splitters, fan_out, max_splitters)
    for group, pieces in found:
        assert pieces == (fan_out,) * -((2 - group.racks) // (fan_out - 1))


@given(
    fabrics(), st.dictionaries(st.sampled_from([2, 4, 8, 16]), st.integers(0, 5), max_size=4), st.none() | st.just(3)
)
def test_mixed_splitters_match_naive_greedy_and_leave_no_fitting_group(fabric, pool, max_splitters):
    groups, budgets = fabric
    feasibility = Feasibility(budgets, pool, by_count(max_splitters))
    naive = NaiveGreedy(budgets, pool, max_splitters, {})
    naive.pending = list(groups)
    found = select(groups, feasibility)
    assert found == naive.serve()
    assert feasibility.pool == naive.sizes
    assert [feasibility.left(v) for v in range(len(budgets))] == list(naive.ports.values())
    served = {g.name for g, _ in found}
    assert all(feasibility.fit(g) is None for g in groups if g.name not in served)


def group(name, racks, weight=1.0):
    """`racks` as letters, the sender's first."""
    numbers = ["abcdefghij".index(letter) for letter in racks]
    return CompetingGroup(name, shared_ports(numbers[0], numbers[1:]), len(racks), len(racks) - 1, weight)


def fabric(ports=1, pool=None, max_splitters=None):
    return Feasibility([ports] * 10, {4: 2} if pool is None else pool, by_count(max_splitters))


def names(selection):
    return [found.name for found, _ in selection]


def test_score_is_volume_per_port():
    assert score(group("x", "abc", 12.0)) == 4.0


def test_splitters_run_out_before_ports_and_two_racks_need_none():
    groups = [group("x", "abc", 9.0), group("y", "def", 6.0), group("z", "gh", 0.1)]
    assert select(groups, fabric(pool={4: 1})) == [(groups[0], (4,)), (groups[2], ())]


def test_two_groups_share_a_rack_with_two_ports():
    groups = [group("x", "ab", 3.0), group("y", "ac", 2.0), group("z", "ad", 1.0)]
    assert names(select(groups, fabric(ports=2))) == ["x", "y"]


def test_adversarial_star_defeats_greedy_as_in_paper():
    """ADV-star: a bait of barely better score keeps ten groups out; the greedy takes the bait."""
    good = [CompetingGroup(n, bits(range(10 * n, 10 * n + 10)), 10, 9, 10.0) for n in range(10)]
    bait = CompetingGroup("bait", bits(range(0, 100, 10)), 10, 9, 10 * (1 + 1e-6))
    assert names(select([*good, bait], Feasibility([1] * 100, {4: 100}))) == ["bait"]


@pytest.mark.parametrize("count", [36, 40])
def test_section_vi_has_no_contention(count):
    """120 racks, 40 splitters 1:4, disjoint groups of three racks: all are served."""
    groups = [CompetingGroup(n, bits(range(3 * n, 3 * n + 3)), 3, 2, 300.0 * 119) for n in range(count)]
    assert len(select(groups, Feasibility([1] * 120, {4: 40}))) == count


def test_constraint_1_excludes_wide_group():
    groups = [group("wide", "abcdef", 99.0), group("small", "abc", 1.0)]
    assert names(select(groups, fabric(pool={4: 9}, max_splitters=1))) == ["small"]

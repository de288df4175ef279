"""The paper's greedy on the kernel, on cases that can be followed by hand."""

from __future__ import annotations

import pytest

from algorithms.b_matching.feasibility import Feasibility, by_count
from algorithms.b_matching.greedy import score, select
from algorithms.b_matching.group import Group, bits, directional_ports, shared_ports


def group(name, racks, weight=1.0):
    """`racks` as letters, the sender's first."""
    numbers = ["abcdefghij".index(letter) for letter in racks]
    return Group(name, shared_ports(numbers[0], numbers[1:]), len(racks), len(racks) - 1, weight)


def fabric(ports=1, pool=None, most=None):
    return Feasibility([ports] * 10, {4: 2} if pool is None else pool, by_count(most))


def names(selection):
    return [found.name for found, _ in selection]


def test_score_is_volume_per_port():
    assert score(group("x", "abc", 12.0)) == 4.0


def test_best_score_first_and_disjoint_racks():
    groups = [group("wide", "abcd", 8.0), group("dense", "ab", 6.0), group("other", "ef", 1.0)]
    assert names(select(groups, fabric())) == ["dense", "other"]


def test_equal_scores_keep_their_order():
    assert names(select([group("first", "ab"), group("second", "bc")], fabric())) == ["first"]
    assert names(select([group("second", "bc"), group("first", "ab")], fabric())) == ["second"]


def test_splitters_run_out_before_ports_and_two_racks_need_none():
    groups = [group("x", "abc", 9.0), group("y", "def", 6.0), group("z", "gh", 0.1)]
    assert select(groups, fabric(pool={4: 1})) == [(groups[0], (4,)), (groups[2], ())]


def test_a_rack_with_two_ports_is_met_by_two_groups():
    groups = [group("x", "ab", 3.0), group("y", "ac", 2.0), group("z", "ad", 1.0)]
    assert names(select(groups, fabric(ports=2))) == ["x", "y"]


def test_constraint_1_leaves_a_wide_group_out():
    groups = [group("wide", "abcdef", 99.0), group("small", "abc", 1.0)]
    assert names(select(groups, fabric(pool={4: 9}, most=1))) == ["small"]


def test_a_rack_sends_and_receives_at_once_where_directions_count_apart():
    joined = directional_ports(3)
    groups = [Group("there", joined(0, [1]), 2, 1, 2.0), Group("back", joined(1, [0]), 2, 1, 1.0)]
    assert names(select(groups, Feasibility([1] * 6, {}))) == ["there", "back"]
    assert names(select([group("there", "ab", 2.0), group("back", "ba", 1.0)], fabric())) == ["there"]


def test_the_star_that_ruins_the_greedy_ruins_ours_too():
    """ADV-star: a bait of barely better score keeps ten groups out; the greedy takes the bait."""
    good = [Group(n, bits(range(10 * n, 10 * n + 10)), 10, 9, 10.0) for n in range(10)]
    bait = Group("bait", bits(range(0, 100, 10)), 10, 9, 10 * (1 + 1e-6))
    assert names(select([*good, bait], Feasibility([1] * 100, {4: 100}))) == ["bait"]


@pytest.mark.parametrize("count", [36, 40])
def test_section_vi_has_no_contention(count):
    """120 racks, 40 splitters 1:4, disjoint groups of three racks: all are served."""
    groups = [Group(n, bits(range(3 * n, 3 * n + 3)), 3, 2, 300.0 * 119) for n in range(count)]
    assert len(select(groups, Feasibility([1] * 120, {4: 40}))) == count

"""Rack pairs in arrays: input checks and the cases at the edge."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import Group, bits
from algorithms.b_matching.rack_pairs import FEWEST_PAIRS, Pairs, select


def pairs(*found):
    first, second, weight = zip(*found, strict=True) if found else ((), (), ())
    return Pairs(np.array(first, dtype=np.int32), np.array(second, dtype=np.int32), np.array(weight, dtype=np.float64))


def names(selection):
    return [group.name for group, _ in selection]


def tree(weight):
    return Group("tree", bits([0, 1, 2]), 3, 2, weight)


def test_pairs_and_multicasts_compete_by_volume_per_port():
    """Scores: tree 3.0, pairs 2.5, 3.1 (disjoint from the tree) and 1.0 (disjoint from all)."""
    found = select([tree(9.0)], pairs((0, 3, 5.0), (4, 5, 6.2), (6, 7, 2.0)), Feasibility([1] * 8, {4: 1}))
    assert names(found) == [1, "tree", 2]


@pytest.mark.parametrize(("weight", "served"), [(8.9, [0]), (9.0, ["tree"]), (9.1, ["tree"])])
def test_the_better_score_wins_and_a_tie_goes_to_the_group(weight, served):
    assert names(select([tree(weight)], pairs((0, 3, 6.0)), Feasibility([1] * 4, {4: 1}))) == served


def test_a_group_below_every_pair_is_still_served():
    assert names(select([tree(0.1)], pairs((3, 4, 6.0)), Feasibility([1] * 5, {4: 1}))) == [0, "tree"]


def test_no_pairs_and_nothing_at_all():
    assert names(select([tree(9.0)], pairs(), Feasibility([1] * 3, {4: 1}))) == ["tree"]
    assert select([], pairs(), Feasibility([], {})) == []


def test_more_equal_pairs_than_a_round_holds_keep_their_order():
    count = 3 * FEWEST_PAIRS
    found = select([], pairs(*[(2 * n, 2 * n + 1, 1.0) for n in range(count)]), Feasibility([1] * 2 * count, {}))
    assert names(found) == list(range(count))


def test_a_pair_uses_up_its_ports():
    feasibility = Feasibility([2, 1, 1, 1], {})
    found = select([], pairs((0, 1, 4.0), (0, 1, 3.0), (0, 2, 2.0), (0, 3, 1.0)), feasibility)
    assert names(found) == [0, 2]
    assert [feasibility.left(vertex) for vertex in range(4)] == [0, 0, 0, 1]


@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_weights_are_finite(weight):
    with pytest.raises(ValueError, match="finite"):
        pairs((0, 1, weight))


def test_every_pair_is_complete():
    with pytest.raises(ValueError, match="two vertices"):
        Pairs(np.array([0, 1]), np.array([1]), np.array([1.0, 2.0]))

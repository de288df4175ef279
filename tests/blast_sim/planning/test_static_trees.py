"""Static trees in `blast fabric plan`: served groups, benefit and cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_sim.allocation.instance import Instance, InstanceRequest
from blast_sim.planning.prices import PricedLightBudget
from blast_sim.planning.static_trees import static_trees
from tests.blast_sim.planning.test_plan_fabric import EXAMPLE, worlds


def test_static_trees_for_hot_spots_cost_a_few_thousand_dollars():
    """Section II-B, at the paper's prices of splitters and the example's of transceivers."""
    hot = [(tuple(range(8)), 50.0), (tuple(range(8, 16)), 40.0)]
    (sample,) = worlds(*hot, ((16, 17, 18), 10.0), racks=20)
    steps = list(static_trees([sample, sample], EXAMPLE))
    assert [(len(step.trees), step.racks, round(step.served, 2)) for step in steps] == [
        (1, 8, 0.5),
        (2, 16, 0.9),
        (3, 19, 1.0),
    ]
    assert steps[1].bill.price == 2 * (8 * 300 + 80), "eight ports and splitters for 80 each, no switch"
    assert steps[1].bill.watts == 16 * 1.5
    assert 1000 <= steps[1].bill.price < 10_000


def test_static_tree_serves_the_heaviest_group_that_it_covers():
    (sample,) = worlds(((0, 1, 2, 3), 6.0), ((0, 2, 3), 3.0), ((1, 2, 3), 1.0), racks=5)
    first, second, *_ = static_trees([sample], EXAMPLE)
    assert (first.trees[0].root, first.trees[0].leaves, first.served) == (0, (1, 2, 3), 0.6)
    assert second.served == pytest.approx(0.9), "a second tree for the group that waited"


def test_group_that_does_not_repeat_gets_no_static_tree():
    (once,) = worlds(((0, 1, 2), 5.0), ((3, 4, 5), 5.0))
    (other,) = worlds(((0, 1, 2), 5.0), ((3, 4, 6), 5.0))
    (step,) = static_trees([once, other], EXAMPLE)
    assert (step.trees[0].root, step.trees[0].leaves, step.served) == (0, (1, 2), 0.5)
    assert not list(static_trees(worlds(((0, 1), 5.0)), EXAMPLE)), "a fiber is no tree"


def test_static_tree_serves_a_subset_of_its_leaves():
    (wide,) = worlds(((0, 1, 2, 3), 5.0))
    (narrow,) = worlds(((0, 1, 3), 5.0))
    (step, *_) = static_trees([wide, narrow], EXAMPLE)
    assert (step.trees[0].leaves, step.served) == ((1, 2, 3), 1.0)


def test_static_trees_are_amplified_beyond_the_power_budget():
    samples = worlds((tuple(range(12)), 5.0))
    only = replace(EXAMPLE, splitters={4: EXAMPLE.splitters[4]})
    # Two splitters 1:4 in a row lose 14.8 dB, with three passes 19.3.
    for budget, amplifiers in ((15.0, 0), (14.0, 4)):
        (step,) = static_trees(samples, replace(only, light=PricedLightBudget(budget, 1.5)))
        assert (step.trees[0].splitters, step.trees[0].amplifiers) == ((4,) * 4, amplifiers)
    dark = replace(only, light=PricedLightBudget(14.0, 1.5), amplifier=None)
    assert not list(static_trees(samples, dark))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.permutations(range(6)), st.integers(3, 6), st.integers(1, 9)), min_size=1, max_size=6),
        min_size=1,
        max_size=3,
    )
)
def test_each_static_tree_adds_served_volume_and_cost(drawn):
    samples = [
        Instance(
            (1,) * 6,
            {4: 1},
            tuple(
                InstanceRequest(str(n), order[0], tuple(order[1:size]), weight)
                for n, (order, size, weight) in enumerate(one)
            ),
        )
        for one in drawn
    ]
    served, price = 0.0, 0.0
    for step in static_trees(samples, EXAMPLE, max_trees=4):
        assert served < step.served <= 1 + 1e-9
        assert step.bill.price > price
        served, price = step.served, step.bill.price
        for sample, share in zip(samples, step.shares, strict=True):
            volume = sum(request.weight for request in sample.requests)
            max_groups = Counter(tree.root for tree in step.trees)
            heaviest = sum(
                sum(sorted((r.weight for r in sample.requests if r.sender == root), reverse=True)[:count])
                for root, count in max_groups.items()
            )
            assert share <= heaviest / volume + 1e-9

"""The methods that the optimum is compared with: figures and claims of the paper, and what holds on any network."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.balanced.balancing import balance, balanced
from algorithms.balanced.best_trees import best_trees, thinned
from algorithms.balanced.bottleneck import bottleneck
from algorithms.balanced.exact import exact
from algorithms.balanced.fpfr import fpfr
from algorithms.balanced.plan import NO_HOST, edges, max_rate, paths, pruned
from algorithms.balanced.semi_flat import semi_flat
from algorithms.balanced.unshaped import unshaped
from tests.support.simulators.balanced import all_trees, check, figure_2, living_trees, make, networks
from tests.support.simulators.balanced_families import clustered


def unshaped_fpfr(network):
    return unshaped(network, fpfr(network).trees)


METHODS = [balanced, unshaped_fpfr, bottleneck, semi_flat]


# ------------------------------------------------------------------------------------------- figures of the paper


def test_figure_2_of_the_paper():
    network = figure_2()
    assumed = fpfr(network)
    assert (assumed.rate, assumed.rates) == (12, (4, 4, 4))
    reached = unshaped(network, assumed.trees)
    assert reached.rates == pytest.approx((2.5, 2.5, 2.5))
    shaped = balanced(network)
    check(network, shaped)
    assert sorted(shaped.rates) == pytest.approx([1, 4, 4])
    assert shaped.rate == pytest.approx(9)


# ---------------------------------------------------------------------------------------------- on any network


@settings(max_examples=60)
@given(networks(max_size=6))
def test_every_plan_is_feasible_and_not_above_optimum(network):
    best = exact(network).rate
    for method in METHODS:
        plan = method(network)
        check(network, plan)
        assert plan.rate <= best * (1 + 1e-8)


@settings(max_examples=60)
@given(networks(min_size=3, max_size=6, to_all=False))
def test_plans_to_subset_of_hosts_are_feasible(network):
    for method in METHODS:
        check(network, method(network))


@given(networks(max_size=5))
def test_bottleneck_tree_is_widest_of_all_trees(network):
    def narrowest(tree):
        return min(network.rates[start, end] for start, end in edges(tree))

    assert narrowest(bottleneck(network).trees[0]) == max(map(narrowest, living_trees(network)))


@given(networks(max_size=5))
def test_no_tree_is_lower_than_the_semi_flat_one(network):
    def height(tree):
        return max(depth(tree, host) for host in range(network.size))

    assert height(semi_flat(network).trees[0]) == min(map(height, living_trees(network)))


def depth(tree, host) -> int:
    return 0 if tree[host] == NO_HOST else 1 + depth(tree, tree[host])


@given(networks(max_size=6))
def test_single_tree_reaches_its_maximum_rate(network):
    for tree in fpfr(network).trees:
        alone = unshaped(network, [tree]).rate
        assert alone == pytest.approx(max_rate(network, tree), rel=1e-9)
        assert alone == pytest.approx(balance(network, [tree]).rate, rel=1e-6)


def test_streams_share_capacity_that_a_slow_stream_leaves():
    # h0 sends 9 over three streams: the narrow path takes 1 of it, and the other two 4 each.
    network = make([[0, 1, 10, 10], [0, 0, 0, 0], [0, 10, 0, 10], [0, 0, 0, 0]], out=[9, 10, 10, 10])
    plan = unshaped(network, [(-1, 2, 0, 2), (-1, 0, 0, 2)])
    assert plan.rates == pytest.approx((10 / 3, 1))


# ------------------------------------------------------------------------------------------------- fewer trees


@settings(max_examples=40)
@given(networks(min_size=3, max_size=6), st.integers(1, 4))
def test_best_trees_respects_limit_and_beats_thinned(network, max_trees):
    best = exact(network)
    few = best_trees(network, best, max_trees)
    check(network, few)
    assert len(few.trees) <= max_trees
    assert few.bound == best.bound
    assert few.rate <= best.rate * (1 + 1e-8)
    assert few.rate >= thinned(network, best, max_trees).rate
    if len(best.trees) <= max_trees:
        assert few == best


def test_rate_of_thinned_plan_grows_with_number_of_trees():
    network = clustered(12, 0)
    best = exact(network)
    rates = [thinned(network, best, count).rate for count in range(1, len(best.trees) + 1)]
    assert all(one <= other * (1 + 1e-9) for one, other in itertools.pairwise(rates))


# ------------------------------------------------------------------------------------------------------- trees


@given(st.integers(2, 5), st.data())
def test_paths_traverse_every_edge_once_from_root_outward(size, data):
    trees = all_trees(size).tolist()
    tree = tuple(data.draw(st.sampled_from(trees)))
    pairs = [pair for path in paths(tree, 0) for pair in itertools.pairwise(path)]
    assert sorted(pairs) == sorted(edges(tree))
    reached = {0}
    for sender, receiver in pairs:
        assert sender in reached
        reached.add(receiver)


def test_pruned_removes_branches_without_receivers():
    assert pruned((NO_HOST, 0, 1, 0, 3), [2]) == (NO_HOST, 0, 1, NO_HOST, NO_HOST)

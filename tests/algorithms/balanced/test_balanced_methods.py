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
from tests.support.balanced import all_trees, check, figure_2, living_trees, make, networks
from tests.support.balanced_families import clustered


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
@given(networks(most=6))
def test_every_plan_can_be_carried_out_and_none_is_faster_than_the_optimum(network):
    best = exact(network).rate
    for method in METHODS:
        plan = method(network)
        check(network, plan)
        assert plan.rate <= best * (1 + 1e-8)


@settings(max_examples=60)
@given(networks(least=3, most=6, to_all=False))
def test_plans_to_some_of_the_hosts_can_be_carried_out(network):
    for method in METHODS:
        check(network, method(network))


@given(networks(most=5))
def test_the_widest_tree_of_all(network):
    def narrowest(tree):
        return min(network.rates[start, end] for start, end in edges(tree))

    assert narrowest(bottleneck(network).trees[0]) == max(map(narrowest, living_trees(network)))


@given(networks(most=5))
def test_no_tree_is_lower_than_the_semi_flat_one(network):
    def height(tree):
        return max(depth(tree, host) for host in range(network.size))

    assert height(semi_flat(network).trees[0]) == min(map(height, living_trees(network)))


def depth(tree, host) -> int:
    return 0 if tree[host] == NO_HOST else 1 + depth(tree, tree[host])


@given(networks(most=6))
def test_a_tree_alone_is_as_fast_as_it_can_be(network):
    for tree in fpfr(network).trees:
        alone = unshaped(network, [tree]).rate
        assert alone == pytest.approx(max_rate(network, tree), rel=1e-9)
        assert alone == pytest.approx(balance(network, [tree]).rate, rel=1e-6)


def test_what_a_stream_cannot_use_others_get():
    # h0 sends 9 over three streams: the narrow path takes 1 of it, and the other two 4 each.
    network = make([[0, 1, 10, 10], [0, 0, 0, 0], [0, 10, 0, 10], [0, 0, 0, 0]], out=[9, 10, 10, 10])
    plan = unshaped(network, [(-1, 2, 0, 2), (-1, 0, 0, 2)])
    assert plan.rates == pytest.approx((10 / 3, 1))


# ------------------------------------------------------------------------------------------------- fewer trees


@settings(max_examples=40)
@given(networks(least=3, most=6), st.integers(1, 4))
def test_a_plan_of_few_trees(network, most):
    best = exact(network)
    few = best_trees(network, best, most)
    check(network, few)
    assert len(few.trees) <= most
    assert few.bound == best.bound
    assert few.rate <= best.rate * (1 + 1e-8)
    assert few.rate >= thinned(network, best, most).rate
    if len(best.trees) <= most:
        assert few == best


def test_more_trees_give_more():
    network = clustered(12, 0)
    best = exact(network)
    rates = [thinned(network, best, most).rate for most in range(1, len(best.trees) + 1)]
    assert all(one <= other * (1 + 1e-9) for one, other in itertools.pairwise(rates))


# ------------------------------------------------------------------------------------------------------- trees


@given(st.integers(2, 5), st.data())
def test_ways_pass_every_edge_once_and_from_the_root_on(size, data):
    trees = all_trees(size).tolist()
    tree = tuple(data.draw(st.sampled_from(trees)))
    pairs = [pair for way in paths(tree, 0) for pair in itertools.pairwise(way)]
    assert sorted(pairs) == sorted(edges(tree))
    reached = {0}
    for sender, receiver in pairs:
        assert sender in reached
        reached.add(receiver)


def test_branches_that_lead_to_no_receiver_go():
    assert pruned((NO_HOST, 0, 1, 0, 3), [2]) == (NO_HOST, 0, 1, NO_HOST, NO_HOST)

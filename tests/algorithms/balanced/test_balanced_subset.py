"""Multicast to some of the hosts: its certificate, and lower bounds on its rate."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from algorithms.balanced.balancing import balanced
from algorithms.balanced.bottleneck import bottleneck
from algorithms.balanced.cut_bound import cut_bound
from algorithms.balanced.exact import exact
from algorithms.balanced.network import DisconnectedError
from algorithms.balanced.steiner import improved, steiner_tree
from algorithms.balanced.subset import GAP, subset
from tests.support.simulators.balanced import brute_force, check, make, networks
from tests.support.simulators.balanced_families import clustered, sparse, tight, to_half


@settings(max_examples=60)
@given(networks(min_size=3, max_size=6, to_all=False))
def test_subset_meets_its_bound_and_no_other_method_exceeds_it(network):
    plan = subset(network)
    check(network, plan)
    assert plan.bound is not None
    assert plan.rate >= plan.bound * (1 - 1e-3)
    for method in (balanced, bottleneck):
        assert method(network).rate <= plan.bound * (1 + 1e-6)


@settings(max_examples=40)
@given(networks(min_size=3, max_size=6, to_all=False))
def test_subset_is_no_slower_than_all_hosts_or_receivers_only(network):
    plan = subset(network)
    try:
        to_all = replace(network, receivers=tuple(host for host in range(network.size) if host != network.root))
    except DisconnectedError:
        pass
    else:
        assert exact(to_all).rate <= plan.rate * (1 + 1e-3)
    kept = [network.root, *network.receivers]
    rates = network.rates[kept][:, kept].tolist()
    try:
        alone = make(rates, network.out[kept], network.into[kept])
    except DisconnectedError:
        return
    assert exact(alone).rate <= plan.rate * (1 + 1e-3)


@given(networks(max_size=5))
def test_subset_of_all_hosts_reaches_optimum(network):
    best = brute_force(network)
    plan = subset(network)
    assert best * (1 - GAP) * (1 - 1e-7) <= plan.rate <= best * (1 + 1e-7) <= plan.bound * (1 + 1e-6)


@pytest.mark.parametrize("family", [tight, sparse, clustered])
@pytest.mark.parametrize("size", [8, 16])
def test_subset_is_within_a_thousandth_of_bound_on_families(family, size):
    network = to_half(family(size, 9), 9)
    plan = subset(network)
    check(network, plan)
    assert plan.rate >= 0.999 * plan.bound


def test_slow_relay_is_not_part_of_every_tree():
    # Straight to the receiver goes 1; the relay brings 2 more, which is all that it can take.
    network = make([[0, 9, 1], [0, 0, 9], [0, 0, 0]], into=[9, 2, 9], receivers=[2])
    plan = subset(network)
    check(network, plan)
    assert plan.rate == pytest.approx(3) == pytest.approx(plan.bound)


def test_relay_raises_rate_above_receivers_only():
    network = make([[0, 4, 0, 0], [0, 0, 2, 2], [0, 0, 0, 1], [0, 0, 1, 0]], receivers=[2, 3])
    plan = subset(network)
    assert plan.rate == pytest.approx(3) == pytest.approx(cut_bound(network))


def test_stopped_subset_search_returns_valid_plan_and_bound():
    network = to_half(clustered(16, 0), 0)
    plan = subset(network, lambda: True)
    check(network, plan)
    assert plan.rate <= subset(network).rate * (1 + 1e-9) <= plan.bound * (1 + 1e-6)


def test_steiner_tree_uses_relay_when_cheaper():
    costs = make([[0, 5, 5, 1], [0, 0, 5, 0], [0, 5, 0, 0], [0, 1, 1, 0]]).rates.copy()
    costs[costs == 0] = float("inf")
    assert steiner_tree(costs, 0, [1, 2]) == (-1, 3, 3, 0)
    assert steiner_tree(costs, 0, [3]) == (-1, -1, -1, 0)


def test_improved_tree_exchanges_relay_for_lower_cost():
    # To 1 and to 2 straight it is 3 each and 6 together; over the relay 3 it is 2 + 1 + 1.
    costs = make([[0, 3, 3, 2], [0, 0, 9, 9], [0, 9, 0, 9], [0, 1, 1, 0]]).rates.copy()
    costs[costs == 0] = float("inf")
    assert improved(costs, 0, [1, 2], (-1, 0, 0, -1)) == (-1, 3, 3, 0)
    assert improved(costs, 0, [1], (-1, 3, -1, 0)) in {(-1, 0, -1, -1), (-1, 3, -1, 0)}

"""The exact optimum against every tree there is, and what must hold on any network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.balanced.cut_bound import cut_bound
from algorithms.balanced.exact import ExactSearch, exact
from tests.support.simulators.balanced import all_trees, brute_force, check, figure_2, make, networks
from tests.support.simulators.balanced_families import FAMILIES, tight

OPTIMUM_OF_8 = 2.376440
"""Of `tight(8, 1)`, with all 262,144 trees in one linear program."""


def test_number_of_all_trees_is_that_of_cayleys_formula():
    for size in range(2, 7):
        trees = set(map(tuple, all_trees(size).tolist()))
        assert len(trees) == size ** (size - 2)


def test_figure_2():
    plan = exact(figure_2())
    check(figure_2(), plan)
    assert plan.rate == pytest.approx(9)
    assert plan.bound == pytest.approx(9)
    assert dict(zip(plan.trees, plan.rates, strict=True)) == pytest.approx(
        {(-1, 0, 1): 4, (-1, 2, 0): 4, (-1, 0, 0): 1}
    )


@given(networks(max_size=5))
def test_exact_rate_equals_brute_force(network):
    plan = exact(network)
    check(network, plan)
    assert plan.rate == pytest.approx(brute_force(network), rel=1e-7)
    assert plan.bound == pytest.approx(plan.rate, rel=1e-8)


def test_dual_prices_over_all_trees_of_8_hosts_prove_optimum():
    # Prices at which no tree costs less than 1 bound every plan by what all limits together are worth.
    network = tight(8, 1)
    search = ExactSearch(network)
    while not search.finished:
        search.improve()
    prices = search._generation.master.solve()
    rows = search._generation.master.resources
    trees = all_trees(8)
    assert len(trees) == 262_144
    costs = np.append(rows.arc_costs(prices), np.zeros((1, 8)), axis=0)
    cheapest = costs[trees, np.arange(8)].sum(axis=1).min()
    worth = sum(price * limit for price, limit in zip(prices, rows.limits, strict=True) if price)
    assert worth * rows.unit / cheapest == pytest.approx(search.rate, rel=1e-9)
    assert search.rate == pytest.approx(OPTIMUM_OF_8, abs=5e-7)


@pytest.mark.parametrize("family", FAMILIES)
def test_optimum_equals_cut_bound_on_each_family(family):
    # Edmonds: as many trees fit as enter every set of hosts. Another program, with another method behind it.
    network = FAMILIES[family](16, 1)
    plan = exact(network)
    check(network, plan)
    assert plan.rate == pytest.approx(cut_bound(network), rel=1e-7)
    assert plan.bound - plan.rate <= 1e-9 * plan.bound


@given(networks(max_size=5))
def test_optimum_equals_cut_bound_on_random_networks(network):
    assert exact(network).rate == pytest.approx(cut_bound(network), rel=1e-6)


@given(networks(max_size=6), st.sampled_from([2.0**-20, 2.0**30, 1e-3, 7.0, 1e6]))
def test_optimum_scales_with_unit_of_rates(network, factor):
    scaled = replace(network, rates=network.rates * factor, out=network.out * factor, into=network.into * factor)
    assert exact(scaled).rate == pytest.approx(exact(network).rate * factor, rel=1e-8)


@given(networks(min_size=3, max_size=6), st.data())
def test_dead_link_never_raises_optimum(network, data):
    plan = exact(network)
    living = np.argwhere(network.rates > 0).tolist()
    start, end = data.draw(st.sampled_from(living))
    rates = network.rates.copy()
    rates[start, end] = 0
    try:
        without = replace(network, rates=rates)
    except ValueError:
        return
    left = exact(without)
    check(without, left)
    assert left.rate <= plan.rate * (1 + 1e-8)


@settings(max_examples=30)
@given(networks(max_size=6), st.integers(0, 3))
def test_stopped_search_returns_valid_plan_and_bound(network, rounds):
    left = iter(range(rounds))
    plan = exact(network, lambda: next(left, None) is None)
    check(network, plan)
    assert plan.bound >= exact(network).rate * (1 - 1e-8)


def test_exact_solves_rates_that_differ_by_24_orders_of_magnitude():
    network = make([[0, 1e15, 1e-9], [1e15, 0, 1e-9], [0, 0, 0]])
    plan = exact(network)
    check(network, plan)
    assert plan.rate == pytest.approx(2e-9)


def test_a_host_that_cannot_send_is_a_leaf():
    network = make([[0, 5, 5], [5, 0, 5], [5, 5, 0]], out=[6, 0, 9])
    plan = exact(network)
    check(network, plan)
    assert plan.rate == pytest.approx(brute_force(network)) == pytest.approx(5)
    assert all(1 not in tree for tree in plan.trees)


def test_exact_rejects_networks_with_hosts_that_do_not_receive():
    with pytest.raises(ValueError, match="some hosts do not receive"):
        exact(make([[0, 1, 1], [1, 0, 1], [1, 1, 0]], receivers=[2]))

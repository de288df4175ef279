"""The order of FPFR's searches, which the paper does not define: properties of all orders and of single ones."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.balanced.balancing import balanced
from algorithms.balanced.exact import exact
from algorithms.balanced.fpfr import ORDERS, Order, fpfr
from algorithms.balanced.network import Network
from algorithms.balanced.plan import edges, max_rate
from algorithms.balanced.testbeds import gridlab
from algorithms.balanced.unshaped import unshaped
from tests.support.simulators.balanced import check, figure_2, make, networks
from tests.support.simulators.fpfr_oracle import (
    all_forests,
    best,
    fixed_orders,
    links_of,
    matrices,
    narrowest_cut,
    spanning_searches,
    with_order,
)

DRAWS = 200
INDEX_MISSES = [[0, 1, 2, 1], [0, 0, 1, 2], [0, 1, 0, 1], [0, 2, 1, 0]]
"""All paths carry something, and the narrowest cut is 4: `index` and `widest` reserve 3."""

orders = st.sampled_from(ORDERS)
seeds = st.integers(0, 1000)
small = (
    st.integers(2, 4)
    .flatmap(
        lambda size: st.lists(st.lists(st.integers(0, 3), min_size=size, max_size=size), min_size=size, max_size=size)
    )
    .filter(lambda rates: narrowest_cut(rates) > 0)
)


def unshaped_rate(network: Network, order: Order, seed: int = 0) -> float:
    return unshaped(network, fpfr(network, order, seed).trees).rate


# ---------------------------------------------------------------------------------------- against the oracle


@given(small)
def test_order_index_agrees_with_oracle(rates: list[list[int]]) -> None:
    size = len(rates)
    by_index = [[end for end in range(1, size) if end != start] for start in range(size)]
    assert fpfr(make(rates), "index").rate == with_order(size, links_of(rates), by_index)


@given(small, orders, seeds)
def test_every_order_finds_one_of_the_sets_of_trees_of_the_oracle(
    rates: list[list[int]], order: Order, seed: int
) -> None:
    network = make(rates)
    found = frozenset(frozenset(edges(tree)) for tree in fpfr(network, order, seed).trees)
    assert found in all_forests(network.size, links_of(rates))


def test_order_widest_takes_the_widest_path() -> None:
    assert fpfr(make([[0, 1, 2], [0, 0, 5], [0, 5, 0]]), "widest").trees[0] == (-1, 2, 0)
    assert fpfr(make([[0, 1, 2], [0, 0, 5], [0, 5, 0]]), "index").trees[0] == (-1, 0, 1)


def test_order_random_is_reproducible_and_reaches_every_first_tree() -> None:
    network = gridlab("brno")
    assert fpfr(network, "random", 3) == fpfr(network, "random", 3)
    first = {fpfr(make(INDEX_MISSES), "random", seed).trees[0] for seed in range(DRAWS)}
    assert {frozenset(edges(tree)) for tree in first} == spanning_searches(4, links_of(INDEX_MISSES))


# ------------------------------------------------------------------------------------------- on any network


@settings(max_examples=60)
@given(networks(max_size=6), orders, seeds)
def test_plan_of_every_order_is_feasible_and_not_above_the_optimum(network: Network, order: Order, seed: int) -> None:
    optimum = exact(network).rate
    trees = fpfr(network, order, seed).trees
    for plan in (balanced(network, order, seed), unshaped(network, trees)):
        check(network, plan)
        assert plan.rate <= optimum * (1 + 1e-8)


@settings(max_examples=60)
@given(networks(max_size=6), orders, seeds)
def test_reservations_of_every_order_stay_within_the_paths(network: Network, order: Order, seed: int) -> None:
    plan = fpfr(network, order, seed)
    wide = make([[rate if width else 0 for rate, width in zip(*rows, strict=True)] for rows in _rows(network)])
    check(wide, plan)
    assert plan.rate <= exact(wide).rate * (1 + 1e-8)


def _rows(network: Network) -> list[tuple[list[float], list[float]]]:
    return list(zip(network.rates.tolist(), network.widths.tolist(), strict=True))


@settings(max_examples=60)
@given(networks(max_size=6), orders, seeds)
def test_shaping_never_lowers_the_rate_of_any_order(network: Network, order: Order, seed: int) -> None:
    assert unshaped_rate(network, order, seed) <= balanced(network, order, seed).rate * (1 + 1e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_figure_2_holds_for_every_order(order: Order) -> None:
    network = figure_2()
    for seed in range(20):
        assert fpfr(network, order, seed).rate == 12
        assert unshaped_rate(network, order, seed) == pytest.approx(7.5)
        assert balanced(network, order, seed).rate == pytest.approx(9)


# -------------------------------------------------------- section 3.1 (a): access links are much wider than paths


def test_three_hosts_every_order_is_optimal_with_wide_access_links() -> None:
    for rates in matrices(3, range(4)):
        optimum, links = narrowest_cut(rates), links_of(rates)
        assert {with_order(3, links, order) for order in fixed_orders(3)} == {optimum}


def test_four_hosts_index_and_widest_and_many_draws_miss_the_optimum_with_wide_access_links() -> None:
    network = make(INDEX_MISSES)
    assert exact(network).rate == pytest.approx(narrowest_cut(INDEX_MISSES)) == pytest.approx(4)
    for order in ("index", "widest"):
        assert fpfr(network, order).rate == balanced(network, order).rate == pytest.approx(3)
    draws = [balanced(network, "random", seed).rate for seed in range(DRAWS)]
    assert (min(draws), statistics.median(draws)) == pytest.approx((2, 4))
    assert sum(rate < 3.5 for rate in draws) == 78


def test_four_hosts_some_order_is_optimal_on_each_network_with_wide_access_links() -> None:
    # So section 3.1 (a) has no counter-example here that holds for every order. All networks with rates 0, 1 and 2.
    permutations = fixed_orders(4)
    counted = 0
    for rates in matrices(4, range(3)):
        optimum, links = narrowest_cut(rates), links_of(rates)
        assert any(with_order(4, links, order) == optimum for order in permutations), rates
        counted += 1
    assert counted == 16_848


@given(small)
def test_no_order_is_above_the_narrowest_cut(rates: list[list[int]]) -> None:
    size, links = len(rates), links_of(rates)
    fixed = [with_order(size, links, order) for order in fixed_orders(size)]
    assert max(fixed) <= best(size, links) <= narrowest_cut(rates)


# --------------------------------------------------------- section 3.1 (b): all rates and capacities are the same


@pytest.mark.parametrize("size", [3, 4])
def test_equal_rates_first_tree_of_every_order_is_an_optimal_chain(size: int) -> None:
    rates = [[int(start != end) for end in range(size)] for start in range(size)]
    network = make(rates, 1, 1)
    assert exact(network).rate == pytest.approx(1)
    for tree in spanning_searches(size, links_of(rates)):
        parents = {end: start for start, end in tree}
        assert len(set(parents.values())) == size - 1, "each host but the last sends to one"
        assert max_rate(network, tuple(parents.get(host, -1) for host in range(size))) == 1


@pytest.mark.parametrize("size", [3, 4])
def test_equal_rates_every_order_finds_more_than_a_single_chain(size: int) -> None:
    # Counter-example to "a single chain": FPFR ignores access links, and paths are left for a second tree.
    rates = [[int(start != end) for end in range(size)] for start in range(size)]
    assert min(map(len, all_forests(size, links_of(rates)))) > 1


@pytest.mark.parametrize("order", ORDERS)
def test_equal_rates_balanced_trees_are_optimal_for_every_order(order: Order) -> None:
    network = make([[3 * (start != end) for end in range(9)] for start in range(9)], 3, 3)
    assert balanced(network, order).rate == pytest.approx(3)
    assert len(fpfr(network, order).trees) > 1


def test_dead_links_make_equal_rates_depend_on_the_order() -> None:
    # A chain h0 → h2 → h1 exists, but a search that visits h1 first has to return to h0.
    network = make([[0, 1, 1], [0, 0, 0], [0, 1, 0]], 1, 1)
    assert exact(network).rate == pytest.approx(1)
    assert balanced(network, "index").rate == balanced(network, "widest").rate == pytest.approx(0.5)
    assert {round(balanced(network, "random", seed).rate, 6) for seed in range(20)} == {0.5, 1.0}

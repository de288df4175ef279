"""The method `trees` against closed forms, and against the pipeline on uneven sites."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from algorithms.balanced.network import DisconnectedError, Network
from algorithms.balanced.testbeds import gridlab
from blast_sim.fair import Paths
from blast_sim.flow.sites import DeadPathError, SiteNetwork
from blast_sim.methods.method import Multicast, Phased
from blast_sim.methods.naive import naive
from blast_sim.methods.pipeline import BLOCK, pipeline
from blast_sim.methods.trees import MAX_PLANNED, planned, trees, worthwhile
from tests.support.simulators.balanced import check, figure_2, make
from tests.support.simulators.flows import GIGABIT, group, small_network, times_of, world

UNIT = 8.0 * BLOCK
"""Bits of a block."""


def scaled(network: Network, factor: float) -> Network:
    return replace(network, rates=network.rates * factor, out=network.out * factor, into=network.into * factor)


def seconds(network: SiteNetwork, phases, size: int, sender: int = 0) -> float:
    receivers = tuple(site for site in range(network.servers) if site != sender)
    where = world(network)
    return times_of(where, Phased(where, phases), [Multicast("m", sender, receivers, size)])["m"]


def test_trees_reach_the_rate_nine_of_figure_2() -> None:
    """The difference of two sizes gives the rate, because the filling block takes the same time in both."""
    network = SiteNetwork.of(scaled(figure_2(), GIGABIT))
    once, twice = (seconds(network, trees, size) for size in (9 * 10**9, 18 * 10**9))
    assert 8 * 9e9 / (twice - once) == pytest.approx(9 * GIGABIT)


def test_trees_add_one_block_for_each_edge_but_two() -> None:
    """A chain is the only tree: root, 1, 2, 3."""
    network = SiteNetwork.of(make([[0, 1e9, 0, 0], [0, 0, 1e9, 0], [0, 0, 0, 1e9], [0, 0, 0, 0]]))
    assert seconds(network, trees, 100_000_000) == pytest.approx((8e8 + 2 * UNIT) / 1e9)


def test_slow_tree_is_omitted_for_small_data() -> None:
    """9 and 1 Gbit/s, the second over five edges: with much data it pays, with little it does not."""
    slowness = [1 / 9e9, 5 / 1e9]
    assert worthwhile(90e9, [9e9, 1e9], slowness) == [pytest.approx(81e9), pytest.approx(9e9)]
    assert worthwhile(90e6, [9e9, 1e9], slowness) == [90e6]


def test_tree_shares_a_link_with_other_flows() -> None:
    """One path of 10, on which two flows run beside the only tree: a third is left."""
    network = SiteNetwork.of(make([[0, 9e9], [0, 0]]))
    where = world(network)
    for _ in range(2):
        where.simulation.start(network.unicast([0], [1]), 1e12, lambda _: None)
    taken = times_of(where, Phased(where, trees), [Multicast("m", 0, (1,), 300_000_000)])
    assert taken["m"] == pytest.approx(2.4e9 / 3e9)


def test_paced_root_leaves_its_spare_rate_to_other_flows() -> None:
    """The tree's narrow edge holds it to 2 of the root's 10: a flow beside it has 8."""
    network = SiteNetwork.of(make([[0, 2e9, 1e10], [0, 0, 2e9], [0, 0, 0]], [1e10, 1e10, 1e10], [1e10, 2e9, 1e10]))
    where = world(network)
    ended = []
    beside = network.unicast([0], [2])
    where.simulation.start(beside, 8e9, lambda _: ended.append(where.simulation.clock.now))
    times_of(where, Phased(where, trees), [Multicast("m", 0, (1,), 1_000_000_000)])
    assert ended == [pytest.approx(1.0)]


@pytest.mark.parametrize("root", [0, 4])
def test_trees_are_faster_than_the_pipeline_on_uneven_sites(root: int) -> None:
    network = SiteNetwork.of(gridlab("amsterdam"))
    receivers = tuple(site for site in range(8) if site != root)
    # The trees must be faster than the pipeline in each of these orders.
    orders = [receivers, receivers[::-1], receivers[3:] + receivers[:3]]
    times = []
    for order in orders:
        where = world(network)
        try:
            times.append(times_of(where, Phased(where, pipeline), [Multicast("m", root, order, 200_000_000)])["m"])
        except DeadPathError:
            continue
    assert all(seconds(network, trees, 200_000_000, root) < taken for taken in times)


def test_error_of_a_direct_method_names_the_dead_path() -> None:
    with pytest.raises(DeadPathError, match="h0 to h2 is dead"):
        seconds(SiteNetwork.of(make([[0, 1e9, 0], [0, 0, 1e9], [0, 0, 0]])), naive, 1000)


def test_error_names_the_sites_without_a_live_path() -> None:
    network = SiteNetwork.of(make([[0, 1e9, 1e9], [1e9, 0, 0], [0, 0, 0]]))
    with pytest.raises(DisconnectedError, match="from 'h2' to 'h0', 'h1'"):
        trees(world(network), Multicast("m", 2, (0, 1), 1000))


def test_site_paths_have_one_link_in_each_direction() -> None:
    """Paths between sites contain no links of racks."""
    network = SiteNetwork.of(gridlab("berlin"))
    paths = network.unicast([0, 1, 1], [1, 0, 1])
    assert paths.lengths.tolist() == [3, 3, 0]
    assert network.capacities[paths.links].tolist() == [80e6, 17e6, 100e6, 45e6, 37e6, 100e6]


def test_large_group_gets_a_chain_or_one_fitting_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    network = small_network(MAX_PLANNED + 2, 1, 4.0)
    taken = []
    for phases in (trees, pipeline):
        where = world(network)
        taken += times_of(where, Phased(where, phases), [group(network, range(network.racks), 10**9)]).values()
    assert taken[0] == pytest.approx(taken[1])
    monkeypatch.setattr("blast_sim.methods.trees.MAX_PLANNED", 2)
    plan = planned(figure_2())
    assert len(plan.trees) == 1
    check(figure_2(), plan)


def test_rate_cap_applies_only_to_its_own_transfer() -> None:
    where = world(small_network())
    ends: dict[str, float] = {}
    start = where.simulation.start
    path = Paths.of([[0, 30]])

    def end(name: str, _: np.ndarray) -> None:
        ends[name] = where.simulation.clock.now

    start(path, 1e9, partial(end, "paced"), rate_caps=1e9)
    start(path, 9e9, partial(end, "free"))
    where.simulation.run(lambda: len(ends) == 2)
    assert ends == {"paced": pytest.approx(1.0), "free": pytest.approx(1.0)}

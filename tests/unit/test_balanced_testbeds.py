"""The testbeds of the paper: what it says of its figures 7 and 8 holds on them."""

from __future__ import annotations

import pytest

from algorithms.balanced.balancing import balanced
from algorithms.balanced.bottleneck import bottleneck
from algorithms.balanced.exact import exact
from algorithms.balanced.fpfr import fpfr
from algorithms.balanced.network import Network, UnknownHost
from algorithms.balanced.semi_flat import semi_flat
from algorithms.balanced.testbeds import INTERFACE, SITES, WIDE_AREA, das, gridlab
from algorithms.balanced.unshaped import unshaped

ROUNDING = 1e-9


def single(network: Network) -> float:
    return max(semi_flat(network).rate, bottleneck(network).rate)


def trees_of_fpfr(network: Network) -> float:
    return unshaped(network, fpfr(network).trees).rate


@pytest.mark.parametrize("root", SITES)
def test_balanced_trees_beat_all_but_the_optimum_at_every_root(root: str) -> None:
    network = gridlab(root)
    rate, optimum = balanced(network).rate, exact(network)
    assert rate > 1.2 * max(single(network), trees_of_fpfr(network))
    assert optimum.rate >= rate * (1 - ROUNDING)
    assert optimum.bound == pytest.approx(optimum.rate, rel=ROUNDING)


def test_fpfr_is_below_a_single_tree_at_some_roots_and_above_at_others() -> None:
    shares = [trees_of_fpfr(network) / single(network) for network in map(gridlab, SITES)]
    assert min(shares) < 0.9 and max(shares) > 1.1


def test_balanced_trees_do_not_always_reach_the_optimum() -> None:
    assert any(exact(network).rate > 1.1 * balanced(network).rate for network in map(gridlab, SITES))


def test_a_root_that_is_no_site_is_refused() -> None:
    with pytest.raises(UnknownHost, match=r"'paris'.*amsterdam"):
        gridlab("paris")


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("nodes", [1, 4, 8])
def test_clusters_reach_their_interfaces_together_or_the_thinnest_path(count: int, nodes: int) -> None:
    thinnest = min(WIDE_AREA[: count - 1])
    network = das(count, nodes)
    assert [rate for _, _, rate in network.links] == list(WIDE_AREA[: count - 1])
    assert exact(network.numbered()).rate == pytest.approx(min(nodes * INTERFACE, thinnest))

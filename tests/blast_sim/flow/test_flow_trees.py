"""The method `trees` on random networks: complete delivery, no overloaded link, no time below the bound."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.balanced.exact import exact
from blast_sim.flow.sites import SiteNetwork
from blast_sim.methods.method import Multicast, Phased
from blast_sim.methods.pipeline import BLOCK, pipeline
from blast_sim.methods.trees import trees
from tests.support.simulators.balanced import networks
from tests.support.simulators.flows import GIGABIT, group, small_network, times_of, world

ROUNDING = 1e-6
SIZES = st.integers(1, 10**9)


@st.composite
def sites(draw) -> SiteNetwork:
    """Draw networks of the balanced multicast with rates above a megabit, so that no transfer takes days."""
    drawn = draw(networks(min_size=2, max_size=6))
    scale = 1e6 / drawn.widths[drawn.widths > 0].min()
    return SiteNetwork.of(replace(drawn, rates=drawn.rates * scale, out=drawn.out * scale, into=drawn.into * scale))


def to_all(network: SiteNetwork, size: int, name: str = "m") -> Multicast:
    """Return a multicast from the first site to the others."""
    return Multicast(name, 0, tuple(range(1, network.servers)), size)


def flows(network: SiteNetwork, multicast: Multicast) -> tuple[list[list[int]], np.ndarray, np.ndarray]:
    """Return the links, bits and rate caps of each tree."""
    phases = trees(world(network), multicast)
    caps = [math.inf if phase.rate_caps is None else phase.rate_caps for phase in phases]
    return [phase.paths.links.tolist() for phase in phases], np.array([phase.bits for phase in phases]), np.array(caps)


@settings(max_examples=60, deadline=None)
@given(sites(), SIZES)
def test_trees_deliver_all_data_to_each_receiver_once(network: SiteNetwork, size: int) -> None:
    multicast = to_all(network, size)
    links, bits, caps = flows(network, multicast)
    assert bits.sum() == pytest.approx(multicast.bits)
    assert bits == pytest.approx(multicast.bits * caps / caps.sum())
    for path in links:
        received = [link - network.servers for link in path if network.servers <= link < 2 * network.servers]
        assert sorted(received) == list(multicast.receivers)


@settings(max_examples=60, deadline=None)
@given(sites(), SIZES)
def test_uncontended_trees_reach_their_rates_and_meet_the_bound(network: SiteNetwork, size: int) -> None:
    multicast = to_all(network, size)
    _, bits, caps = flows(network, multicast)
    where = world(network)
    taken = times_of(where, Phased(where, trees), [multicast])["m"]
    # Each has its rate, and then no more than a block at the rate of its slowest edge for each edge but one.
    assert taken >= (bits / caps).max() * (1 - ROUNDING) - 1e-8
    filled = bits + (network.servers - 2) * np.minimum(8 * BLOCK, bits)
    assert taken <= (filled / caps).max() * (1 + ROUNDING) + 1e-8
    model = network.model
    best = exact(model)
    assert taken <= over_all(best.rates, multicast.bits, network.servers - 2) * (1 + ROUNDING) + 1e-8
    bound = min(model.out[0], *model.into[1:], best.bound)
    assert taken * bound >= multicast.bits * (1 - ROUNDING)


def over_all(rates, bits: float, wait: int) -> float:
    """Return an upper bound on the time over all these trees, each with the longest possible path."""
    parts = [bits * rate / sum(rates) for rate in rates]
    return max((part + wait * min(8 * BLOCK, part)) / rate for part, rate in zip(parts, rates, strict=True))


@settings(max_examples=40, deadline=None)
@given(sites(), st.lists(SIZES, min_size=2, max_size=4))
def test_concurrent_multicasts_overload_no_link(network: SiteNetwork, sizes: list[int]) -> None:
    multicasts = [to_all(network, size, str(number)) for number, size in enumerate(sizes)]
    where = world(network)
    taken = times_of(where, Phased(where, trees), multicasts)
    put = np.zeros(len(network.capacities))
    for multicast in multicasts:
        for path, bits in zip(*flows(network, multicast)[:2], strict=True):
            np.add.at(put, path, bits)
    assert (put <= network.capacities * (max(taken.values()) + 1e-8) * (1 + ROUNDING)).all()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 5),
    st.floats(1.0, 40.0),
    st.integers(0, 2),
    st.integers(1, 10**9),
)
def test_trees_equal_the_pipeline_on_uniform_links(racks: int, servers: int, uplink: float, load: int, size: int):
    """The paper's claim (b), also with thin uplinks and beside other traffic."""
    network = small_network(6, servers, uplink)
    if racks * servers < 2:
        return
    taken = []
    for phases in (trees, pipeline):
        where = world(network, load)
        taken += times_of(where, Phased(where, phases), [group(network, range(racks), size)]).values()
    assert taken[0] == pytest.approx(taken[1], rel=ROUNDING, abs=1e-8)
    (phase,) = trees(world(network), group(network, range(racks), size))
    assert phase.rate_caps is None or phase.rate_caps == pytest.approx(min(10.0, uplink) * GIGABIT)

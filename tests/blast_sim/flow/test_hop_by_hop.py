"""The simulator's pipeline and trees against a model of their hops, block by block.

The model knows nothing of flows: a host sends a block on when it has all of it and has sent the one before, and every
hop has one rate. The simulator has one flow for all hops. With blocks that are all full both give the same time. A last
block that is not full passes the hops after the slowest one faster than the simulator counts, and by less than the
slowest hop takes for a full block.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blast_sim.fair import Paths, fair_rates
from blast_sim.flow.background import Rounds
from blast_sim.flow.network import RackNetwork
from blast_sim.flow.sites import SiteNetwork
from blast_sim.methods.method import Multicast, Phased
from blast_sim.methods.pipeline import BLOCK, pipeline
from blast_sim.methods.trees import trees
from blast_transport.wire.datagram import segment_size_for, segments_for
from tests.support.simulators.balanced import make
from tests.support.simulators.flows import group, small_network, times_of, world

ROUNDING = 1e-6
MOMENT = 1e-8
"""Seconds: the simulator ends flows up to a nanosecond early."""
RATES = st.floats(1e6, 1e10)
SIZES = st.one_of(st.integers(1, 5).map(lambda count: count * BLOCK), st.integers(1, 3 * BLOCK), st.integers(1, 10**7))


def lengths_of(size: int) -> list[int]:
    """Return the bytes of each block."""
    return [min(BLOCK, size - first) for first in range(0, size, BLOCK)]


def arrival(size: int, parents: Sequence[int], rates: Sequence[float], pace: float = np.inf) -> float:
    """Return the time at which all hosts have all blocks: host v >= 1 receives from parents[v] < v at rates[v] bit/s.

    The root begins with a block no sooner than it would have sent those before it at `pace`.
    """
    had = np.zeros(len(parents))
    released = 0.0
    for length in lengths_of(size):
        moment = np.full(len(parents), released)
        for host in range(1, len(parents)):
            moment[host] = max(moment[parents[host]], had[host]) + 8 * length / rates[host]
        had, released = moment, released + 8 * length / pace
    return float(had.max())


def agrees(found: float, model: float, slowest: float) -> None:
    assert model * (1 - ROUNDING) - MOMENT <= found <= (model + 8 * BLOCK / slowest) * (1 + ROUNDING)


def simulated(method, parents: Sequence[int], rates: Sequence[float], size: int) -> float:
    """Return the transfer time in a network that has no paths but those of the tree."""
    widths = np.zeros((len(parents), len(parents)))
    for host in range(1, len(parents)):
        widths[parents[host], host] = rates[host]
    where = world(SiteNetwork.of(make(widths)))
    return times_of(where, Phased(where, method), [Multicast("m", 0, tuple(range(1, len(parents))), size)])["m"]


def test_model_equals_the_closed_form_of_one_and_two_blocks() -> None:
    """Two blocks over 1, 4 and 2 bit/s: the second is 8 B seconds behind the first at the first hop, and catches up."""
    unit = 8.0 * BLOCK
    assert arrival(BLOCK, [0, 0, 1, 2], [0, 1, 4, 2]) == unit * (1 + 1 / 4 + 1 / 2)
    assert arrival(2 * BLOCK, [0, 0, 1, 2], [0, 1, 4, 2]) == unit * (2 + 1 / 4 + 1 / 2)


@settings(max_examples=100, deadline=None)
@given(st.lists(RATES, min_size=1, max_size=8), SIZES, st.sampled_from([pipeline, trees]))
@example([165e6, 10e9, 10e9, 165e6, 10e9], 1_000_000, pipeline)
def test_pipeline_time_equals_the_hop_model(rates: list[float], size: int, method) -> None:
    parents, rates = [0, *range(len(rates))], [0.0, *rates]
    found, model = simulated(method, parents, rates, size), arrival(size, parents, rates)
    agrees(found, model, min(rates[1:]))
    if size % BLOCK == 0 or size < BLOCK:
        assert found == pytest.approx(model, rel=ROUNDING, abs=MOMENT)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.lists(RATES, min_size=1, max_size=8), SIZES)
def test_tree_time_equals_the_hop_model(data, rates: list[float], size: int) -> None:
    """One tree only, whose root keeps to the rate of the slowest edge."""
    parents = [0] + [data.draw(st.integers(0, host - 1)) for host in range(1, len(rates) + 1)]
    rates = [0.0, *rates]
    slowest = min(rates[1:])
    found, model = simulated(trees, parents, rates, size), arrival(size, parents, rates, slowest)
    agrees(found, model, slowest)
    assert arrival(size, parents, rates) <= found * (1 + ROUNDING) + MOMENT


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(1, 4), st.floats(0.05, 10.0), st.integers(0, 2), st.integers(1, 10**7))
def test_pipeline_time_between_racks_equals_the_hop_model(
    racks: int, servers: int, uplink: float, load: int, size: int
) -> None:
    """The first round of the background is over after a second, and with it these rates."""
    network = small_network(6, servers, uplink)
    multicast = group(network, range(racks), size)
    rates = [0.0, *hop_rates(network, multicast, load)]
    model = arrival(size, [0, *range(len(rates) - 1)], rates)
    where = world(network, load)
    found = times_of(where, Phased(where, pipeline), [multicast])["m"]
    if found < 1.0:
        agrees(found, model, min(rates[1:]))


def hop_rates(network: RackNetwork, multicast: Multicast, load: int) -> list[float]:
    """Return the fair rates of all hops at once beside the background traffic of the first round."""
    hops = network.unicast(multicast.servers[:-1], multicast.servers[1:])
    rounds = Rounds(network, load)
    beside = [rounds.paths(shift) for shift in rounds.shifts(0)]
    return fair_rates(network.capacities, Paths.concatenate([hops, *beside]), solver="numpy")[: len(hops)].tolist()


def test_block_size_equals_that_of_the_transport() -> None:
    segment = segment_size_for(1500)
    assert segments_for(segment) * segment == BLOCK


def test_fast_hops_fill_without_waiting_for_the_slow_one() -> None:
    """1 MB under light load: the hops of two uplinks are slow, and those within racks are not."""
    network = small_network(7, 40, 1.0)
    where = world(network, 2)
    rates = hop_rates(network, group(network, (0, 1, 2)), 2)
    taken = times_of(where, Phased(where, pipeline), [group(network, (0, 1, 2), 1_000_000)])["m"]
    assert taken <= 1.001 * (8e6 / min(rates) + sum(8 * BLOCK / rate for rate in rates))

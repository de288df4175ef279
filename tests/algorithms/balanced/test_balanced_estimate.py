"""The estimate of a network from the flows of a multicast, against networks with known changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.balanced.estimate import (
    DRIFT,
    PROBE_SECONDS,
    RECOVERED,
    STEADY_SECONDS,
    EstimatedFlow,
    NetworkEstimate,
    NetworkPart,
    NetworkPlace,
)
from algorithms.balanced.exact import exact
from algorithms.balanced.plan import kept_within, loads
from tests.support.simulators.balanced import figure_2, make, networks

PATH_0_1 = NetworkPlace(NetworkPart.PATH, 0, 1)


def learned(flows, network=None, seconds=2 * STEADY_SECONDS):
    """Return the estimate of the network after an observation of these flows."""
    estimate = NetworkEstimate(network or figure_2())
    estimate.see(flows, 0.0)
    estimate.see(flows, seconds)
    return estimate


def test_single_slow_flow_lowers_rate_of_its_path():
    estimate = learned([EstimatedFlow(0, 1, 3.0, 8.0, True), EstimatedFlow(0, 2, 5.0, 5.0, False)])
    assert estimate.network.rates[0, 1] == 3
    assert estimate.network.rates[0, 2] == figure_2().rates[0, 2]
    assert np.array_equal(estimate.network.out, figure_2().out)


def test_slow_flows_of_one_host_lower_capacity_of_shared_access_link():
    estimate = learned([EstimatedFlow(0, 1, 3.0, 5.0, True), EstimatedFlow(0, 2, 1.0, 5.0, True)])
    assert estimate.network.out[0] == 4
    assert np.array_equal(estimate.network.rates, figure_2().rates)
    estimate = learned([EstimatedFlow(0, 2, 3.0, 5.0, True), EstimatedFlow(1, 2, 1.0, 4.0, True)])
    assert estimate.network.into[2] == 4
    assert np.array_equal(estimate.network.rates, figure_2().rates)


@pytest.mark.parametrize(
    "flow",
    [
        EstimatedFlow(0, 1, 3.0, 8.0, False),  # The sender had no more data.
        EstimatedFlow(0, 1, DRIFT * 8.0, 8.0, True),  # Within the drift of headers and chance.
    ],
)
def test_starved_or_nearly_full_rate_flow_changes_no_estimate(flow):
    assert np.array_equal(learned([flow]).network.rates, figure_2().rates)


def test_short_slowdown_changes_no_estimate():
    estimate = NetworkEstimate(figure_2())
    slow, well = [EstimatedFlow(0, 1, 3.0, 8.0, True)], [EstimatedFlow(0, 1, 8.0, 8.0, False)]
    for now, flows in enumerate([slow, well, slow, well]):
        assert not estimate.see(flows, 2 * STEADY_SECONDS * now)
    assert learned(slow, seconds=STEADY_SECONDS / 2).network.rates[0, 1] != 3


def test_recovered_path_gets_its_rate_back_and_is_not_suspected():
    estimate = learned([EstimatedFlow(0, 1, 3.0, 8.0, True)])
    now = 2 * STEADY_SECONDS
    assert estimate.suspect(now) is None
    assert estimate.suspect(now + PROBE_SECONDS) == PATH_0_1
    assert estimate.suspect(now + PROBE_SECONDS) is None, "it is being probed"
    assert not estimate.probed(PATH_0_1, RECOVERED * 3 * 0.99)
    assert estimate.probed(PATH_0_1, 6.0)
    assert estimate.network.rates[0, 1] == 6
    assert estimate.suspect(now + 2 * PROBE_SECONDS) == PATH_0_1
    assert estimate.probed(PATH_0_1, 9.0)
    assert estimate.network.rates[0, 1] == figure_2().rates[0, 1]
    assert estimate.suspect(now + 9 * PROBE_SECONDS) is None


def test_broken_path_gets_rate_0_unless_a_host_has_no_other_path():
    estimate = NetworkEstimate(figure_2())
    assert estimate.broken(0, 1, 0.0)
    assert estimate.network.rates[0, 1] == 0
    assert not estimate.broken(0, 1, 1.0), "nothing new"
    assert not estimate.broken(0, 2, 1.0), "no other path is left"
    assert estimate.probed(PATH_0_1, 10.0)


@given(networks(min_size=3, max_size=6), st.data())
def test_estimate_finds_halved_path_and_allows_optimal_plan(network, data):
    """Observe the flows of the optimum on the changed network."""
    plan = exact(network)
    used = list(zip(*np.nonzero(loads(network, plan)[0]), strict=True))
    sender, receiver = map(int, data.draw(st.sampled_from(used)))
    rates = network.rates.copy()
    planned = loads(network, plan)[0]
    rates[sender, receiver] = planned[sender, receiver] / 2
    truth = make(rates.tolist(), network.out.tolist(), network.into.tolist())
    carried = loads(truth, kept_within(truth, plan))[0]
    flows = [
        EstimatedFlow(int(i), int(j), float(carried[i, j]), float(planned[i, j]), (i, j) == (sender, receiver))
        for i, j in used
    ]
    estimate = learned(flows, network)
    assert estimate.network.rates[sender, receiver] == pytest.approx(rates[sender, receiver])
    assert exact(estimate.network).rate == pytest.approx(exact(truth).rate, rel=1e-6)

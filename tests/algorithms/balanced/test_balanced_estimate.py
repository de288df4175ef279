"""What a multicast learns of its network on its way: against a network of which we know what became of it."""

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
from tests.support.balanced import figure_2, make, networks

PATH_0_1 = NetworkPlace(NetworkPart.PATH, 0, 1)


def learned(flows, network=None, seconds=2 * STEADY_SECONDS):
    """Return the estimate of the network after an observation of these flows."""
    estimate = NetworkEstimate(network or figure_2())
    estimate.see(flows, 0.0)
    estimate.see(flows, seconds)
    return estimate


def test_a_flow_that_is_held_back_alone_tells_of_its_path():
    estimate = learned([EstimatedFlow(0, 1, 3.0, 8.0, True), EstimatedFlow(0, 2, 5.0, 5.0, False)])
    assert estimate.network.rates[0, 1] == 3
    assert estimate.network.rates[0, 2] == figure_2().rates[0, 2]
    assert np.array_equal(estimate.network.out, figure_2().out)


def test_flows_that_are_all_held_back_tell_of_the_access_link_that_they_share():
    estimate = learned([EstimatedFlow(0, 1, 3.0, 5.0, True), EstimatedFlow(0, 2, 1.0, 5.0, True)])
    assert estimate.network.out[0] == 4
    assert np.array_equal(estimate.network.rates, figure_2().rates)
    estimate = learned([EstimatedFlow(0, 2, 3.0, 5.0, True), EstimatedFlow(1, 2, 1.0, 4.0, True)])
    assert estimate.network.into[2] == 4
    assert np.array_equal(estimate.network.rates, figure_2().rates)


@pytest.mark.parametrize(
    "flow",
    [
        EstimatedFlow(0, 1, 3.0, 8.0, False),  # Nothing more came to be sent.
        EstimatedFlow(0, 1, DRIFT * 8.0, 8.0, True),  # That is what headers and chance take.
    ],
)
def test_a_flow_that_is_starved_or_nearly_at_its_pace_tells_nothing(flow):
    assert np.array_equal(learned([flow]).network.rates, figure_2().rates)


def test_what_lasts_for_a_moment_is_no_drift():
    estimate = NetworkEstimate(figure_2())
    slow, well = [EstimatedFlow(0, 1, 3.0, 8.0, True)], [EstimatedFlow(0, 1, 8.0, 8.0, False)]
    for now, flows in enumerate([slow, well, slow, well]):
        assert not estimate.see(flows, 2 * STEADY_SECONDS * now)
    assert learned(slow, seconds=STEADY_SECONDS / 2).network.rates[0, 1] != 3


def test_what_is_found_again_is_as_it_was_and_not_suspected_any_more():
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


def test_a_path_that_is_broken_carries_nothing_unless_somebody_is_reached_by_it_alone():
    estimate = NetworkEstimate(figure_2())
    assert estimate.broken(0, 1, 0.0)
    assert estimate.network.rates[0, 1] == 0
    assert not estimate.broken(0, 1, 1.0), "nothing new"
    assert not estimate.broken(0, 2, 1.0), "there is no other way left"
    assert estimate.probed(PATH_0_1, 10.0)


@given(networks(least=3, most=6), st.data())
def test_a_path_that_halves_is_found_and_no_better_plan_is_missed(network, data):
    """The flows of the optimum on what has become of the network."""
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

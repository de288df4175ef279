"""Limiters before receivers: the power that arrives for every error of the monitor, and the trees that they allow."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from algorithms.leaf_assignment import Ends, FittedTree, Refusal, deal_tree, fit_tree
from algorithms.power_budget import (
    MONITOR_ERROR_DB,
    ElementLoss,
    InvalidOpticsError,
    Passive,
    Piece,
    PowerLevel,
    PowerLimiter,
    Transceiver,
    certify,
    exactly,
)
from algorithms.splitter_tree import shallowest
from tests.algorithms.test_cascade import fittings
from tests.support.controller.core_power import matched, tiny_trees

PASS = Passive("switch:ocs1", exactly(1.0), 20.0)
ATTENUATOR = "attenuator:ocs1/2"
tenths = st.integers(-200, 200).map(lambda n: n / 10)


def port(name="r1", launch=2.0, overload=-3.0, sensitivity=-20.0, **fibers):
    return Transceiver(name, PowerLevel(launch - 1, launch, launch + 1), sensitivity, overload, **fibers)


def limited(max_attenuation=20.0, **values):
    return port("r2", from_switch=ElementLoss(0.2, 0.3, 0.7), **values).limited(ATTENUATOR, max_attenuation)


@given(tenths, st.integers(0, 100), st.integers(0, 100), st.floats(-1.0, 1.0), st.integers(10, 250))
def test_power_behind_a_limiter_is_in_range_for_every_error_of_its_monitor(worst, width, place, error, tenths_of_range):
    limiter = PowerLimiter("attenuator", -4.0, tenths_of_range / 10)
    best = worst + width / 10
    assume(best <= limiter.max_input)
    power = worst + (best - worst) * place / 100
    attenuation = min(max(power + error * MONITOR_ERROR_DB - limiter.level, 0.0), limiter.max_attenuation)
    behind = limiter.after(PowerLevel(worst, power, best))
    assert behind.worst - 1e-9 <= power - attenuation <= behind.best + 1e-9
    assert behind.best <= limiter.level + MONITOR_ERROR_DB


def test_receiver_with_too_much_power_is_limited_to_its_overload():
    bare, found = (certify(port(), [PASS], receiver) for receiver in (port("r2"), limited()))
    assert not bare.holds and bare.overload_margin == pytest.approx(-5.0)
    assert found.holds and found.overload_margin == pytest.approx(0.0)
    assert found.received.best == pytest.approx(-3.0)
    assert found.received.worst == pytest.approx(-3.0 - 2 * MONITOR_ERROR_DB - 0.5)
    assert found.binding == ATTENUATOR
    assert found.sentence == "r2 has 0.0 dB of margin; attenuator:ocs1/2 binds"


def test_power_below_the_level_passes_a_limiter_unchanged():
    weak = Piece("splitter:s1", 4, exactly(9.0))
    path = [PASS, *weak.elements, PASS]
    assert certify(port(), path, limited()) == certify(port(), path, port("r2", from_switch=ElementLoss(0.2, 0.3, 0.7)))


def test_power_beyond_the_range_of_a_limiter_is_refused():
    receiver = limited(max_attenuation=4.0)
    certificate = certify(port(), [PASS], receiver)
    assert certificate.overload_margin == pytest.approx(-3.0 + 0.2 - MONITOR_ERROR_DB + 4.0 - 2.0)
    assert certificate.binding == ATTENUATOR and "too much power" in certificate.sentence
    refusal = fit_tree(Ends(port(), (receiver,)), [], PASS)
    assert isinstance(refusal, Refusal) and refusal.binding == certificate


@pytest.mark.parametrize(("sensitivity", "is_limited"), [(-5.5, True), (-5.4, False)])
def test_receiver_with_a_range_narrower_than_both_errors_has_no_limiter(sensitivity, is_limited):
    receiver = limited(sensitivity=sensitivity)
    assert (receiver.limiter is not None) == is_limited
    assert certify(port(), [PASS], receiver).holds == is_limited
    if not is_limited:
        assert receiver == port("r2", sensitivity=sensitivity, from_switch=ElementLoss(0.2, 0.3, 0.7))


@pytest.mark.parametrize("wrong", [0.9, -1.0, math.inf, math.nan])
def test_range_below_the_error_of_the_monitor_is_refused(wrong):
    with pytest.raises(InvalidOpticsError, match="maximum attenuation"):
        limited(max_attenuation=wrong)


def test_switch_before_a_limiter_is_not_overdriven():
    """A limiter tolerates more power than the switch before it may."""
    fragile, receiver = Passive("switch:ocs1", exactly(1.0), 2.0), limited()
    assert receiver.needed.fits(fragile.after(port().entering))
    splitter = Piece("splitter:s1", 2, exactly(4.0))
    for ends, first in (
        (Ends(port(), (receiver,)), shallowest(1, [])),
        (Ends(port(), (receiver,), loop_leaf=True), None),
        (Ends(port(), (receiver,)), shallowest(1, [2])),
    ):
        assert deal_tree(ends, [splitter], fragile, first) is None
        assert isinstance(fit_tree(ends, [splitter], fragile, first), Refusal)


class Receiving:
    """The power range of a receiver by its certificate alone."""

    def __init__(self, receiver: Transceiver) -> None:
        self._receiver = receiver

    def fits(self, light: PowerLevel) -> bool:
        """Return True if the certificate for this power at the switch output holds."""
        return certify(Transceiver("", light, -100.0, 100.0), [], self._receiver).holds


attenuators = st.tuples(st.none() | st.integers(5, 25), st.integers(2, 18))
"""The maximum attenuation before a receiver in dB, if it has an attenuator, and the width of its power range in dB."""


def behind(attenuator: tuple[int | None, int], receiver: Transceiver) -> tuple[Transceiver, Transceiver]:
    """Return a receiver with this power range, without and with its attenuator."""
    attenuation, width = attenuator
    bare = replace(receiver, overload=receiver.sensitivity + width)
    return bare, bare if attenuation is None else bare.limited(f"attenuator:{receiver.name}", float(attenuation))


@given(attenuators, st.integers(0, 40), st.integers(0, 30), st.sampled_from([-0.1, 0.0, 0.1]), st.booleans())
def test_certificate_and_power_range_agree(attenuator, width, fiber, beyond, at_sensitivity):
    _, receiver = behind(attenuator, port(from_switch=ElementLoss(fiber / 20, fiber / 10, fiber / 10)))
    bounds, width = receiver.needed, width / 10
    worst = bounds.min_power + beyond if at_sensitivity else bounds.max_power + beyond - width
    light = PowerLevel(worst, worst, worst + width)
    assert bounds.fits(light) == Receiving(receiver).fits(light)


@settings(max_examples=60)
@given(fittings(), st.lists(attenuators, min_size=5, max_size=5), st.booleans())
def test_tree_with_limiters_is_refused_only_if_no_arrangement_holds(fitting, drawn, tried_first):
    supply, pieces, ends, switch = fitting
    both = [behind(attenuator, receiver) for attenuator, receiver in zip(drawn, ends.receivers, strict=False)]
    bare, receivers = zip(*both, strict=True)
    usable = [Receiving(receiver) for receiver in receivers]
    prices = [
        sum(kind.price * n for kind, n in zip(supply, counts, strict=True))
        for counts, slots in tiny_trees(ends.sender.entering, switch, supply)
        if matched([switch.after(slot) for slot in slots if slot.best <= switch.max_input], usable)
    ]
    first = shallowest(1, [piece.fan_out for piece in pieces]) if tried_first else None
    answer = fit_tree(Ends(ends.sender, receivers), pieces, switch, first)
    without = fit_tree(Ends(ends.sender, bare), pieces, switch, first)
    if not prices:
        assert isinstance(answer, Refusal) and isinstance(without, Refusal)
        assert answer.binding is None or not answer.binding.holds
        return
    assert isinstance(answer, FittedTree)
    for certificate, receiver in zip(answer.certificates, receivers, strict=True):
        assert certificate.margin >= -1e-5 and certificate.received.best <= receiver.overload + 1e-5
    assert tried_first or answer.price == min(prices)
    assert tried_first or isinstance(without, Refusal) or without.price >= answer.price

"""Light whose sender's side has failed: when it is tried again, and with what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_transport.session.light_retry import LightRetry
from blast_transport.transports.choices import Chain, OpticalChoice, OpticalPause, TransportChoice, Unicast

LIGHT = OpticalChoice("239.1.1.1", 5000, 1e8)


def test_it_is_tried_later_each_time_and_then_not_any_more() -> None:
    again, now, waits = LightRetry(), 100.0, list[float]()
    while again.failed(LIGHT, now):
        wait = again.wait(now)
        assert wait is not None
        assert again.take(now + 0.99 * wait) is None
        now += wait
        waits.append(wait)
        assert again.take(now) == LIGHT
        assert (again.take(now), again.wait(now)) == (None, None)
    assert waits == sorted(waits)
    assert len(waits) == 3


def test_light_that_has_lasted_is_as_new_when_it_fails() -> None:
    again, now = LightRetry(), 0.0
    for _ in range(20):
        assert again.failed(LIGHT, now)
        now += again.wait(now) or 0.0
        assert again.take(now) == LIGHT
        again.began(now)
        now += 10.0


def test_light_that_never_began_is_not_steady_however_long_it_is_between_two_tries() -> None:
    """Grants that come and go, each paused before its light was tried for the last time."""
    again, now, tries = LightRetry(), 0.0, 0
    while again.failed(LIGHT, now):
        assert not again.keeps(Chain())
        now, tries = now + 60.0, tries + 1
    assert tries == 3


def test_the_latest_that_is_told_of_the_light_counts() -> None:
    again = LightRetry()
    again.failed(LIGHT, 0.0)
    longer = replace(LIGHT, rate=2e8)
    assert again.keeps(longer)
    assert again.take(60.0) == longer


def test_in_the_dark_nothing_is_tried() -> None:
    again = LightRetry()
    again.failed(LIGHT, 0.0)
    assert again.keeps(OpticalPause())
    assert (again.take(60.0), again.wait(60.0)) == (None, None)
    assert again.keeps(LIGHT)
    assert again.take(60.0) == LIGHT


def test_light_whose_lease_is_over_is_not_tried() -> None:
    again = LightRetry()
    again.failed(replace(LIGHT, until=0.1), 0.0)
    assert again.take(60.0) is None


@pytest.mark.parametrize("order", [Chain(("a",)), Unicast()])
def test_another_way_ends_the_waiting(order: TransportChoice) -> None:
    again = LightRetry()
    again.failed(LIGHT, 0.0)
    assert not again.keeps(order)
    assert again.take(60.0) is None
    assert not again.keeps(LIGHT), "light that is granted later is a way like any other"

"""Retries of optical transport after failures of the sender's side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_transport.session.light_retry import LightRetry
from blast_transport.transports.choices import Chain, OpticalChoice, OpticalPause, TransportChoice, Unicast

LIGHT = OpticalChoice("239.1.1.1", 5000, 1e8)


def test_retries_back_off_and_end_after_three() -> None:
    retry, now, waits = LightRetry(), 100.0, list[float]()
    while retry.failed(LIGHT, now):
        wait = retry.wait(now)
        assert wait is not None
        assert retry.take(now + 0.99 * wait) is None
        now += wait
        waits.append(wait)
        assert retry.take(now) == LIGHT
        assert (retry.take(now), retry.wait(now)) == (None, None)
    assert waits == sorted(waits)
    assert len(waits) == 3


def test_steady_optical_phase_resets_backoff() -> None:
    retry, now = LightRetry(), 0.0
    for _ in range(20):
        assert retry.failed(LIGHT, now)
        now += retry.wait(now) or 0.0
        assert retry.take(now) == LIGHT
        retry.began(now)
        now += 10.0


def test_pause_between_retries_does_not_reset_backoff() -> None:
    """Each grant is paused before the last retry of its optical transport."""
    retry, now, tries = LightRetry(), 0.0, 0
    while retry.failed(LIGHT, now):
        assert not retry.keeps(Chain())
        now, tries = now + 60.0, tries + 1
    assert tries == 3


def test_retry_uses_latest_optical_choice() -> None:
    retry = LightRetry()
    retry.failed(LIGHT, 0.0)
    longer = replace(LIGHT, rate=2e8)
    assert retry.keeps(longer)
    assert retry.take(60.0) == longer


def test_no_retry_during_optical_pause() -> None:
    retry = LightRetry()
    retry.failed(LIGHT, 0.0)
    assert retry.keeps(OpticalPause())
    assert (retry.take(60.0), retry.wait(60.0)) == (None, None)
    assert retry.keeps(LIGHT)
    assert retry.take(60.0) == LIGHT


def test_no_retry_after_lease_expires() -> None:
    retry = LightRetry()
    retry.failed(replace(LIGHT, until=0.1), 0.0)
    assert retry.take(60.0) is None


@pytest.mark.parametrize("order", [Chain(("a",)), Unicast()])
def test_other_transport_cancels_retry(order: TransportChoice) -> None:
    retry = LightRetry()
    retry.failed(LIGHT, 0.0)
    assert not retry.keeps(order)
    assert retry.take(60.0) is None
    assert not retry.keeps(LIGHT), "a later grant is no retry"

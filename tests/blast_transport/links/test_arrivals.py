"""Rates computed from arrival times, for wires, token buckets and several streams of known rates."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from blast_transport.measuring.arrivals import Arrivals

RATES = st.floats(1e6, 1e11)
LUMPS = st.lists(st.integers(12_000, 16_384), min_size=24, max_size=200)


def arrivals(lumps: list[int], rate: float, *, at_the_end: bool) -> Arrivals:
    """Return arrivals of lumps at a rate, at the end of their time (wire) or at its start (token bucket)."""
    found, now = Arrivals(), 5.0
    for lump in lumps:
        seconds = 8 * lump / rate
        found.add(0, lump, now + (seconds if at_the_end else 0))
        now += seconds
    return found


@given(LUMPS, RATES, st.booleans())
def test_rate_is_exact_for_wires_and_token_buckets(lumps: list[int], rate: float, at_the_end: bool) -> None:
    found = arrivals(lumps, rate, at_the_end=at_the_end)
    assert found.bytes == sum(lumps)
    # The rate counts the second half; one lump may lie on either side of its beginning.
    blur = 2 * max(lumps) / (sum(lumps) / 2)
    if found.seconds > 0.02:
        assert found.rate() == pytest.approx(rate, rel=blur)


@given(st.floats(0.05, 0.4), RATES)
def test_rate_ignores_slow_start(share: float, rate: float) -> None:
    found, now = Arrivals(), 0.0
    step, slow = 0.005, int(share * 200)
    for number in range(200):
        now += step
        found.add(0, int(rate / 8 * step * (0.1 if number < slow else 1)), now)
    assert found.rate() == pytest.approx(rate, rel=1e-3)


@given(st.integers(5, 90), st.floats(0.1, 100.0))
@example(85, 0.125)
def test_rate_ignores_pause_of_any_length(place: int, pause: float) -> None:
    found, now = Arrivals(), 0.0
    for number in range(100):
        now += 0.005 + (pause if number == place else 0)
        found.add(0, 10_000, now)
    assert found.rate() == pytest.approx(8 * 10_000 / 0.005, rel=0.01)


def test_rate_counts_time_in_which_all_streams_run() -> None:
    found = Arrivals()
    for number in range(1000):
        now = number / 1000
        if number >= 200:
            found.add(1, 1000, now)
        if number < 800:
            found.add(0, 3000, now)
    assert found.rate() == pytest.approx(8 * 4000 * 1000, rel=1e-2), "alone they would be 1000 and 3000"


def test_rate_of_consecutive_streams_uses_whole_time() -> None:
    found = Arrivals()
    for number in range(1000):
        found.add(int(number >= 500), 1000, number / 1000)
    assert found.rate() == pytest.approx(8 * 1000 * 1000, rel=0.02)


def test_burst_after_lost_packet_does_not_distort_rate() -> None:
    found = Arrivals()
    for number in range(1000):
        now = number / 1000
        found.add(0, 1000, now)
        # The other stream is as fast, except while the kernel holds data back behind a lost packet.
        if not 300 <= number < 700:
            found.add(1, 401_000 if number == 700 else 1000, now)
    assert found.rate() == pytest.approx(8 * 2000 * 1000, rel=0.02)


def test_no_rate_without_elapsed_time() -> None:
    found = Arrivals()
    assert (found.rate(), found.seconds, found.bytes) == (0.0, 0.0, 0)
    found.add(0, 10, 3.0)
    found.add(1, 10, 3.0)
    assert (found.rate(), found.seconds, found.bytes) == (0.0, 0.0, 20)


def test_many_small_pieces_use_bounded_memory() -> None:
    found = Arrivals()
    for number in range(50_000):
        found.add(0, 1, number * 1e-6)
    assert len(found._streams[0].times) <= 2 + 0.2 / 1e-4
    assert found.rate() == pytest.approx(8e6, rel=0.01)

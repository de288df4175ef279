"""The rate of what came when: of wires, token buckets and several streams whose rates are known."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from blast_transport.measuring.arrivals import Arrivals

RATES = st.floats(1e6, 1e11)
LUMPS = st.lists(st.integers(12_000, 16_384), min_size=24, max_size=200)


def arrivals(lumps: list[int], rate: float, *, at_the_end: bool) -> Arrivals:
    """Lumps that take their time at a rate, and arrive at its end (a wire) or at its beginning (a token bucket)."""
    found, now = Arrivals(), 5.0
    for lump in lumps:
        seconds = 8 * lump / rate
        found.add(0, lump, now + (seconds if at_the_end else 0))
        now += seconds
    return found


@given(LUMPS, RATES, st.booleans())
def test_lumps_are_as_fast_as_they_are_wherever_their_time_lies(
    lumps: list[int], rate: float, at_the_end: bool
) -> None:
    found = arrivals(lumps, rate, at_the_end=at_the_end)
    assert found.bytes == sum(lumps)
    # One lump may lie on either side of the beginning of what counts, which is half of all.
    blur = 2 * max(lumps) / (sum(lumps) / 2)
    if found.seconds > 0.02:
        assert found.rate() == pytest.approx(rate, rel=blur)


@given(st.floats(0.05, 0.4), RATES)
def test_a_slow_beginning_does_not_count(share: float, rate: float) -> None:
    found, now = Arrivals(), 0.0
    step, slow = 0.005, int(share * 200)
    for number in range(200):
        now += step
        found.add(0, int(rate / 8 * step * (0.1 if number < slow else 1)), now)
    assert found.rate() == pytest.approx(rate, rel=1e-3)


@given(st.integers(5, 90), st.floats(0.1, 100.0))
@example(85, 0.125)
def test_a_pause_does_not_count_however_long(place: int, pause: float) -> None:
    found, now = Arrivals(), 0.0
    for number in range(100):
        now += 0.005 + (pause if number == place else 0)
        found.add(0, 10_000, now)
    assert found.rate() == pytest.approx(8 * 10_000 / 0.005, rel=0.01)


def test_several_streams_count_while_all_of_them_run() -> None:
    found = Arrivals()
    for number in range(1000):
        now = number / 1000
        if number >= 200:
            found.add(1, 1000, now)
        if number < 800:
            found.add(0, 3000, now)
    assert found.rate() == pytest.approx(8 * 4000 * 1000, rel=1e-2), "alone they would be 1000 and 3000"


def test_streams_that_hardly_overlap_are_measured_over_all_of_their_time() -> None:
    found = Arrivals()
    for number in range(1000):
        found.add(int(number >= 500), 1000, number / 1000)
    assert found.rate() == pytest.approx(8 * 1000 * 1000, rel=0.02)


def test_what_waited_for_one_lost_packet_did_not_come_in_one_moment() -> None:
    found = Arrivals()
    for number in range(1000):
        now = number / 1000
        found.add(0, 1000, now)
        # The other one as fast, but for what the kernel keeps back.
        if not 300 <= number < 700:
            found.add(1, 401_000 if number == 700 else 1000, now)
    assert found.rate() == pytest.approx(8 * 2000 * 1000, rel=0.02)


def test_nothing_and_one_moment_have_no_rate() -> None:
    found = Arrivals()
    assert (found.rate(), found.seconds, found.bytes) == (0.0, 0.0, 0)
    found.add(0, 10, 3.0)
    found.add(1, 10, 3.0)
    assert (found.rate(), found.seconds, found.bytes) == (0.0, 0.0, 20)


def test_however_small_the_pieces_are_little_is_kept() -> None:
    found = Arrivals()
    for number in range(50_000):
        found.add(0, 1, number * 1e-6)
    assert len(found._streams[0].times) <= 2 + 0.2 / 1e-4
    assert found.rate() == pytest.approx(8e6, rel=0.01)

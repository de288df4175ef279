from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.base.errors import WrongInputError
from blast_transport.transports.optical.pacing import SHARE, Pacer
from blast_transport.transports.optical.sender import SHORTEST_WAIT

FULL = 9014
RATE = 100e6


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_there_is_no_unpaced_sender(rate: float) -> None:
    with pytest.raises(WrongInputError):
        Pacer(rate, FULL, 0.0)


def burst_at(pacer: Pacer, now: float) -> int:
    count = 0
    while pacer.delay(now) == 0:
        pacer.sent(FULL, now)
        count += 1
    return count


def test_a_sender_that_wakes_in_time_reaches_its_share() -> None:
    pacer, now, count = Pacer(RATE, FULL, 0.0), 0.0, 0
    while now < 1.0:
        now += pacer.delay(now)
        pacer.sent(FULL, now)
        count += 1
    assert count * FULL * 8 / now == pytest.approx(SHARE * RATE, rel=0.002)


@pytest.mark.parametrize("rate", [100e6, 1e9, 10e9, 40e9, 100e9])
def test_who_waits_a_little_longer_than_he_must_reaches_it_as_well(rate: float) -> None:
    """In bursts that are as long as what the shortest wait lets leave, and a datagram."""
    pacer, now, bits = Pacer(rate, FULL, 0.0), 0.0, 0
    while now < 0.5:
        now += max(pacer.delay(now), SHORTEST_WAIT)
        burst = burst_at(pacer, now) * FULL * 8
        assert burst <= SHORTEST_WAIT * rate + 2 * FULL * 8
        bits += burst
    assert bits / now == pytest.approx(SHARE * rate, rel=0.002)


def test_bursts_grow_with_the_rate_up_to_one_millisecond() -> None:
    pacer = Pacer(10e9, FULL, 0.0)
    bits = burst_at(pacer, 1.0) * FULL * 8
    assert 0.9e-3 <= bits / 10e9 <= 1.1e-3


@pytest.mark.parametrize(("queue", "seconds"), [(0, 0.001), (100_000, 0.001), (500_000, 0.005), (4 << 20, 0.01)])
def test_a_queue_that_holds_twice_as_much_allows_longer_bursts(queue: int, seconds: float) -> None:
    pacer = Pacer(400e6, 1514, 0.0, queue)
    count = 0
    while pacer.delay(1.0) == 0:
        pacer.sent(1514, 1.0)
        count += 1
    assert count * 1514 * 8 / 400e6 == pytest.approx(seconds, rel=0.05)


def test_slow_rate_catches_up_one_datagram() -> None:
    pacer = Pacer(1e6, FULL, 0.0)
    assert burst_at(pacer, 0.0) == 1
    assert burst_at(pacer, 1.0) == 2


def test_time_lost_to_a_late_wake_up_is_made_up_at_no_more_than_the_rate() -> None:
    pacer, now, bits = Pacer(RATE, FULL, 0.0), 0.010, 0
    began = now
    while now < began + 0.2:
        bits += burst_at(pacer, now) * FULL * 8
        now += max(pacer.delay(now), 1e-6)
    assert bits <= RATE * (now - began) + 2 * FULL * 8
    assert bits > SHARE * RATE * (now - began)


def test_a_long_pause_is_forgotten() -> None:
    pacer, now, bits = Pacer(RATE, FULL, 0.0), 10.0, 0
    while now < 15.0:
        bits += burst_at(pacer, now) * FULL * 8
        now += max(pacer.delay(now), 1e-6)
    assert bits == pytest.approx(SHARE * RATE * 5.0, rel=0.012)


@given(
    st.floats(1e4, 1e11),
    st.integers(0, 1 << 22),
    st.lists(st.tuples(st.floats(0, 0.2), st.integers(0, 100_000)), max_size=20),
)
def test_what_may_leave_now_is_what_may_leave_one_by_one(
    rate: float, queue: int, past: list[tuple[float, int]]
) -> None:
    pacer, now = Pacer(rate, FULL, 0.0, queue), 0.0
    for seconds, size in past:
        now += seconds
        pacer.sent(size, now)
    allowed = pacer.allowance(now)
    assert (allowed >= 0) == (pacer.delay(now) == 0)
    # A byte more or less is rounding.
    if allowed >= 1:
        pacer.sent(allowed - 1, now)
        assert pacer.delay(now) == 0
        pacer.sent(3, now)
        assert pacer.delay(now) > 0

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.base.errors import WrongInputError
from blast_transport.datagrams.pacing import SHARE, Pacer
from blast_transport.datagrams.sender import SHORTEST_WAIT

FULL = 9014
RATE = 100e6


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_pacer_rejects_invalid_rate(rate: float) -> None:
    with pytest.raises(WrongInputError):
        Pacer(rate, FULL, 0.0)


def burst_at(pacer: Pacer, now: float) -> int:
    count = 0
    while pacer.delay(now) == 0:
        pacer.sent(FULL, now)
        count += 1
    return count


def test_pacer_reaches_share_of_rate_with_exact_wakeups() -> None:
    pacer, now, count = Pacer(RATE, FULL, 0.0), 0.0, 0
    while now < 1.0:
        now += pacer.delay(now)
        pacer.sent(FULL, now)
        count += 1
    assert count * FULL * 8 / now == pytest.approx(SHARE * RATE, rel=0.002)


@pytest.mark.parametrize("rate", [100e6, 1e9, 10e9, 40e9, 100e9])
def test_pacer_reaches_rate_despite_late_wakeups(rate: float) -> None:
    """Each burst is at most the data of the shortest wait plus two datagrams."""
    pacer, now, bits = Pacer(rate, FULL, 0.0), 0.0, 0
    while now < 0.5:
        now += max(pacer.delay(now), SHORTEST_WAIT)
        burst = burst_at(pacer, now) * FULL * 8
        assert burst <= SHORTEST_WAIT * rate + 2 * FULL * 8
        bits += burst
    assert bits / now == pytest.approx(SHARE * rate, rel=0.002)


def test_bursts_grow_with_rate_up_to_one_millisecond() -> None:
    pacer = Pacer(10e9, FULL, 0.0)
    bits = burst_at(pacer, 1.0) * FULL * 8
    assert 0.9e-3 <= bits / 10e9 <= 1.1e-3


@pytest.mark.parametrize(("queue", "seconds"), [(0, 0.001), (100_000, 0.001), (500_000, 0.005), (4 << 20, 0.01)])
def test_larger_queue_allows_longer_bursts(queue: int, seconds: float) -> None:
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


def test_pacer_catches_up_late_wakeup_at_full_rate() -> None:
    pacer, now, bits = Pacer(RATE, FULL, 0.0), 0.010, 0
    began = now
    while now < began + 0.2:
        bits += burst_at(pacer, now) * FULL * 8
        now += max(pacer.delay(now), 1e-6)
    assert bits <= RATE * (now - began) + 2 * FULL * 8
    assert bits > SHARE * RATE * (now - began)


def test_pacer_does_not_catch_up_long_pause() -> None:
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
def test_allowance_matches_delay(rate: float, queue: int, past: list[tuple[float, int]]) -> None:
    pacer, now = Pacer(rate, FULL, 0.0, queue), 0.0
    for seconds, size in past:
        now += seconds
        pacer.sent(size, now)
    allowed = pacer.allowance(now)
    assert (allowed >= 0) == (pacer.delay(now) == 0)
    # Allow for rounding by one byte.
    if allowed >= 1:
        pacer.sent(allowed - 1, now)
        assert pacer.delay(now) == 0
        pacer.sent(3, now)
        assert pacer.delay(now) > 0

"""Moderation of reads: the time that data may gather before a receiver reads it."""

from __future__ import annotations

import pytest

from blast_transport.base.moderation import Moderation

DUE, MAX_WAIT = 100_000, 0.004


def steady(rate: float, wake_bytes: int, seconds: float) -> tuple[Moderation, list[int]]:
    """Return the moderation, and the number of bytes that each read returned.

    Data arrives at `rate` bytes/s, and wakes its reader when `wake_bytes` have arrived.
    """
    moderation, now, read, found = Moderation(DUE, MAX_WAIT), 0.0, 0, []
    while now < seconds:
        now = max(now, (read + wake_bytes) / rate)
        now += moderation.pause(now)
        count = int(now * rate) - read
        moderation.read(count, now)
        read += count
        found.append(count)
    return moderation, found


@pytest.mark.parametrize("rate", [50e6, 125e6, 250e6])
def test_due_bytes_gather_before_each_read(rate: float) -> None:
    _, found = steady(rate, 10_000, 1.0)
    assert found[-1] == pytest.approx(DUE, rel=0.01)


def test_slow_data_waits_no_longer_than_maximum() -> None:
    rate = 10e6
    _, found = steady(rate, 10_000, 1.0)
    assert found[-1] == pytest.approx(10_000 + rate * MAX_WAIT, rel=0.01)


def test_late_reader_does_not_wait() -> None:
    moderation, _ = steady(100e6, 10_000, 1.0)
    assert moderation.pause(2.0) == 0


def test_very_short_pause_is_skipped() -> None:
    moderation = Moderation(DUE, MAX_WAIT)
    moderation.read(1, 0.0)
    moderation.read(DUE, 0.0001)
    assert moderation.pause(0.0001) == 0


def test_reader_with_unread_data_does_not_wait() -> None:
    moderation, _ = steady(100e6, 10_000, 1.0)
    moderation.read(DUE, 1.0, left=True)
    assert moderation.pause(1.0001) == 0
    moderation.read(DUE, 1.0002)
    assert moderation.pause(1.0003) > 0


def test_immediate_second_read_does_not_affect_rate_estimate() -> None:
    """Such a read returns only the little data that arrived while the previous data was stored."""
    moderation, now = Moderation(DUE, MAX_WAIT), 0.0
    for rounds in range(50):
        for count, seconds in ((2 * DUE, 0.0018), (DUE // 10, 0.0003)):
            now += seconds
            moderation.read(count, now)
            assert rounds == 0 or moderation.pause(now) < 0.0015


def test_empty_read_does_not_affect_rate_estimate() -> None:
    moderation, _ = steady(100e6, 10_000, 1.0)
    before = moderation.pause(1.0003)
    moderation.read(0, 1.0002)
    assert moderation.pause(1.0003) == before > 0


def test_stay_lets_due_bytes_gather() -> None:
    moderation, _ = steady(100e6, 10_000, 1.0)
    stay = moderation.stay(5.0, 40, (3, 4))
    assert (stay.until, stay.segments, stay.max_wait, stay.woken) == (5.0, 40, MAX_WAIT, (3, 4))
    assert stay.gathers == pytest.approx(DUE / 100e6, rel=0.01)
    assert Moderation(DUE, MAX_WAIT).stay(5.0, 40, (3, 4)).gathers == 0, "the rate is not known yet"

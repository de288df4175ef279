"""How long data may gather before it is read."""

from __future__ import annotations

import pytest

from blast_transport.base.moderation import Moderation

DUE, MOST = 100_000, 0.004


def steady(rate: float, wake_bytes: int, seconds: float) -> tuple[Moderation, list[int]]:
    """Return the moderation, and the number of bytes that each read returned.

    Data arrives at `rate` bytes/s, and wakes its reader when `wake_bytes` have arrived.
    """
    moderation, now, read, found = Moderation(DUE, MOST), 0.0, 0, []
    while now < seconds:
        now = max(now, (read + wake_bytes) / rate)
        now += moderation.pause(now)
        count = int(now * rate) - read
        moderation.read(count, now)
        read += count
        found.append(count)
    return moderation, found


@pytest.mark.parametrize("rate", [50e6, 125e6, 250e6])
def test_as_much_gathers_as_is_due(rate: float) -> None:
    _, found = steady(rate, 10_000, 1.0)
    assert found[-1] == pytest.approx(DUE, rel=0.01)


def test_slow_data_waits_no_longer_than_allowed() -> None:
    rate = 10e6
    _, found = steady(rate, 10_000, 1.0)
    assert found[-1] == pytest.approx(10_000 + rate * MOST, rel=0.01)


def test_a_reader_that_comes_late_does_not_wait() -> None:
    moderation, _ = steady(100e6, 10_000, 1.0)
    assert moderation.pause(2.0) == 0


def test_a_pause_too_short_to_be_worth_it_is_left_out() -> None:
    moderation = Moderation(DUE, MOST)
    moderation.read(1, 0.0)
    moderation.read(DUE, 0.0001)
    assert moderation.pause(0.0001) == 0


def test_who_has_left_something_does_not_wait() -> None:
    moderation, _ = steady(100e6, 10_000, 1.0)
    moderation.read(DUE, 1.0, left=True)
    assert moderation.pause(1.0001) == 0
    moderation.read(DUE, 1.0002)
    assert moderation.pause(1.0003) > 0


def test_a_reading_that_follows_at_once_says_nothing_of_the_pace() -> None:
    """It found what came while the one before was stored: little, for the time that this took."""
    moderation, now = Moderation(DUE, MOST), 0.0
    for rounds in range(50):
        for count, seconds in ((2 * DUE, 0.0018), (DUE // 10, 0.0003)):
            now += seconds
            moderation.read(count, now)
            assert rounds == 0 or moderation.pause(now) < 0.0015


def test_a_reading_that_finds_nothing_changes_nothing() -> None:
    moderation, _ = steady(100e6, 10_000, 1.0)
    before = moderation.pause(1.0003)
    moderation.read(0, 1.0002)
    assert moderation.pause(1.0003) == before > 0


def test_who_reads_on_lets_as_much_gather() -> None:
    moderation, _ = steady(100e6, 10_000, 1.0)
    stay = moderation.stay(5.0, 40, (3, 4))
    assert (stay.until, stay.segments, stay.max_wait, stay.woken) == (5.0, 40, MOST, (3, 4))
    assert stay.gathers == pytest.approx(DUE / 100e6, rel=0.01)
    assert Moderation(DUE, MOST).stay(5.0, 40, (3, 4)).gathers == 0, "nobody knows the pace yet"

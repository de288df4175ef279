"""When history is too old to be kept, by a clock that may be set wrong."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.model.age_clock import DOUBT, MAX_LEAP, AgeClock

HOUR, DAY = 3600.0, 86_400.0


def test_clock_that_leaps_a_month_ahead_counts_after_a_day() -> None:
    clock = AgeClock(written=1e9)
    assert clock.now(1e9 + 5, 0.0) == 1e9 + 5
    assert clock.now(1e9 + 31 * DAY, 10.0) == 1e9 + 15
    assert clock.now(1e9 + 31 * DAY + HOUR, HOUR) == 1e9 + 5 + HOUR
    assert clock.now(1e9 + 6 + HOUR, HOUR + 1) == 1e9 + 6 + HOUR, "it was corrected"
    for hour in range(2, 26):
        clock.now(1e9 + 31 * DAY + hour * HOUR, hour * HOUR)
    assert clock.now(1e9 + 32 * DAY + 2 * HOUR, 26 * HOUR) == 1e9 + 32 * DAY + 2 * HOUR, "it was meant"


def test_machine_that_starts_a_month_ahead_is_doubted_and_so_is_a_controller_that_was_off_for_one() -> None:
    for written, at_once in ((1e9, False), (1e9 + 31 * DAY - HOUR, True), (None, True)):
        clock = AgeClock(written)
        assert (clock.now(1e9 + 31 * DAY, 5.0) == 1e9 + 31 * DAY) == at_once


@given(st.lists(st.tuples(st.floats(0, 2 * DAY), st.floats(-60 * DAY, 60 * DAY)), max_size=40))
def test_no_leap_drops_more_than_a_day_until_it_has_stood_for_one(steps: list[tuple[float, float]]) -> None:
    """The reckoned time never runs ahead of the steady clock by more, except to a wall clock that stayed ahead."""
    clock, monotonic, ahead_since = AgeClock(1e9), 0.0, None
    reckoned = clock.now(1e9, monotonic)
    for passed, error in steps:
        monotonic += passed
        wall = 1e9 + monotonic + error
        leaps = wall - (reckoned + passed) > MAX_LEAP
        ahead_since = (monotonic if ahead_since is None else ahead_since) if leaps else None
        found = clock.now(wall, monotonic)
        allowed = leaps and ahead_since is not None and monotonic - ahead_since >= DOUBT
        assert found <= reckoned + passed + MAX_LEAP + 1e-3 or allowed
        if allowed:
            ahead_since = None
        reckoned = found

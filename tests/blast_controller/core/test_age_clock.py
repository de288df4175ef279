"""The age of history by a wall clock that may be set wrong."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.model.age_clock import DOUBT, MAX_LEAP, AgeClock

HOUR, DAY = 3600.0, 86_400.0


def test_clock_jump_of_a_month_counts_after_a_day() -> None:
    clock = AgeClock(written=1e9)
    assert clock.now(1e9 + 5, 0.0) == 1e9 + 5
    assert clock.now(1e9 + 31 * DAY, 10.0) == 1e9 + 15
    assert clock.now(1e9 + 31 * DAY + HOUR, HOUR) == 1e9 + 5 + HOUR
    assert clock.now(1e9 + 6 + HOUR, HOUR + 1) == 1e9 + 6 + HOUR, "the clock was corrected"
    for hour in range(2, 26):
        clock.now(1e9 + 31 * DAY + hour * HOUR, hour * HOUR)
    assert clock.now(1e9 + 32 * DAY + 2 * HOUR, 26 * HOUR) == 1e9 + 32 * DAY + 2 * HOUR, "the jump persisted for a day"


def test_clock_doubts_wall_time_a_month_after_the_last_write() -> None:
    for written, at_once in ((1e9, False), (1e9 + 31 * DAY - HOUR, True), (None, True)):
        clock = AgeClock(written)
        assert (clock.now(1e9 + 31 * DAY, 5.0) == 1e9 + 31 * DAY) == at_once


@given(st.lists(st.tuples(st.floats(0, 2 * DAY), st.floats(-60 * DAY, 60 * DAY)), max_size=40))
def test_age_clock_limits_jumps_until_they_persist(steps: list[tuple[float, float]]) -> None:
    """Check that the computed time exceeds the monotonic clock by at most a day, unless a jump persists."""
    clock, monotonic, ahead_since = AgeClock(1e9), 0.0, None
    computed = clock.now(1e9, monotonic)
    for passed, error in steps:
        monotonic += passed
        wall = 1e9 + monotonic + error
        leaps = wall - (computed + passed) > MAX_LEAP
        ahead_since = (monotonic if ahead_since is None else ahead_since) if leaps else None
        found = clock.now(wall, monotonic)
        allowed = leaps and ahead_since is not None and monotonic - ahead_since >= DOUBT
        assert found <= computed + passed + MAX_LEAP + 1e-3 or allowed
        if allowed:
            ahead_since = None
        computed = found

"""When a successor is too slow: an allowed least, and half of what comes, for all of a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blast_transport.transports.pipeline.protocol.pace import (
    MAX_BACKLOG,
    MIN_LINK_SHARE,
    MIN_SHARE,
    PaceSample,
    PaceVerdict,
    SuccessorPace,
)

SECONDS = 1.5
START = PaceSample(0.0, 0, 0, 0)


def seen(
    pace: SuccessorPace, come: float, taken: float, until: float = 6.0, *, held_up: bool = False, starved: bool = False
) -> str | None:
    """Return the reason of the first verdict on a successor, or None if there is none.

    `come` bytes/s arrive and are given to the successor, which accepts `taken` bytes/s.
    """
    found = verdict(pace, come, taken, until, held_up=held_up, starved=starved)
    return None if found is None else found.reason


def verdict(
    pace: SuccessorPace, come: float, taken: float, until: float = 6.0, *, held_up: bool = False, starved: bool = True
) -> PaceVerdict | None:
    pace.restart(START)
    for tick in range(1, int(until * 10) + 1):
        now = tick / 10
        sight = PaceSample(now, int(come * now), int(0.99 * come * now), int(taken * now))
        if (found := pace.see(sight, held_up, starved)) is not None:
            return found
    return None


@given(st.integers(1000, 10**9), st.floats(0.01, 0.95))
def test_by_comparison_half_of_what_comes_is_the_least(come: int, share: float) -> None:
    found = seen(SuccessorPace(0.0, SECONDS), come, come * share)
    if share < MIN_SHARE * 0.98:
        assert found is not None
        assert found.startswith("excluded: ")
    if share > MIN_SHARE * 1.02:
        assert found is None


def test_whoever_waits_for_others_or_is_given_nothing_is_not_slow() -> None:
    assert seen(SuccessorPace(0.0, SECONDS), 1000, 10, held_up=True) is None
    assert seen(SuccessorPace(900.0, SECONDS), 100, 100) is None, "no more came"


def test_whoever_waits_for_data_is_not_compared_but_may_be_too_slow() -> None:
    pace = SuccessorPace(0.0, SECONDS, judges_links=False)
    assert seen(pace, 1000, 10, starved=True) is None
    assert not pace.lags(6000, 60), "it is waited for"
    assert seen(pace, 1000, 10) == "excluded: 10 bytes/s where 1000 came", "it has data now"
    assert (
        seen(SuccessorPace(20.0, SECONDS, judges_links=False), 1000, 10, starved=True)
        == "excluded: 10 bytes/s where 20 are the least"
    )


@given(st.integers(1000, 10**7), st.floats(0.01, 0.95))
def test_the_second_slow_link_in_turn_is_our_own(come: int, share: float) -> None:
    pace = SuccessorPace(0.0, SECONDS)
    verdicts = [verdict(pace, come, come * share) for _ in range(3)]
    if share < MIN_LINK_SHARE * 0.98:
        assert [found and found.ours for found in verdicts] == [False, True, None]
    if share > 0.5:
        assert verdicts == [None] * 3


def test_a_link_that_is_fast_enough_for_what_a_node_runs_ahead_is_not_slow() -> None:
    rate = MAX_BACKLOG / 8 / SECONDS
    assert verdict(SuccessorPace(0.0, SECONDS), 1e9, rate * 1.05) is None
    assert verdict(SuccessorPace(0.0, SECONDS), 1e9, rate * 0.95) is not None


def test_a_wait_for_data_begins_the_comparison_anew() -> None:
    pace = SuccessorPace(0.0, SECONDS)
    pace.restart(START)
    verdicts = [pace.see(PaceSample(t / 10, 1000 * t, 1000 * t, t), False, starved=t == 10) for t in range(1, 30)]
    assert [t for t, verdict in enumerate(verdicts, 1) if verdict] == [25]


def test_where_all_lies_there_from_the_start_only_the_least_rate_counts() -> None:
    """A source of a file has nothing to compare with."""
    for slowest, found in ((0.0, None), (5.0, None), (50.0, "excluded: 10 bytes/s where 50 are the least")):
        pace = SuccessorPace(slowest, SECONDS)
        pace.restart(PaceSample(0.0, 10_000, 0, 0))
        verdicts = [pace.see(PaceSample(t / 10, 10_000, 100 * t, t), held_up=False) for t in range(1, 40)]
        assert {one.reason for one in verdicts if one} == ({found} if found else set())


def test_a_second_one_that_is_no_faster_shows_that_the_way_from_us_is_slow() -> None:
    pace = SuccessorPace(0.0, SECONDS)
    assert seen(pace, 1000, 100) == "excluded: 100 bytes/s where 1000 came"
    assert seen(pace, 1000, 100) is None
    assert not pace.lags(1000, 10), "it is waited for from now on"


def test_the_least_rate_goes_on_counting() -> None:
    pace = SuccessorPace(200.0, SECONDS)
    assert all(seen(pace, 1000, 100) == "excluded: 100 bytes/s where 200 are the least" for _ in range(3))


def test_nobody_waits_for_one_that_lags() -> None:
    pace = SuccessorPace(0.0, SECONDS)
    pace.restart(START)
    assert pace.lags(1000, 499)
    assert not pace.lags(1000, 500)

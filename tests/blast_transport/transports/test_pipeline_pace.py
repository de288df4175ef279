"""Verdicts on slow successors: below a minimum rate, or below half of the incoming rate, for some time."""

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
def test_successor_below_half_of_incoming_rate_is_excluded(come: int, share: float) -> None:
    found = seen(SuccessorPace(0.0, SECONDS), come, come * share)
    if share < MIN_SHARE * 0.98:
        assert found is not None
        assert found.startswith("excluded: ")
    if share > MIN_SHARE * 1.02:
        assert found is None


def test_successor_that_is_held_up_or_gets_no_data_is_not_slow() -> None:
    assert seen(SuccessorPace(0.0, SECONDS), 1000, 10, held_up=True) is None
    assert seen(SuccessorPace(900.0, SECONDS), 100, 100) is None, "no more came"


def test_starved_successor_is_judged_only_by_minimum_rate() -> None:
    pace = SuccessorPace(0.0, SECONDS, judges_links=False)
    assert seen(pace, 1000, 10, starved=True) is None
    assert not pace.lags(6000, 60), "the node waits for it"
    assert seen(pace, 1000, 10) == "excluded: 10 bytes/s where 1000 came", "it has data now"
    assert (
        seen(SuccessorPace(20.0, SECONDS, judges_links=False), 1000, 10, starved=True)
        == "excluded: 10 bytes/s where 20 are the least"
    )


@given(st.integers(1000, 10**7), st.floats(0.01, 0.95))
def test_second_consecutive_slow_link_is_attributed_to_own_link(come: int, share: float) -> None:
    pace = SuccessorPace(0.0, SECONDS)
    verdicts = [verdict(pace, come, come * share) for _ in range(3)]
    if share < MIN_LINK_SHARE * 0.98:
        assert [found and found.ours for found in verdicts] == [False, True, None]
    if share > 0.5:
        assert verdicts == [None] * 3


def test_link_that_drains_maximum_backlog_in_time_is_not_slow() -> None:
    rate = MAX_BACKLOG / 8 / SECONDS
    assert verdict(SuccessorPace(0.0, SECONDS), 1e9, rate * 1.05) is None
    assert verdict(SuccessorPace(0.0, SECONDS), 1e9, rate * 0.95) is not None


def test_starved_sample_restarts_comparison() -> None:
    pace = SuccessorPace(0.0, SECONDS)
    pace.restart(START)
    verdicts = [pace.see(PaceSample(t / 10, 1000 * t, 1000 * t, t), False, starved=t == 10) for t in range(1, 30)]
    assert [t for t, verdict in enumerate(verdicts, 1) if verdict] == [25]


def test_source_of_file_judges_only_by_minimum_rate() -> None:
    """The source of a file has no incoming rate to compare with."""
    for slowest, found in ((0.0, None), (5.0, None), (50.0, "excluded: 10 bytes/s where 50 are the least")):
        pace = SuccessorPace(slowest, SECONDS)
        pace.restart(PaceSample(0.0, 10_000, 0, 0))
        verdicts = [pace.see(PaceSample(t / 10, 10_000, 100 * t, t), held_up=False) for t in range(1, 40)]
        assert {one.reason for one in verdicts if one} == ({found} if found else set())


def test_second_slow_successor_is_not_excluded() -> None:
    pace = SuccessorPace(0.0, SECONDS)
    assert seen(pace, 1000, 100) == "excluded: 100 bytes/s where 1000 came"
    assert seen(pace, 1000, 100) is None
    assert not pace.lags(1000, 10), "from now on the node waits for it"


def test_minimum_rate_applies_to_each_successor() -> None:
    pace = SuccessorPace(200.0, SECONDS)
    assert all(seen(pace, 1000, 100) == "excluded: 100 bytes/s where 200 are the least" for _ in range(3))


def test_successor_below_half_of_position_lags() -> None:
    pace = SuccessorPace(0.0, SECONDS)
    pace.restart(START)
    assert pace.lags(1000, 499)
    assert not pace.lags(1000, 500)

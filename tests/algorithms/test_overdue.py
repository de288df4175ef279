"""The longest overdue job, against a search of all jobs; ended jobs are not kept."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from algorithms.scheduling.overdue import SHORT, Overdue

Step = tuple[str, int, float]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(0, 5), st.one_of(st.floats(0, 20), st.just(math.inf))),
        st.tuples(st.just("leave"), st.integers(0, 40), st.just(0.0)),
        st.tuples(st.sampled_from(["block", "free"]), st.integers(0, 5), st.just(0.0)),
        st.tuples(st.just("ask"), st.just(0), st.floats(0, 3)),
    ),
    max_size=80,
)


@given(steps, st.integers(0, 5))
def test_first_is_longest_overdue_job_that_can_start(taken: list[Step], short: int) -> None:
    waiting, dues, blocked, now = set[int](), dict[int, float](), set[int](), 0.0
    overdue = Overdue(waiting.__contains__)
    overdue._compact_at = short
    for number, (step, which, amount) in enumerate(taken):
        places = sorted(dues)
        match step:
            case "wait":
                # A new job, or one that was lit and is pending again.
                place = places[which] if which < len(places) and places[which] not in waiting else number
                waiting.add(place)
                dues.setdefault(place, amount)
                overdue.put(dues[place], place)
            case "leave" if waiting:
                waiting.discard(sorted(waiting)[which % len(waiting)])
            case "block":
                blocked.add(which)
            case "free":
                blocked.discard(which)
            case "ask":
                now += amount
                overdue.look_again()
                can = [place for place in waiting if dues[place] <= now and place % 6 not in blocked]
                expected = min(can, key=lambda place: (dues[place], place), default=None)
                assert overdue.first(now, lambda place: place % 6 not in blocked) == expected


def test_ended_jobs_are_removed_long_before_they_are_overdue() -> None:
    waiting = set[int](range(10))
    overdue = Overdue(waiting.__contains__)
    for place in range(100_000):
        waiting.add(place)
        overdue.put(1e9 + place, place)
        if place >= 10:
            waiting.discard(place)
        assert len(overdue) <= SHORT + 1
    assert overdue.first(2e9, lambda _: True) == 0

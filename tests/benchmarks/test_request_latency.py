"""The loads of the request latency benchmark: what each way of keeping trees is asked; none of them helps another."""

from __future__ import annotations

from collections import Counter

import pytest

WAYS = 3


def drawn(load, requests):
    from benchmarks.control_plane.latency_loads import draw

    return [draw(load, way, WAYS, requests) for way in range(WAYS)]


def groups_of(turns, kinds=()):
    return [(one.group[0], *sorted(one.group[1])) for turn in turns for one in turn if not kinds or one.kind in kinds]


@pytest.mark.parametrize("load", ["cold", "iterative", "mix"])
@pytest.mark.parametrize("requests", [1, 20, 33, 100])
def test_so_many_count_each_way_and_every_turn_begins_with_some_that_do_not(load, requests):
    for turns in drawn(load, requests):
        assert sum(one.counts for turn in turns for one in turn) == requests
        assert all(not turn[0].counts and turn[-1].counts for turn in turns)


def test_cold_groups_are_asked_for_once_in_all():
    from benchmarks.control_plane.latency_loads import max_requests

    every = Counter(group for turns in drawn("cold", max_requests("cold")) for group in groups_of(turns))
    assert max(every.values()) == 1


def test_an_iterative_job_has_one_group_of_its_own_each_way_and_counts_from_its_third_time_on():
    ways = drawn("iterative", 40)
    assert len({group for turns in ways for group in groups_of(turns)}) == WAYS
    assert all([one.counts for one in turn[:3]] == [False, False, True] for turns in ways for turn in turns)


def test_in_the_mix_jobs_have_racks_of_their_own_and_nobody_else_comes_back():
    for turns in drawn("mix", 200):
        jobs = Counter(groups_of(turns, ["returning"]))
        once = Counter(groups_of(turns, ["one-shot"]))
        racks = [host for group in jobs for host in group]
        assert len(jobs) == 3 and len(racks) == len(set(racks))
        assert 0.6 < sum(one.kind == "returning" for turn in turns for one in turn if one.counts) / 200 < 0.8
        assert sum(once.values()) > 40 and all(count == 1 for count in Counter(_asked(turns)).values())


def _asked(turns):
    return [(one.group[0], *one.group[1]) for turn in turns for one in turn if one.kind == "one-shot"]

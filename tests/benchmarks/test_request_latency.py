"""The loads of the request latency benchmark: the requests of each method of keeping trees, which are independent."""

from __future__ import annotations

from collections import Counter

import pytest

METHODS = 3


def drawn(load, requests):
    from benchmarks.control_plane.latency_loads import draw

    return [draw(load, method, METHODS, requests) for method in range(METHODS)]


def groups_of(rounds, kinds=()):
    return [
        (one.group[0], *sorted(one.group[1])) for round_ in rounds for one in round_ if not kinds or one.kind in kinds
    ]


@pytest.mark.parametrize("load", ["cold", "iterative", "mix"])
@pytest.mark.parametrize("requests", [1, 20, 33, 100])
def test_each_method_counts_all_requests_after_uncounted_warm_up(load, requests):
    for rounds in drawn(load, requests):
        assert sum(one.counts for round_ in rounds for one in round_) == requests
        assert all(not round_[0].counts and round_[-1].counts for round_ in rounds)


def test_cold_groups_are_requested_once():
    from benchmarks.control_plane.latency_loads import max_requests

    every = Counter(group for rounds in drawn("cold", max_requests("cold")) for group in groups_of(rounds))
    assert max(every.values()) == 1


def test_iterative_job_has_one_group_per_method_and_counts_from_third_round():
    methods = drawn("iterative", 40)
    assert len({group for rounds in methods for group in groups_of(rounds)}) == METHODS
    assert all([one.counts for one in round_[:3]] == [False, False, True] for rounds in methods for round_ in rounds)


def test_mixed_load_repeats_only_groups_of_jobs_with_own_racks():
    for rounds in drawn("mix", 200):
        jobs = Counter(groups_of(rounds, ["returning"]))
        once = Counter(groups_of(rounds, ["one-shot"]))
        racks = [host for group in jobs for host in group]
        assert len(jobs) == 3 and len(racks) == len(set(racks))
        assert 0.6 < sum(one.kind == "returning" for round_ in rounds for one in round_ if one.counts) / 200 < 0.8
        assert sum(once.values()) > 40 and all(count == 1 for count in Counter(_asked(rounds)).values())


def _asked(rounds):
    return [(one.group[0], *one.group[1]) for round_ in rounds for one in round_ if one.kind == "one-shot"]

"""The load of hundreds of jobs: which racks a job gets, and what is made of its waits."""

from __future__ import annotations

from argparse import Namespace

import pytest
from hypothesis import given
from hypothesis import strategies as st


def options(jobs=10, racks=50, **more):
    named = {"smallest": 3, "largest": 5, "seed": 0, "seconds": 10.0, "splitters": 2, "rate": 4.0, "lit": 1.25}
    return Namespace(jobs=jobs, racks=racks, **{**named, **more})


@given(st.integers(1, 30), st.integers(5, 60), st.integers(0, 10))
def test_jobs_have_hosts_of_the_fabric_and_do_not_share_them_if_possible(jobs, racks, seed):
    from benchmarks.control_plane.concurrent_jobs_load import draw_jobs

    drawn = [job.hosts for job in draw_jobs(options(jobs, racks, seed=seed))]
    assert len(drawn) == jobs
    for hosts in drawn:
        assert 3 <= len(hosts) <= 5 and len(set(hosts)) == len(hosts)
        assert all(1 <= int(host.removeprefix("h")) <= racks for host in hosts)
    everyone = [host for hosts in drawn for host in hosts]
    assert len(set(everyone)) == len(everyone) or len(everyone) > racks
    assert drawn == [job.hosts for job in draw_jobs(options(jobs, racks, seed=seed))]


def test_wait_counts_from_scheduled_time_of_request():
    from benchmarks.control_plane.concurrent_jobs_load import Iteration, Load

    load = Load(options(jobs=2))
    first, second = load._jobs
    first.done += [Iteration(1.0, 1.5, 3.0), Iteration(8.0, 11.0, 12.0)]
    second.done += [Iteration(2.0, 3.0, 9.0)]
    second.starved = 1
    found = load._figures(12.0)
    assert found["asked_per_second"] == 0.4
    # The third was lit only after the end.
    assert found["granted_per_second"] == 0.2
    assert found["wait_ms"]["n"] == 3 and found["wait_ms"]["max"] == 3000.0 and found["wait_ms"]["p50"] == 1000.0
    assert found["waiting"]["mean"] == pytest.approx(4.5 / 12, abs=0.05)
    # 1.5 s and 6 s of two splitters within ten.
    assert found["light_used"] == pytest.approx(7.5 / 20)
    assert found["jobs_starved"] == 1
    assert (found["iterations_of_a_job"]["least"], found["iterations_of_a_job"]["most"]) == (1, 2)

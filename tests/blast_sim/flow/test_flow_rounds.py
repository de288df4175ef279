"""Shares of optical capacity among iterative jobs, compared with closed forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_sim.experiments.cell import Effort, cells_of
from blast_sim.experiments.rounds import JobRound, OpticalShare, rates
from blast_sim.experiments.run import run_cell
from blast_sim.scenarios.loading import find, load

SWITCHING = 0.014172
"""Table II of the Blast paper."""
SERVICE = 1.25


def simulated(jobs, splitters, compute):
    """Return the row of `jobs` jobs of the shipped scenario, without its spread of computation times."""
    scenario = load(
        find("hundreds-of-jobs"),
        {
            "network.racks": 3 * jobs,
            "network.servers_per_rack": 2,
            "light.splitters": splitters,
            "jobs.0.count": jobs,
            "jobs.0.compute_s": compute,
            "jobs.0.compute_spread": 0.0,
        },
    )
    (cell,) = cells_of(scenario, [0], Effort("0"))
    (row,) = run_cell(cell)
    return row


@pytest.mark.parametrize(
    ("jobs", "compute"),
    # An iteration takes 10 s without waiting. Two splitters serve 1.58 a second: 8 jobs do not use them up, 20 do.
    [(8, 8.735), (20, 8.735)],
)
def test_multicast_rate_is_limited_by_the_splitters(jobs, compute):
    row = simulated(jobs, 2, compute)
    cycle = SERVICE + SWITCHING + compute
    limit = 2 / (SERVICE + SWITCHING)
    rate = min(jobs / cycle, limit)
    assert row["multicasts_per_second"] == pytest.approx(rate, rel=0.02)
    assert row["splitter_use"] == pytest.approx(rate * SERVICE / 2, rel=0.02)
    # Little's law: the mean number of waiting jobs is the number that neither computes nor receives.
    assert row["wait_seconds"] == pytest.approx(jobs / rate - SERVICE - compute, abs=0.15)
    assert row["wait_p99_seconds"] >= row["wait_seconds"] >= SWITCHING - 1e-9
    assert row["fell_back"] == 0


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 20)), max_size=30), st.integers(1, 5))
def test_rates_equal_a_count_of_every_second(drawn, service):
    """All times are whole seconds, so that the count is exact."""
    until = 90
    rounds = [JobRound(submitted, submitted + wait + service) for submitted, wait in drawn]
    row = rates(rounds, until, OpticalShare(service, 0.25))
    window = range(30, until)
    lit = sum(one.arrived - service <= second < one.arrived for one in rounds for second in window)
    inside = [one for one in rounds if one.arrived in window]
    assert row["multicasts_per_second"] == pytest.approx(len(inside) / 60)
    assert row["splitter_use"] == pytest.approx(0.25 * lit / 60)
    assert row["wait_seconds"] * len(inside) == pytest.approx(
        sum(one.arrived - one.submitted - service for one in inside)
    )

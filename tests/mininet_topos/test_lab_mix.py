"""The seeded mix of the lab: the same for the same seed, heavy-tailed, within what the lab can serve."""

from __future__ import annotations

import statistics

import pytest

from mininet_topos.demo.mix import MAX_RECEIVERS, MAX_SECONDS, MIN_SECONDS, MixRequest, ServedRequest, draw
from mininet_topos.topology.plan import preset

PLAN = preset("small", light_rate_mbps=40.0)
BYTES_A_SECOND = 5e6


def test_seed_determines_mix() -> None:
    assert draw(PLAN, 12, "1") == draw(PLAN, 12, "1") != draw(PLAN, 12, "2")


def test_all_requests_of_mix_fit_lab() -> None:
    hosts = {rack.hosts[0].name for rack in PLAN.rack_plans}
    mix = draw(PLAN, 40, "1")
    assert len({asked.name for asked in mix}) == 40
    for asked in mix:
        members = {asked.sender, *asked.receivers}
        assert members <= hosts and len(members) == 1 + len(asked.receivers) <= MAX_RECEIVERS + 1
        assert MIN_SECONDS * 0.999 <= asked.size / BYTES_A_SECOND <= MAX_SECONDS * 1.001
    assert {asked.may_pause for asked in mix} == {asked.may_split for asked in mix} == {True, False}


def test_sizes_are_heavy_tailed_and_arrivals_dense() -> None:
    mix = draw(PLAN, 2000, "1")
    seconds = [asked.size / BYTES_A_SECOND for asked in mix]
    assert statistics.fmean(seconds) > 1.5 * statistics.median(seconds)
    assert [asked.at for asked in mix] == sorted(asked.at for asked in mix)
    assert sum(seconds) / mix[-1].at == pytest.approx(3.0, rel=0.1)


def test_request_without_served_receivers_is_incomplete() -> None:
    asked = MixRequest("a", 0.0, "r1h1", ("r2h1",), 1, may_pause=False, may_split=False)
    assert not ServedRequest(asked, 1.0, (), intact=True).complete

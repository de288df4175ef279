"""What a sender does with grants, pauses and the ends of leases; time is an argument."""

from __future__ import annotations

import pytest

from blast_api.ttypes import Grant
from blast_client.part_plan import Darken, Finish, PartPlan, Shine, Tell, WrongGrant
from blast_transport.carriers.choices import Light

SIZE = 1000


def grant(first_byte: int = 0, lease_ms: int = 1000, group: str = "239.0.0.1") -> Grant:
    return Grant(
        key="k", part=0, receivers=["b"], groupAddress=group, groupPort=80, rateBitsPerSecond=8000,
        estimatedServiceMs=1000, leaseMs=lease_ms, firstByte=first_byte, receiversWithoutPart=[], reservation=1,
    )  # fmt: skip


def granted(may_pause: bool = True) -> PartPlan:
    plan = PartPlan(SIZE, may_pause=may_pause)
    assert plan.grant(grant(), 0, 10.0) == [Shine(Light("239.0.0.1", 80, 8000, pytest.approx(10.99)))]
    return plan


def test_how_far_it_is_is_told_once_in_each_lease() -> None:
    plan = granted()
    assert plan.deadline() == pytest.approx(10.6)
    assert plan.tick(500, 10.59) == []
    assert plan.tick(500, 10.6) == [Tell(500)]
    assert plan.deadline() == pytest.approx(10.99)
    assert plan.tick(700, 10.99) == []
    assert plan.deadline() is None
    (shine,) = plan.grant(grant(500), 700, 11.0)
    assert isinstance(shine, Shine) and shine.light.until == pytest.approx(11.99)
    assert plan.tick(800, 11.6) == [Tell(800)]


def test_a_pause_stops_it_and_says_exactly_how_far_it_came() -> None:
    plan = granted()
    plan.tick(500, 10.6)
    assert plan.pause(900) == [Darken(), Tell(900)]
    assert plan.deadline() is None
    (shine,) = plan.grant(grant(900, group="239.0.0.9"), 900, 50.0)
    assert isinstance(shine, Shine) and shine.light.group == "239.0.0.9"


def test_who_may_not_pause_says_nothing() -> None:
    plan = granted(may_pause=False)
    assert plan.deadline() == pytest.approx(10.99)
    assert plan.tick(500, 10.99) == []
    assert plan.pause(500) == [Darken()]


@pytest.mark.parametrize("now", [10.6, 10.99])
def test_light_is_given_back_at_the_next_look_when_all_has_been_sent(now: float) -> None:
    plan = granted()
    assert plan.tick(SIZE, now) == [Finish()]
    assert plan.deadline() is None


def test_confirmed_is_finished_at_once() -> None:
    assert granted().confirm() == [Finish()]


def test_what_is_confirmed_during_a_pause_is_finished_by_the_next_grant() -> None:
    plan = granted()
    assert plan.pause(SIZE) == [Darken(), Tell(SIZE)]
    assert plan.confirm() == []
    assert plan.grant(grant(SIZE), SIZE, 20.0) == [Finish()]


def test_a_finish_that_came_too_late_is_made_good() -> None:
    """The pause was on its way when all had been sent."""
    plan = granted()
    assert plan.tick(SIZE, 10.99) == [Finish()]
    assert plan.pause(SIZE) == [Darken(), Tell(SIZE)]
    assert plan.grant(grant(SIZE), SIZE, 20.0) == [Finish()]


def test_a_controller_that_skips_bytes_is_wrong() -> None:
    with pytest.raises(WrongGrant, match="byte 600, but only 500"):
        granted().grant(grant(600), 500, 11.0)

"""What of requests has a bound in the core: events and their rows, timers, leases, rates, and who stays."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import (
    ClientsVanished,
    FinishAsked,
    RequestSubmitted,
    SettingsChanged,
    WithdrawAsked,
)
from blast_controller.core.model.lease_terms import min_rate
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from blast_controller.core.model.timers import LeaseEnd, MemoryEnd, Retry, Timers
from blast_controller.core.policy.quota import Quota
from tests.support.core import World, key_of, make_fabric, multicast, ready_world, rejected

GROUP = ["r2h1", "r3h1"]
FABRIC = make_fabric(3, [4])


@pytest.fixture
def world():
    """One request has all the light."""
    world = ready_world(FABRIC, CoreSettings(max_events=3))
    world.granted(multicast("a", "r1h1", GROUP))
    return world


def extend(world, key, times, **change):
    for _ in range(times):
        world.extend(key, **change)


def rows(world, kind):
    return [key for found, key in world.store._state if found == kind]


def test_an_event_is_written_once(world):
    before = len(world.store._entries)
    extend(world, "a", 5, add_seconds=1.0)
    written = [row.key for *_, row in world.store._entries[before:] if row.kind == "event" and row.body is not None]
    assert written == [f"{number}/default/a" for number in range(2, 7)]
    dropped = [row.key for *_, row in world.store._entries[before:] if row.kind == "event" and row.body is None]
    assert dropped == [f"{number}/default/a" for number in range(1, 4)]
    assert rows(world, "event") == [f"{number}/default/a" for number in range(4, 7)]
    assert not any("events" in json.loads(text) for (kind, _), text in world.store._state.items() if kind == "request")


def test_a_kept_deadline_has_one_entry_however_often_it_moves():
    timers, lease = Timers(), LeaseEnd(key_of("a"), 0)
    for when in range(100):
        timers.keep(10.0 + when, lease)
    assert len(timers._heap) == 1
    assert timers.due(9.0, 5) == []
    assert timers.due(10.0, 5) == [lease]
    assert timers.next() is None
    for when in range(100, 0, -1):
        timers.keep(float(when), lease)
    assert len(timers._heap) <= 20
    assert (timers.next(), timers.due(200.0, 5)) == (1.0, [lease]), "the earliest counts, and once"
    assert timers.next() is None


def test_a_dropped_deadline_is_not_handed_out_and_goes():
    timers = Timers()
    timers.add(5.0, Retry(1))
    for number in range(1000):
        timers.keep(3.0, MemoryEnd(key_of(f"k{number}")))
        timers.drop(MemoryEnd(key_of(f"k{number}")))
    assert len(timers._heap) <= 20
    assert timers.next() == 5.0
    timers.drop(MemoryEnd(key_of("never there")))
    timers.keep(4.0, MemoryEnd(key_of("k1")))
    assert timers.due(9.0, 9) == [MemoryEnd(key_of("k1")), Retry(1)]


def test_so_many_deadlines_at_once_and_the_others_next():
    timers = Timers()
    for number in range(10):
        timers.add(1.0, Retry(number))
    assert timers.due(1.0, 4) == [Retry(n) for n in range(4)]
    assert timers.next() == 1.0
    assert timers.due(1.0, 100) == [Retry(n) for n in range(4, 10)]


def test_light_that_is_past_is_remembered_for_an_hour_whoever_has_no_limit():
    quota = Quota(CoreSettings().limits)
    for number in range(10_000):
        quota.lit(number, "default", now=number)
        quota.dark(number, now=number + 0.5)
    assert len(quota._past["default"]) <= 3601
    assert quota.used("default", now=10_000.0) == 1800.0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"add_seconds": 86_390.1}, "lease_too_long"),
        ({"add_seconds": 1e300}, "lease_too_long"),
        ({"add_bytes": 10**15}, "lease_too_long"),
    ],
)
@pytest.mark.parametrize("key", ["a", "b"])
def test_an_extension_beyond_the_longest_lease_is_refused_whole(world, key, change, code):
    world.submit(multicast("b", "r1h1", GROUP))
    before = repr(world.core.requests)
    with rejected(code, r"24\.0 h"):
        extend(world, key, 1, **change)

    assert repr(world.core.requests) == before
    extend(world, key, 1, add_seconds=86_390.0)


def test_a_lease_is_cut_to_its_maximum_where_the_transfer_itself_fits():
    world = ready_world(FABRIC, CoreSettings(lease_maximum=100.0, lease_factor=2.0))
    part = world.granted(multicast("a", "r1h1", GROUP, size=10**10 * 80 // 8))
    assert (part.grant.estimated_service, part.grant.lease) == (80.0, 100.0)
    world.finish("a")
    with pytest.raises(RejectedError, match="longer than the maximum lease of 100 s"):
        world.submit(multicast("b", "r1h1", GROUP, size=10**10 * 101 // 8))


@pytest.mark.parametrize(
    ("lowest", "slowest", "stated"), [(None, 1e7, "10 Mbit/s"), (0.0, 0.0, "anything"), (2e9, 2e9, "2 Gbit/s")]
)
def test_a_sender_below_the_lowest_rate_is_rejected(lowest, slowest, stated):
    settings = CoreSettings(min_rate=lowest)
    world = ready_world(FABRIC, settings)
    assert min_rate(FABRIC, settings) == slowest
    world.granted(multicast("a", "r1h1", GROUP, size=10**6, max_rate=slowest or 1e3))
    if slowest:
        with pytest.raises(RejectedError, match=f"minimum {stated}") as refusal:
            world.submit(multicast("b", "r1h1", GROUP, size=10**6, max_rate=slowest * 0.99))
        assert refusal.value.code == "bad_rate"


def test_a_journal_with_a_lease_for_years_gets_one_that_ends():
    generous = ready_world(FABRIC, CoreSettings(lease_maximum=1e9))
    generous.granted(multicast("a", "r1h1", GROUP, size=10**17))
    generous.restart()
    assert generous.core.request(key_of("a")).parts[0].lease_end > 1e8
    generous.crash()
    ordinary = World(FABRIC)
    ordinary.store.close()
    ordinary.store, ordinary.running = generous.store, False
    ordinary.start(now=0.0)
    assert ordinary.core.request(key_of("a")).parts[0].lease_end == 86_400.0


@pytest.mark.parametrize("attached", [(True, False), (False, True), (True, False, True)])
def test_what_was_submitted_outlives_connections_and_restarts(world, attached):
    for waits in attached:
        world.handle(RequestSubmitted(multicast("b", "r1h1", GROUP), attached=waits))
    world.handle(ClientsVanished((key_of("b"),)))
    world.advance(5.0)
    assert world.state("b") is PartState.PENDING
    world.restart()
    world.connect_all()
    world.advance(5.0)
    assert world.state("b") is PartState.PENDING


def ended(world, tenant, count):
    """So many requests of a tenant that are given up at once; their names."""
    first = len(world.core.requests)
    names = [(tenant, f"{tenant}-{first + number}") for number in range(count)]
    for name in names:
        world.handle(RequestSubmitted(replace(multicast(name[1], "r1h1", GROUP), tenant=tenant)))
        world.handle(WithdrawAsked(name))
    return names


def dark_world(settings):
    """All light is taken, so that whoever asks for it gets no hardware."""
    world = ready_world(FABRIC, settings)
    world.granted(multicast("a", "r1h1", GROUP))
    return world


def known(world, names):
    return [name for name in names if name in world.core.requests]


def test_of_ended_requests_the_tenant_with_most_loses_its_oldest():
    world = dark_world(CoreSettings(max_ended=10))
    few = ended(world, "few", 3)
    many = ended(world, "many", 100)
    assert known(world, few) == few
    assert known(world, many) == many[-7:]
    few += ended(world, "few", 4)
    assert known(world, few) == few[-5:]
    assert known(world, many) == many[-5:]
    assert world.core.view.deadlines < 50, "of those that are forgotten nothing is looked at any more"


def test_what_has_hardware_is_known_however_many_have_ended_since():
    without_light = {"poor": TenantLimits(max_light_seconds=0.0)}
    world = ready_world(FABRIC, CoreSettings(max_ended=1, keep_warm=60.0, tenants=without_light))
    world.granted(multicast("warm", "r1h1", GROUP))
    world.handle(FinishAsked(key_of("warm"), 0))
    others = ended(world, "poor", 5)
    assert key_of("warm") in world.core.requests
    assert known(world, others) == others[-1:]


def test_fewer_may_be_known_from_one_moment_to_the_next():
    world = dark_world(CoreSettings(max_ended=100))
    names = ended(world, "default", 60)
    world.handle(SettingsChanged(CoreSettings(max_ended=5)))
    assert known(world, names) == names
    names += ended(world, "default", 2)
    assert known(world, names) == names[-5:]

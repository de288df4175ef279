"""Bounds in the core: events and their rows, timers, leases, rates, and remembered requests."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import (
    ClientsVanished,
    FinishRequested,
    RequestSubmitted,
    SettingsChanged,
    WithdrawRequested,
)
from blast_controller.core.model.lease_terms import min_rate
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from blast_controller.core.model.timers import LeaseExpired, RetentionExpired, Retry, Timers
from blast_controller.core.policy.quota import Quota
from tests.support.controller.core import World, key_of, make_fabric, multicast, ready_world, rejected

GROUP = ["r2h1", "r3h1"]
FABRIC = make_fabric(3, [4])


@pytest.fixture
def world():
    """Return a world in which one request holds all optical ports."""
    world = ready_world(FABRIC, CoreSettings(max_events=3))
    world.granted(multicast("a", "r1h1", GROUP))
    return world


def extend(world, key, times, **change):
    for _ in range(times):
        world.extend(key, **change)


def rows(world, kind):
    return [key for found, key in world.store._state if found == kind]


def test_journal_contains_each_event_once(world):
    before = len(world.store._entries)
    extend(world, "a", 5, add_seconds=1.0)
    written = [row.key for *_, row in world.store._entries[before:] if row.kind == "event" and row.body is not None]
    assert written == [f"{number}/default/a" for number in range(2, 7)]
    dropped = [row.key for *_, row in world.store._entries[before:] if row.kind == "event" and row.body is None]
    assert dropped == [f"{number}/default/a" for number in range(1, 4)]
    assert rows(world, "event") == [f"{number}/default/a" for number in range(4, 7)]
    assert not any("events" in json.loads(text) for (kind, _), text in world.store._state.items() if kind == "request")


def test_timers_keep_one_entry_for_a_moved_deadline():
    timers, lease = Timers(), LeaseExpired(key_of("a"), 0)
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


def test_timers_discard_dropped_deadlines():
    timers = Timers()
    timers.add(5.0, Retry(1))
    for number in range(1000):
        timers.keep(3.0, RetentionExpired(key_of(f"k{number}")))
        timers.drop(RetentionExpired(key_of(f"k{number}")))
    assert len(timers._heap) <= 20
    assert timers.next() == 5.0
    timers.drop(RetentionExpired(key_of("never there")))
    timers.keep(4.0, RetentionExpired(key_of("k1")))
    assert timers.due(9.0, 9) == [RetentionExpired(key_of("k1")), Retry(1)]


def test_timers_return_a_limited_number_of_due_deadlines():
    timers = Timers()
    for number in range(10):
        timers.add(1.0, Retry(number))
    assert timers.due(1.0, 4) == [Retry(n) for n in range(4)]
    assert timers.next() == 1.0
    assert timers.due(1.0, 100) == [Retry(n) for n in range(4, 10)]


def test_quota_keeps_past_lit_time_for_an_hour_without_a_limit():
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
def test_extension_beyond_the_maximum_lease_changes_nothing(world, key, change, code):
    world.submit(multicast("b", "r1h1", GROUP))
    before = repr(world.core.requests)
    with rejected(code, r"24\.0 h"):
        extend(world, key, 1, **change)

    assert repr(world.core.requests) == before
    extend(world, key, 1, add_seconds=86_390.0)


def test_lease_is_limited_to_its_maximum_if_the_transfer_fits():
    world = ready_world(FABRIC, CoreSettings(lease_maximum=100.0, lease_factor=2.0))
    part = world.granted(multicast("a", "r1h1", GROUP, size=10**10 * 80 // 8))
    assert (part.grant.estimated_service, part.grant.lease) == (80.0, 100.0)
    world.finish("a")
    with pytest.raises(RejectedError, match="longer than the maximum lease of 100 s"):
        world.submit(multicast("b", "r1h1", GROUP, size=10**10 * 101 // 8))


@pytest.mark.parametrize(
    ("configured", "minimum", "stated"), [(None, 1e7, "10 Mbit/s"), (0.0, 0.0, "anything"), (2e9, 2e9, "2 Gbit/s")]
)
def test_sender_below_the_minimum_rate_is_rejected(configured, minimum, stated):
    settings = CoreSettings(min_rate=configured)
    world = ready_world(FABRIC, settings)
    assert min_rate(FABRIC, settings) == minimum
    world.granted(multicast("a", "r1h1", GROUP, size=10**6, max_rate=minimum or 1e3))
    if minimum:
        with pytest.raises(RejectedError, match=f"minimum {stated}") as refusal:
            world.submit(multicast("b", "r1h1", GROUP, size=10**6, max_rate=minimum * 0.99))
        assert refusal.value.code == "bad_rate"


def test_restart_limits_journaled_leases_to_the_maximum():
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
def test_submitted_request_outlives_connections_and_restarts(world, attached):
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
    """Submit and withdraw `count` requests of a tenant, and return their names."""
    first = len(world.core.requests)
    names = [(tenant, f"{tenant}-{first + number}") for number in range(count)]
    for name in names:
        world.handle(RequestSubmitted(replace(multicast(name[1], "r1h1", GROUP), tenant=tenant)))
        world.handle(WithdrawRequested(name))
    return names


def dark_world(settings):
    """Return a world whose optical ports are all in use, so that further requests remain pending."""
    world = ready_world(FABRIC, settings)
    world.granted(multicast("a", "r1h1", GROUP))
    return world


def known(world, names):
    return [name for name in names if name in world.core.requests]


def test_core_forgets_oldest_ended_request_of_the_busiest_tenant():
    world = dark_world(CoreSettings(max_ended=10))
    few = ended(world, "few", 3)
    many = ended(world, "many", 100)
    assert known(world, few) == few
    assert known(world, many) == many[-7:]
    few += ended(world, "few", 4)
    assert known(world, few) == few[-5:]
    assert known(world, many) == many[-5:]
    assert world.core.view.deadlines < 50, "forgotten requests leave no deadlines"


def test_request_with_warm_tree_is_remembered_beyond_max_ended():
    no_lit_time = {"poor": TenantLimits(max_light_seconds=0.0)}
    world = ready_world(FABRIC, CoreSettings(max_ended=1, keep_warm=60.0, tenants=no_lit_time))
    world.granted(multicast("warm", "r1h1", GROUP))
    world.handle(FinishRequested(key_of("warm"), 0))
    others = ended(world, "poor", 5)
    assert key_of("warm") in world.core.requests
    assert known(world, others) == others[-1:]


def test_lower_max_ended_applies_to_the_next_ended_request():
    world = dark_world(CoreSettings(max_ended=100))
    names = ended(world, "default", 60)
    world.handle(SettingsChanged(CoreSettings(max_ended=5)))
    assert known(world, names) == names
    names += ended(world, "default", 2)
    assert known(world, names) == names[-5:]

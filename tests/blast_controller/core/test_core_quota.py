"""Limits per tenant: pending requests, splitters held at once, and seconds of lit trees within an hour."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import (
    ExtendRequested,
    FinishRequested,
    RequestSubmitted,
    SettingsChanged,
    TimePassed,
)
from blast_controller.core.model.fabric import StaticTree
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension, MulticastRequest
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from blast_controller.core.policy.quota import WINDOW, Quota
from tests.support.controller.core import make_fabric, ready_world, rejected

LONG = 10**13


def limited(**limits):
    """Return settings that limit only the tenant "physics"."""
    return CoreSettings(tenants={"physics": TenantLimits(**limits)})


def ask(key, sender, receivers, tenant="physics", size=LONG):
    return MulticastRequest(key, tenant, sender, tuple(receivers), size)


def submit(world, *arguments, **more):
    request = ask(*arguments, **more)
    world.run(RequestSubmitted(request))
    return world.core.request(request.id)


def state(request):
    return request.parts[0].state


def reason(world, request):
    return world.core.reason(request.current, request.parts[0], world.now)


def finish(world, request):
    world.run(FinishRequested(request.current.id, 0))


def test_core_rejects_requests_beyond_max_pending_of_a_tenant():
    world = ready_world(make_fabric(3, [4]), limited(max_pending=2))
    lit = submit(world, "a", "r1h1", ["r2h1", "r3h1"])
    assert state(lit) is PartState.ACTIVE, "an active request does not count as pending"
    submit(world, "b", "r1h1", ["r2h1"])
    submit(world, "c", "r1h1", ["r2h1"])
    with rejected("too_many_pending", "The tenant physics has 2 pending requests"):
        submit(world, "d", "r1h1", ["r2h1"])

    submit(world, "b", "r1h1", ["r2h1"])
    submit(world, "d", "r1h1", ["r2h1"], tenant="biology")
    finish(world, lit)
    submit(world, "e", "r3h1", ["r2h1"])


def test_tenant_splitter_limit_delays_further_trees():
    world = ready_world(make_fabric(9, [2, 2, 2]), limited(max_splitters=1))
    first = submit(world, "a", "r1h1", ["r2h1", "r3h1"])
    second = submit(world, "b", "r4h1", ["r5h1", "r6h1"])
    assert (state(first), state(second)) == (PartState.ACTIVE, PartState.PENDING)
    assert reason(world, second) == "Waiting: the tenant physics has reached its limit of splitters."
    assert state(submit(world, "c", "r4h1", ["r5h1"])) is PartState.ACTIVE, "a cross-connect needs no splitter"
    other = submit(world, "d", "r7h1", ["r8h1", "r9h1"], tenant="biology")
    assert state(other) is PartState.ACTIVE, "other tenants are not limited"
    for key in "ac":
        finish(world, world.core.request(("physics", key)))
    assert state(second) is PartState.ACTIVE


def test_extension_beyond_the_tenant_splitter_limit_is_rejected():
    world = ready_world(make_fabric(9, [2, 2, 2]), limited(max_splitters=1))
    lit = submit(world, "a", "r1h1", ["r2h1", "r3h1"])
    alone = submit(world, "b", "r4h1", ["r4h2"])
    for request, added in ((lit, ("r7h1",)), (alone, ("r5h1", "r6h1"))):
        with pytest.raises(RejectedError):
            world.handle(ExtendRequested(request.current.id, Extension(add_receivers=added)))
    assert world.core.view.holders.keys() == {"port:r1/50", "port:r2/50", "port:r3/50", "splitter:s1"}


def test_request_beyond_the_tenant_splitter_limit_is_rejected():
    world = ready_world(make_fabric(5, [2, 2, 2]), limited(max_splitters=1))
    with rejected("too_many_splitters", "the tenant physics may hold at a time"):
        submit(world, "a", "r1h1", ["r2h1", "r3h1", "r4h1"])

    assert state(submit(world, "a", "r1h1", ["r2h1", "r3h1", "r4h1"], tenant="biology")) is PartState.ACTIVE


def test_pending_request_cannot_grow_beyond_the_tenant_limit():
    world = ready_world(make_fabric(5, [2, 2, 2]), limited(max_splitters=1))
    submit(world, "a", "r1h1", ["r2h1"])
    waiting = submit(world, "b", "r1h1", ["r2h1", "r3h1"])
    with rejected("too_many_splitters"):
        world.handle(ExtendRequested(waiting.current.id, Extension(add_receivers=("r4h1",))))

    assert waiting.current.receivers == ("r2h1", "r3h1")


def test_quota_limits_lit_time_of_the_last_hour():
    world = ready_world(make_fabric(5, [4]), limited(max_light_seconds=100.0))
    first = submit(world, "a", "r1h1", ["r2h1", "r3h1"])
    world.now = 99.0
    second = submit(world, "b", "r4h1", ["r5h1"])
    assert state(second) is PartState.ACTIVE
    world.now = 100.0
    finish(world, second)
    third = submit(world, "c", "r4h1", ["r5h1"])
    assert state(third) is PartState.PENDING
    assert reason(world, third) == "Waiting: the tenant physics has used its quota of lit time for this hour."
    assert state(first) is PartState.ACTIVE, "a lit tree stays lit"
    assert state(submit(world, "d", "r4h1", ["r5h1"], tenant="biology")) is PartState.ACTIVE


def test_timer_serves_pending_request_when_the_quota_recovers():
    world = ready_world(make_fabric(3, [4]), limited(max_light_seconds=100.0))
    finish_at = 130.0
    lit = submit(world, "a", "r1h1", ["r2h1", "r3h1"])
    world.now = finish_at
    finish(world, lit)
    waiting = submit(world, "b", "r1h1", ["r2h1"])
    assert state(waiting) is PartState.PENDING
    while world.core.next_timer() is not None and state(waiting) is PartState.PENDING:
        world.now = world.core.next_timer()
        world.run(TimePassed())
    assert state(waiting) is PartState.ACTIVE
    assert WINDOW + 30.0 <= world.now <= WINDOW + 50.0, "at 3630 s only 100 of the 130 seconds are within the hour"


def test_group_within_one_rack_uses_no_lit_time():
    world = ready_world(make_fabric(3, [4]), limited(max_light_seconds=100.0))
    local = submit(world, "a", "r1h1", ["r1h2"])
    world.now = 1000.0
    assert state(submit(world, "b", "r2h1", ["r3h1"])) is PartState.ACTIVE, "the local group has used no lit time"
    world.now = 1200.0
    assert state(submit(world, "c", "r3h1", ["r3h2"])) is PartState.ACTIVE, "and needs none"
    assert state(local) is PartState.ACTIVE


def test_lit_time_counts_while_an_extension_adds_other_racks():
    world = ready_world(make_fabric(4, [4]), limited(max_light_seconds=100.0))
    request = submit(world, "a", "r1h1", ["r1h2"])
    used = world.core.view.light_used
    world.now = 50.0
    world.run(ExtendRequested(request.current.id, Extension(add_receivers=("r2h1",))))
    world.now = 70.0
    world.handle(ExtendRequested(request.current.id, Extension(add_seconds=5.0)))
    assert used("physics", 70.0) == 20.0
    world.run(ExtendRequested(request.current.id, Extension(remove_receivers=("r2h1",))))
    assert used("physics", 90.0) == 20.0


def test_extension_with_exhausted_quota_cannot_add_racks():
    world = ready_world(make_fabric(4, [4]), limited(max_light_seconds=10.0))
    request = submit(world, "a", "r1h1", ["r1h2"])
    finish(world, _after(world, submit(world, "b", "r2h1", ["r3h1"]), 20.0))
    with pytest.raises(RejectedError, match="has used its quota of lit time for this hour"):
        world.handle(ExtendRequested(request.current.id, Extension(add_receivers=("r2h1",))))
    world.handle(ExtendRequested(request.current.id, Extension(remove_receivers=("r1h2",), add_receivers=("r1h2",))))


def _after(world, request, seconds):
    world.now += seconds
    return request


def test_lit_time_continues_to_count_after_a_restart():
    world = ready_world(make_fabric(5, [4]), limited(max_light_seconds=100.0))
    submit(world, "a", "r1h1", ["r2h1", "r3h1"])
    world.restart()
    world.connect_all()
    world.advance(100.0)
    assert state(submit(world, "b", "r4h1", ["r5h1"])) is PartState.PENDING


def test_zero_quota_of_lit_time_grants_nothing():
    tree = StaticTree("t1", "r1", 60, None, {"r3": 60}, frozenset())
    fabric = replace(make_fabric(3, [4]), static_trees={"t1": tree})
    world = ready_world(fabric, limited(max_light_seconds=0.0))
    for key, receiver in (("a", "r2h1"), ("b", "r3h1")):
        request = submit(world, key, "r1h1", [receiver])
        assert state(request) is PartState.PENDING
        assert "used its quota of lit time" in reason(world, request)


def test_changed_limits_apply_to_the_next_decision():
    world = ready_world(make_fabric(9, [2, 2, 2]), limited(max_splitters=1))
    first = submit(world, "a", "r1h1", ["r2h1", "r3h1"])
    second = submit(world, "b", "r4h1", ["r5h1", "r6h1"])
    settings = world.core.settings
    world.run(SettingsChanged(replace(settings, tenants={"physics": TenantLimits(max_splitters=2)})))
    assert state(second) is PartState.ACTIVE
    world.run(SettingsChanged(replace(settings, tenants={"physics": TenantLimits(max_splitters=0)})))
    assert (state(first), state(second)) == (PartState.ACTIVE, PartState.ACTIVE), "active requests continue"
    world.handle(SettingsChanged(replace(settings, tenants={"physics": TenantLimits(max_light_seconds=0.0)})))
    assert state(submit(world, "c", "r7h1", ["r8h1"])) is PartState.PENDING
    world.run(SettingsChanged(replace(settings, tenants={})))
    assert state(world.core.request(("physics", "c"))) is PartState.ACTIVE


def test_quota_window_slides():
    quota = Quota(limited(max_light_seconds=100.0).limits)
    quota.lit(1, "physics", 0.0)
    assert quota.used("physics", 40.0) == 40.0
    quota.dark(1, 100.0)
    assert quota.used("physics", 100.0) == 100.0
    assert quota.exhausted("physics", WINDOW)
    assert quota.used("physics", WINDOW + 30.0) == 70.0
    assert not quota.exhausted("physics", WINDOW + 30.0)
    assert quota.used("physics", WINDOW + 100.0) == 0.0


def test_tree_lit_longer_than_an_hour_counts_one_hour():
    quota = Quota(limited().limits)
    quota.lit(1, "physics", 0.0)
    assert quota.used("physics", 3 * WINDOW) == WINDOW
    quota.lit(1, "physics", 2 * WINDOW)
    assert quota.used("physics", 3 * WINDOW) == WINDOW, "it has been lit all the time"

"""The core under a power budget: chosen splitters, pending and rejected requests, and their explanations."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from blast_api import ttypes
from blast_client.cli.request_views import describe_grant, describe_request
from blast_controller.core.journal.bodies import load_request, request_body
from blast_controller.core.light.light_budget import LightBudget
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import (
    ElementQuarantined,
    ElementReleased,
    ExtendRequested,
    FinishRequested,
    LightAlarmRaised,
    TimePassed,
    WithdrawRequested,
)
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.records import Record
from blast_controller.core.model.requests import Extension, Grant
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.rpc import convert
from blast_controller.runtime.runtime import PublishedState
from blast_controller.store.rows import decode, encode
from tests.support.controller.core import TENANT, key_of, make_fabric, multicast, ready_world, rejected
from tests.support.controller.core_power import is_lit_well, received, with_optics

# Light after one 1:4 is -10.7 dBm at worst, after one 1:2 -7.0, after two of them -12.2, after a 1:2 and a 1:4 -15.9.


def world_of(splitters, fibers=None, racks=8, settings=None, **more):
    return ready_world(with_optics(make_fabric(racks, splitters), fibers, **more), settings)


def to(*racks):
    return [f"r{rack}h1" for rack in racks]


def hung(world, key):
    part = world.part(key)
    tree = world.core.view.reservation(part.reservation).layout.tree
    return sorted(h.splitter.name for h in tree.splitters)


def check_light(world):
    for reservation in world.core.reservations:
        tree = reservation.layout.tree
        if reservation.state is ReservationState.LIT and tree is not None:
            assert all(is_lit_well(world.fabric, world.switches[tree.switch].held, leaf.port) for leaf in tree.leaves)


def test_grant_lists_the_margins_of_its_leaves_worst_first():
    world = world_of([4], {"r3": 2.0})
    grant = world.granted(multicast("k", "r1h1", to(2, 3, 4))).grant
    assert [margin.rack for margin in grant.margins] == ["r3", "r2", "r4"]
    minimum, maximum = received(world.fabric, world.switches["ocs1"].held, world.fabric.racks["r3"].optical_ports[0])
    worst = grant.margins[0]
    assert (worst.min_power, worst.max_power) == pytest.approx(
        (minimum, maximum)
    ) and worst.min_power < worst.received < worst.max_power
    assert (worst.sensitivity, worst.overload) == pytest.approx((minimum + 14.0, 10.0 - maximum))
    assert worst.binding == "splitter:s1"
    check_light(world)


def test_core_rejects_a_cascade_beyond_the_power_budget():
    world = world_of([4, 2])
    with pytest.raises(RejectedError) as refused:
        world.submit(multicast("k", "r1h1", to(2, 3, 4, 5, 6)))
    assert refused.value.code == "power_budget", "five leaves by their number, but the fifth would be behind both"
    world.granted(multicast("k", "r1h1", to(2, 3, 4, 5)))


def test_rejection_names_receiver_element_and_both_margins():
    world = world_of([4], {"r3": 6.0})
    with pytest.raises(RejectedError) as refused:
        world.submit(multicast("k", "r1h1", to(2, 3)))
    assert "port:r3/50 lacks 2.7 dB of power; splitter:s1 has the largest loss" in refused.value.sentence
    assert "sensitivity -2.7 dB, overload +21.4 dB" in refused.value.sentence
    assert not world.core.requests


def weak_pair(**more):
    """Two 1:2 would do for three ordinary racks, but not for r6, r7 and r8 together, which need the 1:4."""
    return world_of([4, 2, 2], {"r6": 2.5, "r7": 2.5, "r8": 2.5}, **more)


def refused():
    """Return a world in which `weak` waits for the 1:4 splitter of `first`, and the request `weak`."""
    world = weak_pair(racks=9)
    world.granted(multicast("first", "r1h1", to(2, 3, 4, 5)))
    return world, world.serve(multicast("weak", "r9h1", to(6, 7, 8)))


def test_request_beyond_the_budget_starts_when_its_splitter_is_free():
    world, weak = refused()
    assert weak.state is PartState.PENDING
    reason = world.core.reason(weak.current, weak.parts[0], world.now)
    assert "no tree reaches" in reason and "lacks" in reason
    explained = world.core.explain(key_of("weak"), TENANT, world.now)
    assert "waits for splitters or ports that meet the power budget of every receiver" in explained.sentence
    assert "splitter:s" in explained.blockers[0] and explained.start is None
    # Other requests can use the refused splitters at once.
    world.granted(multicast("other", "r6h1", to(7, 8)))
    world.finish("other")
    assert weak.state is PartState.PENDING
    world.finish("first")
    assert weak.state is PartState.ACTIVE and hung(world, "weak") == ["s1"]
    assert weak.parts[0].reason is None
    check_light(world)


def test_exact_search_is_not_repeated_while_nothing_is_freed(monkeypatch):
    world, weak = refused()
    asked = []
    monkeypatch.setattr(LightBudget, "tree", lambda *given: asked.append(given))
    for _ in range(5):
        world.now += 1.0
        world.handle(TimePassed())
    assert weak.state is PartState.PENDING and not asked


def test_request_fails_when_its_only_splitter_is_quarantined():
    world, weak = refused()
    world.handle(ElementQuarantined("splitter:s1", "broken"))
    assert weak.state is PartState.PENDING
    world.handle(ElementQuarantined("splitter:s2", "dirty"))
    world.run(ElementReleased("splitter:s2"))
    assert weak.state is PartState.FAILED and "No tree of this fabric" in weak.parts[0].reason
    assert "lacks" in weak.parts[0].reason


def test_reduced_pending_request_is_scheduled_again():
    world, weak = refused()
    assert weak.state is PartState.PENDING
    world.extend("weak", remove_receivers=("r8h1",))
    world.settle()
    assert weak.state is PartState.ACTIVE
    world.handle(WithdrawRequested(key_of("weak")))


def test_tenant_limit_applies_to_splitters_that_the_budget_needs():
    # The attenuation alone takes one splitter more than the number of leaves.
    settings = CoreSettings(tenants={TENANT: TenantLimits(max_splitters=0)})
    world = world_of([4], overload={"r2": -5.0}, settings=settings)
    with rejected("power_budget", "needs 1 splitters"):
        world.submit(multicast("k", "r1h1", to(2)))


def test_receiver_with_too_much_power_is_attenuated_if_the_switch_can():
    settings = CoreSettings(tenants={TENANT: TenantLimits(max_splitters=0)})
    world = world_of([4], overload={"r2": -5.0}, settings=settings, attenuation=20.0)
    (margin,) = world.granted(multicast("k", "r1h1", to(2))).grant.margins
    assert (margin.max_power, margin.overload, margin.binding) == (-5.0, 0.0, "attenuator:ocs1/2")
    assert margin.received == -6.0 and margin.min_power == pytest.approx(-7.0)
    explained = world.core.explain(key_of("k"), TENANT, world.now).sentence
    assert "the smallest margin is at r2 (+7.0 dB to sensitivity, +0.0 dB to overload; attenuator:ocs1/2 binds)" in (
        explained
    )
    check_light(world)


def test_power_beyond_the_range_of_an_attenuator_is_rejected():
    settings = CoreSettings(tenants={TENANT: TenantLimits(max_splitters=0)})
    world = world_of([4], overload={"r2": -5.0}, settings=settings, attenuation=7.0)
    with rejected("power_budget", "needs 1 splitters"):
        world.submit(multicast("k", "r1h1", to(2)))


def test_rejected_extension_names_the_receiver_beyond_the_budget():
    world = world_of([4], {"r6": 3.0, "r7": 8.0})
    world.granted(multicast("k", "r1h1", to(2, 3)))
    with rejected("power_budget", "port:r7/50 lacks"):
        world.extend("k", add_receivers=("r7h1",))

    world.extend("k", add_receivers=("r6h1",))
    world.settle()
    grant = world.part("k").grant
    assert [margin.rack for margin in grant.margins] == ["r6", "r2", "r3"]
    check_light(world)


def test_local_group_can_be_extended_to_other_racks():
    world = world_of([4], {"r3": 6.0})
    world.granted(multicast("k", "r1h1", ["r1h2"]))
    with rejected("power_budget"):
        world.extend("k", add_receivers=("r2h1", "r3h1"))

    world.extend("k", add_receivers=("r3h1",))
    world.settle()
    check_light(world)


@pytest.mark.parametrize(("fiber", "moved"), [(1.0, True), (2.5, False)])
def test_dark_leaf_moves_only_to_an_output_within_the_budget(fiber, moved):
    # A tree of 1:2 over 1:2 has its open output on the second level: -12.2 dBm less the fiber's loss.
    world = world_of([2, 2], {"r3": fiber})
    world.granted(multicast("k", "r1h1", to(2, 3, 4)))
    (reservation,) = world.core.reservations
    tree = reservation.layout.tree
    shallow = next(leaf for leaf in tree.leaves if leaf.feed in tree.splitters[0].splitter.outputs)
    assert shallow.port.rack == "r3"
    world.run(ExtendRequested(key_of("k"), Extension(remove_receivers=(f"{_deep(tree)[0].port.rack}h1",))))
    world.run(LightAlarmRaised("ocs1", shallow.port.output, "loss of light"))
    feed = next(leaf.feed for leaf in reservation.layout.tree.leaves if leaf.port == shallow.port)
    assert (feed != shallow.feed) == moved
    check_light(world)


def _deep(tree):
    return [leaf for leaf in tree.leaves if leaf.feed in tree.splitters[1].splitter.outputs]


def test_margins_survive_a_restart_and_old_journals_have_none():
    world = world_of([4], {"r3": 2.0})
    part = world.granted(multicast("k", "r1h1", to(2, 3, 4)))
    body = decode(encode(request_body(world.core.request(key_of("k")))))
    assert load_request(body, 0.0).parts[0].grant == part.grant and part.grant.margins
    Record("request", "default/k", body)  # JSON-able, as every body
    old = {name: value for name, value in body["parts"][0]["grant"].items() if name != "margins"}
    parts = [{**body["parts"][0], "grant": old}]
    found = load_request({**body, "parts": parts, "events": []}, 0.0).parts[0].grant
    assert isinstance(found, Grant) and found.margins == ()


def test_client_views_show_the_minimum_margin():
    world = world_of([4], {"r3": 2.0})
    part = world.granted(multicast("k", "r1h1", to(2, 3, 4)))
    grant = convert.grant("k", part.grant)
    assert [margin.rack for margin in grant.margins] == ["r3", "r2", "r4"]
    text = describe_grant(grant, 10**9)
    line = "minimum margin at r3, which receives -10.2 dBm: +1.3 dB to sensitivity, +17.4 dB to overload"
    assert f"  power      {line} (limited by splitter:s1)" in text
    facts = world.core.snapshot.request(key_of("k"))
    status = convert.status(
        facts, PublishedState(world.core.snapshot, world.now), lambda part: part.reason, max_margins=1
    )
    assert len(status.parts[0].grant.margins) == 1 and line in describe_request(status)
    assert convert.grant("k", replace(part.grant, margins=())).margins is None
    assert isinstance(grant.margins[0], ttypes.LeafMargin)
    explained = world.core.explain(key_of("k"), TENANT, world.now).sentence
    assert "the smallest margin is at r3 (+1.3 dB to sensitivity, +17.4 dB to overload; splitter:s1 binds)" in explained


def test_warm_tree_beyond_the_budget_is_not_used_again():
    settings = CoreSettings(keep_warm=60.0)
    world = world_of([4], settings=settings)
    world.granted(multicast("k", "r1h1", to(2, 3)))
    world.handle(FinishRequested(key_of("k"), 0))
    for aged in (False, True):
        if aged:
            world.fabric = with_optics(make_fabric(8, [4]), {"r3": 6.0})
        world.recover()
        with pytest.raises(RejectedError, match="port:r3/50 lacks") if aged else nullcontext():
            world.submit(multicast(f"again, {aged}", "r1h1", to(2, 3)))
        world.settle()
        assert world.core.view.kept_warm == aged and world.core.view.warm_counts.hits == (not aged)
        if not aged:
            world.handle(FinishRequested(key_of("again, False"), 0))


def test_splitter_with_a_quarantined_output_serves_its_others():
    world = world_of([4])
    world.handle(ElementQuarantined("output:s1/9", "dirty"))
    world.granted(multicast("k", "r1h1", to(2, 3, 4)))
    check_light(world)
    with rejected("group_too_wide"):
        world.submit(multicast("wide", "r1h1", to(2, 3, 4, 5)))

"""Draining: nothing new is admitted, what is active ends by itself. And settings that change while light is live."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.events import ClientsVanished, DrainAsked, RequestSubmitted, SettingsChanged
from blast_controller.core.model.part_states import PartState
from tests.support.core import key_of, make_fabric, multicast, ready_world, rejected

GROUP = ["r2h1", "r3h1"]


@pytest.fixture
def world():
    """One group has light, another waits for it."""
    world = ready_world(make_fabric(4, [4]))
    world.granted(multicast("a", "r1h1", GROUP))
    world.submit(multicast("b", "r1h1", GROUP))
    world.commands.clear()
    return world


def change(world, **settings):
    commands = world.handle(SettingsChanged(replace(world.core.settings, **settings)))
    world.settle()
    return commands


def test_nothing_new_is_admitted_and_nothing_is_touched(world):
    assert world.handle(DrainAsked(on=True)) == []
    assert world.core.draining
    with rejected("draining", "is draining"):
        world.submit(multicast("c", "r4h1", ["r4h2"]))

    assert key_of("c") not in world.core.requests
    assert world.commands == []


def test_what_was_admitted_is_served_to_its_end(world):
    world.handle(DrainAsked(on=True))
    world.handle(RequestSubmitted(multicast("a", "r1h1", GROUP)))
    world.extend("a", add_receivers=("r4h1",))
    world.settle()
    assert world.part().receivers == (*GROUP, "r4h1")
    world.finish("a")
    assert world.part("b").state is PartState.ACTIVE
    world.finish("b")
    assert (world.core.active_count, world.core.pending_count) == (0, 0)
    assert world.core.view.holders == {}


def test_the_next_grant_goes_by_the_new_settings(world):
    change(world, lease_minimum=60.0, group_port=6000)
    world.finish("a")
    grant = world.part("b").grant
    assert (grant.lease, grant.group_port) == (60.0, 6000)


def test_a_longer_memory_counts_for_who_has_ended_already(world):
    change(world, remember_ended=15.0)
    world.finish("a")
    change(world, remember_ended=100.0)
    world.advance(99.0)
    assert key_of("a") in world.core.requests
    world.advance(1.0)
    assert key_of("a") not in world.core.requests, "nobody may be remembered for ever"


def test_a_longer_grace_counts_for_who_has_vanished_already():
    world = ready_world(make_fabric(3, [4]))
    world.disconnect("ocs1")
    wanted = multicast("a", "r1h1", GROUP)
    world.handle(RequestSubmitted(wanted, attached=True))
    world.handle(ClientsVanished((wanted.id,)))
    change(world, orphan_grace=10.0)
    world.advance(9.0)
    assert world.part().state is PartState.PENDING
    world.advance(1.0)
    assert world.part().state is PartState.WITHDRAWN, "a longer grace is not for ever"

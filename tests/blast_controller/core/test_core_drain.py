"""Draining, which rejects new requests and serves admitted ones; changes of settings while trees are lit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.events import ClientsVanished, DrainRequested, RequestSubmitted, SettingsChanged
from blast_controller.core.model.part_states import PartState
from tests.support.controller.core import key_of, make_fabric, multicast, ready_world, rejected

GROUP = ["r2h1", "r3h1"]


@pytest.fixture
def world():
    """Return a world with an active request and a pending one for the same group."""
    world = ready_world(make_fabric(4, [4]))
    world.granted(multicast("a", "r1h1", GROUP))
    world.submit(multicast("b", "r1h1", GROUP))
    world.commands.clear()
    return world


def change(world, **settings):
    commands = world.handle(SettingsChanged(replace(world.core.settings, **settings)))
    world.settle()
    return commands


def test_draining_core_rejects_new_requests_without_commands(world):
    assert world.handle(DrainRequested(on=True)) == []
    assert world.core.draining
    with rejected("draining", "is draining"):
        world.submit(multicast("c", "r4h1", ["r4h2"]))

    assert key_of("c") not in world.core.requests
    assert world.commands == []


def test_draining_core_serves_admitted_requests(world):
    world.handle(DrainRequested(on=True))
    world.handle(RequestSubmitted(multicast("a", "r1h1", GROUP)))
    world.extend("a", add_receivers=("r4h1",))
    world.settle()
    assert world.part().receivers == (*GROUP, "r4h1")
    world.finish("a")
    assert world.part("b").state is PartState.ACTIVE
    world.finish("b")
    assert (world.core.active_count, world.core.pending_count) == (0, 0)
    assert world.core.view.holders == {}


def test_new_settings_apply_to_the_next_grant(world):
    change(world, lease_minimum=60.0, group_port=6000)
    world.finish("a")
    grant = world.part("b").grant
    assert (grant.lease, grant.group_port) == (60.0, 6000)


def test_longer_retention_applies_to_ended_requests(world):
    change(world, remember_ended=15.0)
    world.finish("a")
    change(world, remember_ended=100.0)
    world.advance(99.0)
    assert key_of("a") in world.core.requests
    world.advance(1.0)
    assert key_of("a") not in world.core.requests, "the retention ends"


def test_longer_grace_applies_to_vanished_clients():
    world = ready_world(make_fabric(3, [4]))
    world.disconnect("ocs1")
    request = multicast("a", "r1h1", GROUP)
    world.handle(RequestSubmitted(request, attached=True))
    world.handle(ClientsVanished((request.id,)))
    change(world, orphan_grace=10.0)
    world.advance(9.0)
    assert world.part().state is PartState.PENDING
    world.advance(1.0)
    assert world.part().state is PartState.WITHDRAWN, "the longer grace ends, too"

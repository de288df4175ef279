"""Draining: nothing new is admitted, what is active ends by itself. And settings that change while light is live."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.commands import SetCircuits, SetForwarding
from blast_controller.core.model.errors import Rejected
from blast_controller.core.model.events import (
    ClientsVanished,
    DrainAsked,
    ExtensionAsked,
    FinishAsked,
    RequestSubmitted,
    SettingsChanged,
    Tick,
)
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension
from tests.support.core import key_of, make_fabric, multicast, ready_world

GROUP = ["r2h1", "r3h1"]


@pytest.fixture
def world():
    """One group has light, another waits for it."""
    world = ready_world(make_fabric(4, [4]))
    world.granted(multicast("a", "r1h1", GROUP))
    world.submit(multicast("b", "r1h1", GROUP))
    world.commands.clear()
    return world


def part_of(world, key="a"):
    return world.core.request(key_of(key)).parts[0]


def later(world, seconds):
    world.now += seconds
    world.handle(Tick())
    world.settle()


def change(world, **settings):
    commands = world.handle(SettingsChanged(replace(world.core.settings, **settings)))
    world.settle()
    return commands


# ------------------------------------------------------------------------------------------------ draining


def test_nothing_new_is_admitted_and_nothing_is_touched(world):
    assert world.handle(DrainAsked(on=True)) == []
    assert world.core.draining
    with pytest.raises(Rejected, match="being drained") as refusal:
        world.submit(multicast("c", "r4h1", ["r4h2"]))
    assert refusal.value.code == "draining"
    assert key_of("c") not in world.core.requests
    assert world.commands == []


def test_what_was_admitted_is_served_to_its_end(world):
    world.handle(DrainAsked(on=True))
    world.handle(RequestSubmitted(multicast("a", "r1h1", GROUP)))
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.settle()
    assert part_of(world).receivers == (*GROUP, "r4h1")
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    assert part_of(world, "b").state is PartState.ACTIVE
    world.handle(FinishAsked(key_of("b"), 0))
    world.settle()
    assert (world.core.active_count, world.core.pending_count) == (0, 0)
    assert world.core.view.holders == {}


def test_draining_ends_when_the_operator_says_so(world):
    world.handle(DrainAsked(on=True))
    world.handle(DrainAsked(on=True))
    world.handle(DrainAsked(on=False))
    assert not world.core.draining
    world.granted(multicast("c", "r4h1", ["r4h2"]))


def test_a_restart_admits_again(world):
    """Draining is how one comes to a restart."""
    world.handle(DrainAsked(on=True))
    world.restart()
    assert not world.core.draining


# ------------------------------------------------------------------------------------------------ settings


def test_changed_settings_touch_no_live_light(world):
    change(world, lease_factor=5.0, lease_minimum=60.0, group_port=6000, failures_allowed=1, orphan_grace=9.0)
    assert not [c for c in world.commands if isinstance(c, SetCircuits | SetForwarding)]
    assert world.kinds("a") == ["granted"]
    assert part_of(world).grant.lease == 10.0, "what was promised stays as it was promised"


def test_the_next_grant_goes_by_the_new_settings(world):
    change(world, lease_minimum=60.0, group_port=6000)
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    grant = part_of(world, "b").grant
    assert (grant.lease, grant.group_port) == (60.0, 6000)


def test_ended_requests_are_remembered_by_the_settings_of_their_end(world):
    change(world, remember_ended=15.0)
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    later(world, 15.0)
    assert key_of("a") not in world.core.requests


def test_a_longer_memory_counts_for_who_has_ended_already(world):
    change(world, remember_ended=15.0)
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    change(world, remember_ended=100.0)
    later(world, 99.0)
    assert key_of("a") in world.core.requests
    later(world, 1.0)
    assert key_of("a") not in world.core.requests, "nobody may be remembered for ever"


def test_a_longer_grace_counts_for_who_has_vanished_already():
    world = ready_world(make_fabric(3, [4]))
    world.lose("ocs1")
    world.deliver()
    wanted = multicast("a", "r1h1", GROUP)
    world.handle(RequestSubmitted(wanted, attached=True))
    world.handle(ClientsVanished((wanted.id,)))
    change(world, orphan_grace=10.0)
    later(world, 9.0)
    assert part_of(world).state is PartState.PENDING
    later(world, 1.0)
    assert part_of(world).state is PartState.WITHDRAWN, "a longer grace is not for ever"

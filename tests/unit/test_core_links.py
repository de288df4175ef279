"""Links of optical ports: a grant waits for them, a receiver that locks flaps, and a branch without one is repaired."""

from __future__ import annotations

import pytest

from blast_controller.core.model.events import ExtensionAsked, FinishAsked, PortChanged, Tick
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension
from blast_controller.core.model.settings import CoreSettings
from tests.support.core import key_of, multicast
from tests.support.measuring import (
    GROUP,
    circuits_told,
    later,
    leg,
    leg_name,
    measuring,
    output_of,
    part_of,
    quarantined,
    reason,
    rules_told,
    served,
)


@pytest.fixture
def world():
    """A lit group over two of four legs; nothing told to devices yet."""
    world = measuring(5, [4])
    world.granted(multicast("a", "r1h1", GROUP, size=10**12))
    world.commands.clear()
    return world


def link_world(**settings):
    """ToRs tell that no optical port has a link; receivers lock when they see light."""
    world = measuring(4, [4], settings=CoreSettings(**settings))
    for datapath in (1, 2, 3, 4):
        world.handle(PortChanged(datapath, 50, up=False, reason="no signal"))
    later(world, world.core.settings.flap_tolerance)
    return world


def test_a_grant_waits_for_the_links_of_its_leaves():
    world = link_world()
    world.submit(multicast("a", "r1h1", GROUP))
    world.settle()
    assert part_of(world).state is PartState.CONFIGURING
    world.handle(PortChanged(2, 50, up=True))
    assert world.kinds("a") == []
    world.handle(PortChanged(3, 50, up=True))
    assert world.kinds("a") == ["granted"]


def test_links_that_come_before_the_devices_are_done_are_no_grant():
    world = link_world()
    world.submit(multicast("a", "r1h1", GROUP))
    for datapath in (2, 3):
        world.handle(PortChanged(datapath, 50, up=True))
    assert world.kinds("a") == []
    world.settle()
    assert world.kinds("a") == ["granted"]


def test_a_link_that_does_not_come_in_time_is_a_dark_leaf():
    world = link_world(link_wait=3.0)
    world.submit(multicast("a", "r1h1", GROUP))
    world.settle()
    world.handle(PortChanged(3, 50, up=True))
    assert world.core.next_timer() == world.now + 3.0
    later(world, 2.9)
    assert quarantined(world) == set()
    world.now += 0.1
    world.handle(Tick())
    assert quarantined(world) == {leg_name(world, 0)}
    assert part_of(world).state is PartState.PENDING
    assert "no light at port:r2/50" in reason(world)
    world.settle()
    world.handle(PortChanged(2, 50, up=True))
    world.settle()
    assert world.kinds("a") == ["granted"]


def test_the_wait_for_links_of_an_earlier_attempt_does_not_end_a_later_one():
    world = link_world(link_wait=3.0)
    world.submit(multicast("a", "r1h1", GROUP))
    world.settle()
    world.now += 1.0
    for datapath in (2, 3):
        world.handle(PortChanged(datapath, 50, up=True))
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.settle()
    later(world, 2.5)
    assert world.kinds("a") == ["granted"], "the wait of the grant is over, not that of the extension"
    later(world, 0.5)
    assert world.kinds("a") == ["granted", "changed"]
    assert world.core.request(key_of("a")).events[-1].reason == "no light arrived at the new leaves"
    assert served(world) == set(GROUP)


def test_an_extension_waits_for_the_link_of_the_new_leaf():
    world = link_world()
    world.submit(multicast("a", "r1h1", GROUP))
    for datapath in (2, 3):
        world.handle(PortChanged(datapath, 50, up=True))
    world.settle()
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.settle()
    assert world.kinds("a") == ["granted"]
    world.handle(PortChanged(4, 50, up=True))
    world.settle()
    assert world.kinds("a") == ["granted", "changed"]
    assert part_of(world).receivers == (*GROUP, "r4h1")


def test_a_short_flap_moves_nothing(world):
    world.handle(PortChanged(2, 50, up=False))
    later(world, 0.5)
    world.handle(PortChanged(2, 50, up=True))
    later(world, 10.0)
    assert world.commands == []
    assert quarantined(world) == set()


def test_flaps_in_a_row_are_not_added_up(world):
    """A receiver that locks loses its link several times; each time has the whole tolerance."""
    for _ in range(5):
        world.handle(PortChanged(2, 50, up=False))
        later(world, 0.6)
        world.handle(PortChanged(2, 50, up=True))
        later(world, 0.1)
    world.handle(PortChanged(2, 50, up=False))
    later(world, 0.9)
    assert world.commands == []
    later(world, 0.1)
    assert circuits_told(world)[0] == {CrossConnect("ocs1", leg(world, 0), output_of(world, "r2"))}


def test_a_loss_told_twice_counts_from_the_first_time(world):
    world.handle(PortChanged(2, 50, up=False))
    later(world, 0.9)
    world.handle(PortChanged(2, 50, up=False))
    later(world, 0.1)
    assert circuits_told(world)[0] == {CrossConnect("ocs1", leg(world, 0), output_of(world, "r2"))}


def test_a_link_that_stays_away_is_repaired_over_another_leg(world):
    world.after_operation = lambda: "r3h1" in served(world) or pytest.fail("the other receiver was cut off")
    world.handle(PortChanged(2, 50, up=False))
    later(world, 1.0)
    assert world.kinds("a") == ["granted"], "the change waits for the link"
    world.handle(PortChanged(2, 50, up=True))
    assert world.kinds("a") == ["granted", "changed"]
    assert rules_told(world) == []
    gone, come = circuits_told(world)
    assert len(gone) == len(come) == 1
    assert served(world) == set(GROUP)


def test_a_link_that_comes_over_no_leg_is_left_alone_and_the_tree_can_be_changed_again(world):
    world.handle(PortChanged(2, 50, up=False))
    later(world, 1.0)
    later(world, world.core.settings.link_wait)
    assert next(iter(world.core.reservations)).state.value == "lit"
    assert quarantined(world) == {"port:r2/50"}
    assert "no light at port:r2/50" in reason(world)
    world.commands.clear()
    later(world, 20.0)
    assert circuits_told(world) == (set(), set()), "it is not tried for ever"
    world.handle(ExtensionAsked(key_of("a"), Extension(remove_receivers=("r2h1",), add_receivers=("r4h1",))))
    world.settle()
    assert served(world) == {"r3h1", "r4h1"}
    assert reason(world) is None


def test_a_link_lost_before_the_grant_is_waited_for_again():
    """A receiver that locks flaps."""
    world = link_world()
    world.submit(multicast("a", "r1h1", GROUP, size=10**12))
    for datapath in (2, 3):
        world.handle(PortChanged(datapath, 50, up=True))
    world.handle(PortChanged(2, 50, up=False))
    later(world, 1.5)
    assert world.kinds("a") == []
    world.handle(PortChanged(2, 50, up=True))
    assert world.kinds("a") == ["granted"]
    assert circuits_told(world)[0] == set()
    assert quarantined(world) == set()


def test_a_link_that_is_lost_only_after_the_grant_was_asked_for_counts_as_well():
    """Its ToR notices late that the light of an earlier group is gone."""
    world = measuring(3, [4])
    world.submit(multicast("a", "r1h1", GROUP))
    world.handle(PortChanged(2, 50, up=False))
    world.settle()
    assert world.kinds("a") == []
    later(world, world.core.settings.link_wait)
    assert quarantined(world) == {leg_name(world, 0)}


def test_a_link_lost_while_the_tree_is_being_changed_is_repaired_afterwards(world):
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.handle(PortChanged(2, 50, up=False))
    world.now += 1.0
    world.handle(Tick())
    assert not circuits_told(world)[0]
    world.settle()
    later(world, 1.0)
    assert circuits_told(world)[0] == {CrossConnect("ocs1", leg(world, 0), output_of(world, "r2"))}


def test_the_link_of_a_port_that_nobody_uses_is_of_no_interest(world):
    world.handle(PortChanged(5, 50, up=False))
    later(world, 10.0)
    assert world.commands == []
    assert world.core.next_timer() is not None
    assert world.core.next_timer() >= world.now


def test_the_link_is_lost_when_the_light_goes_and_that_is_no_fault(world):
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    for datapath in (2, 3):
        world.handle(PortChanged(datapath, 50, up=False))
    later(world, 1.0)
    assert quarantined(world) == set()
    world.submit(multicast("b", "r1h1", GROUP))
    world.settle()
    for datapath in (2, 3):
        world.handle(PortChanged(datapath, 50, up=True))
    assert world.kinds("b") == ["granted"]

"""Faults that the random machine has found in the core, each with the shortest story that shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import ExtensionAsked, FinishAsked, StepConfirmed, Tick, WithdrawAsked
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from tests.support.core import key_of, make_fabric, multicast, ready_world


def test_a_second_copy_of_an_answer_does_not_stand_for_what_was_asked_since():
    world = ready_world(make_fabric(3, [2]))
    part = world.submit(multicast("k", "r1h1", ["r2h1", "r3h1"])).parts[0]
    world.work(2)
    world.deliver()
    world.lose(2)
    world.come_back(2, forgets=lambda _: True)
    world.deliver()
    first = world.core.reservations
    (reservation,) = first
    world.post(StepConfirmed(2, reservation.id, 1, 0.01))
    for name in ("ocs1", 1, 3):
        world.work(name)
    world.deliver()
    assert part.state is PartState.CONFIGURING
    world.settle()
    assert part.state is PartState.ACTIVE
    assert world.receivers_of(world.fabric.hosts["r1h1"], reservation.group_address) == {"r2h1", "r3h1"}


def test_what_is_found_on_a_device_overrides_what_it_was_asked_before_that_was_heard():
    world = ready_world(make_fabric(3, [2], shared=3))
    part = world.granted(multicast("k", "r1h1", ["r2h1", "r3h1"]))
    (reservation,) = world.core.reservations
    lost, *_ = world.tors[1].rules
    for forgets in (lambda match: match == lost, lambda _: True):
        world.lose(1)
        world.come_back(1, forgets)
    world.deliver(2)
    # Told what was missing at the first return, the ToR does it after the second, of which the core has not heard.
    world.work(1)
    world.settle()
    assert part.state is PartState.ACTIVE
    assert world.receivers_of(world.fabric.hosts["r1h1"], reservation.group_address) == {"r2h1", "r3h1"}


@pytest.mark.parametrize("worked", [True, False])
def test_light_that_cannot_be_had_again_during_a_change_is_revoked_and_not_tried_for_ever(worked):
    world = ready_world(make_fabric(4, [4]))
    part = world.granted(multicast("k", "r1h1", ["r2h1", "r3h1"]))
    world.handle(ExtensionAsked(key_of("k"), Extension(add_receivers=("r4h1",))))
    if worked:
        for name in ("ocs1", 1, 4):
            if world.device(name).queue:
                world.work(name)
                world.deliver()
    world.lose("ocs1")
    switch = world.switches["ocs1"]
    lost = next(circuit for circuit in sorted(switch.held) if circuit.output == 2)
    switch.disconnect(lost)
    stranger = CrossConnect("ocs1", 2, 2)
    switch.circuits[2] = 2
    switch.foreign = {stranger}
    world.come_back("ocs1")
    for _ in range(4):
        world.settle()
        world.now += world.core.settings.retry_after
        world.handle(Tick())
    assert "revoked" in world.kinds("k")
    assert part.grant is None
    assert stranger in switch.held
    assert not any(reservation.busy for reservation in world.core.reservations)


def test_two_parts_beyond_their_tenant_s_share_do_not_keep_the_core_busy_for_ever():
    """Each is tried because splitters are there; neither may have them, as long as it takes two where one would do."""
    settings = CoreSettings(tenants={"biology": TenantLimits(max_splitters=1)}, keep_warm=0.0)
    world = ready_world(make_fabric(8, [4, 4, 2, 2, 2, 2], ports=3), settings)
    for key in ("a", "b"):
        world.granted(multicast(key, "r1h1", ["r2h1", "r3h1", "r4h1"]))
    wanted = [replace(multicast(key, "r5h1", ["r6h1", "r7h1", "r8h1"]), tenant="biology") for key in ("c", "d")]
    for one in wanted:
        world.submit(one)
    world.settle()
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    states = [world.core.request(one.id).state for one in wanted]
    assert sorted(state.value for state in states) == ["active", "pending"]


def test_what_is_given_back_is_taken_off_a_switch_that_comes_back_whatever_was_read_there():
    """It may have been told to connect after the reading, by who had not heard yet that it was there anew."""
    world = ready_world(make_fabric(5, [4]), CoreSettings(keep_warm=0.0))
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    world.handle(WithdrawAsked(key_of("a")))
    world.lose("ocs1")
    world.deliver()
    world.commands.clear()
    world.come_back("ocs1", forgets=lambda item: True)
    world.deliver()
    told = [change for c in world.commands if isinstance(c, SetCircuits) for change in c.changes]
    assert [len(change.disconnect) for change in told] == [3] and list(world.core.reservations)
    world.settle()
    assert not list(world.core.reservations)


def test_no_grant_for_circuits_that_are_there_but_at_whose_light_nobody_has_looked():
    """The switch lost its session in the middle of the step; what was read afterwards says nothing about light."""
    world = ready_world(make_fabric(5, [4]))
    part = world.submit(multicast("a", "r1h1", ["r2h1", "r3h1"])).parts[0]
    world.work("ocs1", reply="lost")
    world.lose("ocs1")
    world.come_back("ocs1")
    world.deliver()
    (first,) = world.core.reservations
    world.settle()
    assert part.state is PartState.ACTIVE and part.reservation != first.id

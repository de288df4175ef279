"""Faults that the random machine has found in the core, each with the shortest story that shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import FinishAsked, LightAlarm, PortChanged, StepConfirmed, Tick, WithdrawAsked
from blast_controller.core.model.fabric import CrossConnect, StaticTree
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from tests.support.core import key_of, make_fabric, multicast, ready_world
from tests.support.core_light import GROUP, measuring, output, output_name, output_of, quarantined, ready_fibers


def test_a_second_copy_of_an_answer_does_not_stand_for_what_was_asked_since():
    world = ready_world(make_fabric(3, [2]))
    part = world.submit(multicast("k", "r1h1", ["r2h1", "r3h1"])).parts[0]
    world.work(2)
    world.deliver()
    world.reconnect(2, forgets=lambda _: True)
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
        world.reconnect(1, forgets)
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
    world.extend("k", add_receivers=("r4h1",))
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
    world.finish("a")
    states = [world.core.request(one.id).state for one in wanted]
    assert sorted(state.value for state in states) == ["active", "pending"]


def test_what_is_given_back_is_taken_off_a_switch_that_comes_back_whatever_was_read_there():
    """It may have been told to connect after the reading, by who had not heard yet that it was there anew."""
    world = ready_world(make_fabric(5, [4]), CoreSettings(keep_warm=0.0))
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    world.handle(WithdrawAsked(key_of("a")))
    world.disconnect("ocs1")
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
    world.reconnect("ocs1")
    world.deliver()
    (first,) = world.core.reservations
    world.settle()
    assert part.state is PartState.ACTIVE and part.reservation != first.id


def test_probe_circuits_that_a_new_session_has_yet_to_make_are_taken_away_again():
    world = ready_fibers(make_fabric(4, (2,)))
    world.reconnect("ocs1")
    # The core begins a survey, and only then hears that the session it knew was over.
    world.ask()
    world.settle()
    world.assert_nothing_left()


def test_probe_circuits_of_two_sessions_ago_are_taken_away_even_if_the_last_session_is_cut():
    world = ready_fibers(make_fabric(4, (2,)))
    for _ in range(2):
        world.reconnect("ocs1")
    world.ask()
    world.deliver()
    # The switch makes the circuits, and is cut before it takes them away again.
    world.work("ocs1")
    world.lose("ocs1")
    world.recover()
    world.assert_nothing_left()


def test_a_link_lost_after_a_device_was_asked_again_is_not_waited_for_for_ever():
    world = measuring(4, [4])
    world.submit(multicast("a", "r1h1", GROUP))
    world.work(2)
    world.reconnect(2, forgets=lambda _: True)
    world.deliver()
    world.run(PortChanged(2, 50, up=False, reason="no signal"))
    assert world.part().state is PartState.CONFIGURING
    world.advance(world.core.settings.link_wait)
    assert world.part().failures == 1
    assert quarantined(world) == {output_name(world, 0)}


def test_what_is_given_back_does_not_wait_for_a_link():
    world = measuring(4, [4])
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    (reservation,) = world.core.reservations
    assert reservation.change is not None
    world.handle(FinishAsked(key_of("a"), 0))
    world.run(PortChanged(2, 50, up=False, reason="no signal"))
    assert not list(world.core.reservations)
    assert world.core.view.holders == {}


def test_light_that_a_stranger_has_taken_is_revoked_though_an_alarm_came_meanwhile():
    world = measuring(4, [4])
    world.granted(multicast("a", "r1h1", GROUP))
    switch, output = world.switches["ocs1"], output_of(world, "r2")
    ours = next(c for c in switch.held if c.output == output)
    world.lose("ocs1")
    switch.disconnect(ours)
    stranger = CrossConnect("ocs1", world.fabric.racks["r4"].optical_ports[0].input, output)
    switch.circuits[stranger.input] = output
    switch.foreign.add(stranger)
    world.come_back("ocs1")
    world.deliver()
    world.run(LightAlarm("ocs1", output))
    assert "revoked" in world.kinds("a")
    assert stranger in switch.held


def test_a_dark_leaf_whose_other_output_is_refused_is_not_tried_for_ever():
    world = measuring(4, [4])
    world.granted(multicast("a", "r1h1", GROUP, size=10**12))
    switch = world.switches["ocs1"]
    # Of which the controller has not heard: somebody uses the outputs that are open.
    for number, rack in ((2, "r4"), (3, "r1")):
        switch.circuits[output(world, number)] = output_of(world, rack)
        switch.foreign.add(CrossConnect("ocs1", output(world, number), output_of(world, rack)))
    world.dead = {("in", output(world, 0))}
    world.run(LightAlarm("ocs1", output_of(world, "r2")))
    assert world.kinds("a") == ["granted", "changed"]
    assert world.reason().startswith("no light at port:r2/50")
    assert world.served() == set(GROUP)


def test_no_grant_while_an_alarm_says_that_a_leaf_is_dark_again():
    world = measuring(4, [4])
    world.submit(multicast("a", "r1h1", GROUP))
    world.work("ocs1")
    world.deliver()
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    for datapath in (1, 2, 3):
        world.work(datapath)
    world.deliver()
    assert world.kinds("a") == []
    world.settle()
    assert world.kinds("a") == ["granted"]
    assert quarantined(world) == {output_name(world, 0)}
    assert world.served() == set(GROUP)


def test_an_alarm_of_a_leaf_that_was_just_being_connected_is_over_when_the_switch_has_seen_light():
    world = measuring(4, [4])
    world.submit(multicast("a", "r1h1", GROUP))
    world.run(LightAlarm("ocs1", output_of(world, "r2")))
    assert world.kinds("a") == ["granted"]
    assert not quarantined(world)


def test_a_static_tree_that_is_dark_at_a_leaf_is_granted_and_says_so():
    tree = StaticTree("t1", "r1", 60, None, {"r2": 60, "r3": 61}, frozenset())
    world = ready_world(replace(make_fabric(3, ports=0), static_trees={"t1": tree}))
    world.handle(PortChanged(2, 60, up=False, reason="no signal"))
    world.now += 60.0
    world.handle(Tick())
    world.granted(multicast("a", "r1h1", GROUP))
    assert world.reason().startswith("no light at port:r2/60")
    world.handle(PortChanged(2, 60, up=True))
    assert world.reason() is None


def test_a_circuit_that_was_a_probe_and_is_a_reservation_s_now_stays():
    world = ready_fibers(make_fabric(3, (2,)))
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    held = world.switches["ocs1"].held
    state = world.store._state
    pairs = ",".join(f"[{c.input},{c.output}]" for c in sorted(held))
    state["probe", "ocs1"] = f'{{"circuits":[{pairs}]}}'
    # The order in which a journal is read back is that of the first entry of each row.
    world.store._state = {key: state[key] for key in sorted(state)}
    world.commands.clear()
    world.recover()
    assert not [command for command in world.commands if isinstance(command, SetCircuits)]
    assert world.switches["ocs1"].held == held
    assert 0 not in world.core.view.holders.values()

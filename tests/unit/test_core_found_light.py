"""Faults that the random machine has found where the core deals with light, each with the shortest story."""

from __future__ import annotations

from dataclasses import replace

from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import FinishAsked, LightAlarm, PortChanged, Tick
from blast_controller.core.model.fabric import CrossConnect, StaticTree
from blast_controller.core.model.part_states import PartState
from tests.support.core import key_of, make_fabric, multicast, ready_world
from tests.support.fibre_world import ready_fibres
from tests.support.measuring import GROUP, leg, leg_name, measuring, output_of, part_of, quarantined, reason, served


def test_probe_circuits_that_a_new_session_has_yet_to_make_are_taken_away_again():
    world = ready_fibres(make_fabric(4, (2,)))
    world.lose("ocs1")
    world.come_back("ocs1")
    # The core begins a survey, and only then hears that the session it knew was over.
    world.ask()
    world.settle()
    world.assert_nothing_left()


def test_probe_circuits_of_two_sessions_ago_are_taken_away_even_if_the_last_session_is_cut():
    world = ready_fibres(make_fabric(4, (2,)))
    for _ in range(2):
        world.lose("ocs1")
        world.come_back("ocs1")
    world.ask()
    world.deliver()
    # The switch makes the circuits, and is cut before it takes them away again.
    world.work("ocs1")
    world.lose("ocs1")
    world.restart()
    world.connect_all()
    world.settle()
    world.assert_nothing_left()


def test_a_link_lost_after_a_device_was_asked_again_is_not_waited_for_for_ever():
    world = measuring(4, [4])
    world.submit(multicast("a", "r1h1", GROUP))
    world.work(2)
    world.lose(2)
    world.come_back(2, forgets=lambda _: True)
    world.deliver()
    world.handle(PortChanged(2, 50, up=False, reason="no signal"))
    world.settle()
    assert part_of(world).state is PartState.CONFIGURING
    world.now += world.core.settings.link_wait
    world.handle(Tick())
    world.settle()
    assert part_of(world).failures == 1
    assert quarantined(world) == {leg_name(world, 0)}


def test_what_is_given_back_does_not_wait_for_a_link():
    world = measuring(4, [4])
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    (reservation,) = world.core.reservations
    assert reservation.change is not None
    world.handle(FinishAsked(key_of("a"), 0))
    world.handle(PortChanged(2, 50, up=False, reason="no signal"))
    world.settle()
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
    world.handle(LightAlarm("ocs1", output))
    world.settle()
    assert "revoked" in world.kinds("a")
    assert stranger in switch.held


def test_a_dark_leaf_whose_other_leg_is_refused_is_not_tried_for_ever():
    world = measuring(4, [4])
    world.granted(multicast("a", "r1h1", GROUP, size=10**12))
    switch = world.switches["ocs1"]
    # Of which the controller has not heard: somebody uses the legs that are open.
    for number, rack in ((2, "r4"), (3, "r1")):
        switch.circuits[leg(world, number)] = output_of(world, rack)
        switch.foreign.add(CrossConnect("ocs1", leg(world, number), output_of(world, rack)))
    world.dead = {("in", leg(world, 0))}
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    world.settle()
    assert world.kinds("a") == ["granted", "changed"]
    assert reason(world).startswith("no light at port:r2/50")
    assert served(world) == set(GROUP)


def test_no_grant_while_an_alarm_says_that_a_leaf_is_dark_again():
    world = measuring(4, [4])
    world.submit(multicast("a", "r1h1", GROUP))
    world.work("ocs1")
    world.deliver()
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    world.work(1)
    world.work(2)
    world.work(3)
    world.deliver()
    assert world.kinds("a") == []
    world.settle()
    assert world.kinds("a") == ["granted"]
    assert quarantined(world) == {leg_name(world, 0)}
    assert served(world) == set(GROUP)


def test_an_alarm_of_a_leaf_that_was_just_being_connected_is_over_when_the_switch_has_seen_light():
    world = measuring(4, [4])
    world.submit(multicast("a", "r1h1", GROUP))
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    world.settle()
    assert world.kinds("a") == ["granted"]
    assert not quarantined(world)


def test_a_static_tree_that_is_dark_at_a_leaf_is_granted_and_says_so():
    tree = StaticTree("t1", "r1", 60, None, {"r2": 60, "r3": 61}, frozenset())
    world = ready_world(replace(make_fabric(3, ports=0), static_trees={"t1": tree}))
    world.handle(PortChanged(2, 60, up=False, reason="no signal"))
    world.now += 60.0
    world.handle(Tick())
    world.granted(multicast("a", "r1h1", GROUP))
    assert reason(world).startswith("no light at port:r2/60")
    world.handle(PortChanged(2, 60, up=True))
    assert reason(world) is None


def test_a_circuit_that_was_a_probe_and_is_a_reservation_s_now_stays():
    world = ready_fibres(make_fabric(3, (2,)))
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    held = world.switches["ocs1"].held
    state = world.store._state
    pairs = ",".join(f"[{c.input},{c.output}]" for c in sorted(held))
    state["probe", "ocs1"] = f'{{"circuits":[{pairs}]}}'
    # The order in which a journal is read back is that of the first entry of each row.
    world.store._state = {key: state[key] for key in sorted(state)}
    world.commands.clear()
    world.restart()
    world.connect_all()
    world.settle()
    assert not [command for command in world.commands if isinstance(command, SetCircuits)]
    assert world.switches["ocs1"].held == held
    assert 0 not in world.core.view.holders.values()

"""Faults that the random machine found in the core, each with the shortest event sequence that reproduces it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import (
    FinishRequested,
    LightAlarmRaised,
    PortChanged,
    StepConfirmed,
    TimePassed,
    WithdrawRequested,
)
from blast_controller.core.model.fabric import CrossConnect, StaticTree
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from tests.support.controller.core import key_of, make_fabric, multicast, ready_world
from tests.support.controller.core_light import (
    GROUP,
    measuring,
    output,
    output_name,
    output_of,
    quarantined,
    ready_fibers,
)


def test_duplicate_answer_does_not_confirm_a_later_step():
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


def test_second_reconnection_overrides_the_step_of_the_first():
    world = ready_world(make_fabric(3, [2], shared=3))
    part = world.granted(multicast("k", "r1h1", ["r2h1", "r3h1"]))
    (reservation,) = world.core.reservations
    lost, *_ = world.tors[1].rules
    for forgets in (lambda match: match == lost, lambda _: True):
        world.reconnect(1, forgets)
    world.deliver(2)
    # The ToR runs the step for its first reconnection after the second one, of which the core does not know yet.
    world.work(1)
    world.settle()
    assert part.state is PartState.ACTIVE
    assert world.receivers_of(world.fabric.hosts["r1h1"], reservation.group_address) == {"r2h1", "r3h1"}


@pytest.mark.parametrize("worked", [True, False])
def test_grant_is_revoked_if_a_lost_circuit_cannot_be_restored(worked):
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
    foreign = CrossConnect("ocs1", 2, 2)
    switch.circuits[2] = 2
    switch.foreign = {foreign}
    world.come_back("ocs1")
    for _ in range(4):
        world.settle()
        world.now += world.core.settings.retry_after
        world.handle(TimePassed())
    assert "revoked" in world.kinds("k")
    assert part.grant is None
    assert foreign in switch.held
    assert not any(reservation.busy for reservation in world.core.reservations)


def test_parts_beyond_the_tenant_limit_do_not_loop_the_core():
    """Each is tried because splitters are free; neither may hold them while its tree takes two where one suffices."""
    settings = CoreSettings(tenants={"biology": TenantLimits(max_splitters=1)}, keep_warm=0.0)
    world = ready_world(make_fabric(8, [4, 4, 2, 2, 2, 2], ports=3), settings)
    for key in ("a", "b"):
        world.granted(multicast(key, "r1h1", ["r2h1", "r3h1", "r4h1"]))
    requests = [replace(multicast(key, "r5h1", ["r6h1", "r7h1", "r8h1"]), tenant="biology") for key in ("c", "d")]
    for one in requests:
        world.submit(one)
    world.settle()
    world.finish("a")
    states = [world.core.request(one.id).state for one in requests]
    assert sorted(state.value for state in states) == ["active", "pending"]


def test_release_disconnects_on_reconnected_switch_despite_its_reading():
    """An older command may connect circuits after the reading."""
    world = ready_world(make_fabric(5, [4]), CoreSettings(keep_warm=0.0))
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    world.handle(WithdrawRequested(key_of("a")))
    world.disconnect("ocs1")
    world.commands.clear()
    world.come_back("ocs1", forgets=lambda item: True)
    world.deliver()
    changes = [change for c in world.commands if isinstance(c, SetCircuits) for change in c.changes]
    assert [len(change.disconnect) for change in changes] == [3] and list(world.core.reservations)
    world.settle()
    assert not list(world.core.reservations)


def test_core_does_not_grant_circuits_without_a_light_check():
    """The session ends during the step, and the reading after it contains no light levels."""
    world = ready_world(make_fabric(5, [4]))
    part = world.submit(multicast("a", "r1h1", ["r2h1", "r3h1"])).parts[0]
    world.work("ocs1", reply="lost")
    world.reconnect("ocs1")
    world.deliver()
    (first,) = world.core.reservations
    world.settle()
    assert part.state is PartState.ACTIVE and part.reservation != first.id


def test_probe_circuits_of_a_new_session_are_removed():
    world = ready_fibers(make_fabric(4, (2,)))
    world.reconnect("ocs1")
    # The core begins a survey before it learns that the previous session has ended.
    world.ask()
    world.settle()
    world.assert_nothing_left()


def test_probe_circuits_of_earlier_sessions_are_removed_after_a_cut():
    world = ready_fibers(make_fabric(4, (2,)))
    for _ in range(2):
        world.reconnect("ocs1")
    world.ask()
    world.deliver()
    # The switch connects the circuits, and its session is cut before it removes them.
    world.work("ocs1")
    world.lose("ocs1")
    world.recover()
    world.assert_nothing_left()


def test_wait_for_link_lost_after_a_repeated_step_times_out():
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


def test_released_reservation_does_not_wait_for_a_link():
    world = measuring(4, [4])
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(LightAlarmRaised("ocs1", output_of(world, "r2")))
    (reservation,) = world.core.reservations
    assert reservation.change is not None
    world.handle(FinishRequested(key_of("a"), 0))
    world.run(PortChanged(2, 50, up=False, reason="no signal"))
    assert not list(world.core.reservations)
    assert world.core.view.holders == {}


def test_grant_replaced_by_foreign_circuit_is_revoked_despite_an_alarm():
    world = measuring(4, [4])
    world.granted(multicast("a", "r1h1", GROUP))
    switch, output = world.switches["ocs1"], output_of(world, "r2")
    ours = next(c for c in switch.held if c.output == output)
    world.lose("ocs1")
    switch.disconnect(ours)
    foreign = CrossConnect("ocs1", world.fabric.racks["r4"].optical_ports[0].input, output)
    switch.circuits[foreign.input] = output
    switch.foreign.add(foreign)
    world.come_back("ocs1")
    world.deliver()
    world.run(LightAlarmRaised("ocs1", output))
    assert "revoked" in world.kinds("a")
    assert foreign in switch.held


def test_dark_leaf_is_not_retried_after_refused_outputs():
    world = measuring(4, [4])
    world.granted(multicast("a", "r1h1", GROUP, size=10**12))
    switch = world.switches["ocs1"]
    # Unknown to the controller, foreign circuits use the open outputs.
    for number, rack in ((2, "r4"), (3, "r1")):
        switch.circuits[output(world, number)] = output_of(world, rack)
        switch.foreign.add(CrossConnect("ocs1", output(world, number), output_of(world, rack)))
    world.dead = {("in", output(world, 0))}
    world.run(LightAlarmRaised("ocs1", output_of(world, "r2")))
    assert world.kinds("a") == ["granted", "changed"]
    assert world.reason().startswith("no light at port:r2/50")
    assert world.served() == set(GROUP)


def test_core_withholds_the_grant_while_a_leaf_alarm_is_active():
    world = measuring(4, [4])
    world.submit(multicast("a", "r1h1", GROUP))
    world.work("ocs1")
    world.deliver()
    world.handle(LightAlarmRaised("ocs1", output_of(world, "r2")))
    for datapath in (1, 2, 3):
        world.work(datapath)
    world.deliver()
    assert world.kinds("a") == []
    world.settle()
    assert world.kinds("a") == ["granted"]
    assert quarantined(world) == {output_name(world, 0)}
    assert world.served() == set(GROUP)


def test_alarm_during_connection_ends_when_the_switch_sees_light():
    world = measuring(4, [4])
    world.submit(multicast("a", "r1h1", GROUP))
    world.run(LightAlarmRaised("ocs1", output_of(world, "r2")))
    assert world.kinds("a") == ["granted"]
    assert not quarantined(world)


def test_grant_of_static_tree_with_dark_leaf_reports_it():
    tree = StaticTree("t1", "r1", 60, None, {"r2": 60, "r3": 61}, frozenset())
    world = ready_world(replace(make_fabric(3, ports=0), static_trees={"t1": tree}))
    world.handle(PortChanged(2, 60, up=False, reason="no signal"))
    world.now += 60.0
    world.handle(TimePassed())
    world.granted(multicast("a", "r1h1", GROUP))
    assert world.reason().startswith("no light at port:r2/60")
    world.handle(PortChanged(2, 60, up=True))
    assert world.reason() is None


def test_restart_keeps_reserved_circuit_that_was_a_probe():
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

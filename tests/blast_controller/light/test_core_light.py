"""Light that is checked: dark leaves, lost links and alarms, and the hardware that is to blame."""

from __future__ import annotations

import pytest

from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import ElementQuarantined, LightAlarmRaised, PortChanged, TimePassed
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings
from tests.support.controller.core import key_of, multicast, rejected
from tests.support.controller.core_light import (
    GROUP,
    commanded_circuits,
    commanded_rules,
    measuring,
    output,
    output_name,
    output_of,
    quarantined,
)


@pytest.fixture
def world():
    """Return a world with a lit group over two of four outputs, and no commands since."""
    world = measuring(5, [4])
    world.granted(multicast("a", "r1h1", GROUP, size=10**12))
    world.commands.clear()
    return world


def test_next_attempt_avoids_a_dark_output():
    world = measuring(3, [4])
    world.dead = {("in", output(world, 0))}
    world.granted(multicast("a", "r1h1", GROUP))
    assert world.kinds("a") == ["granted"]
    assert quarantined(world) == {output_name(world, 0)}
    assert "no light toward port:r2/50" in world.core.view.quarantined[output_name(world, 0)]
    assert world.served() == set(GROUP)
    assert output(world, 0) not in {c.input for c in world.switches["ocs1"].held}


def test_receiver_dark_over_two_outputs_is_quarantined():
    world = measuring(4, [4])
    world.dead = {("out", output_of(world, "r2"))}
    world.serve(multicast("a", "r1h1", GROUP))
    assert quarantined(world) == {"port:r2/50"}
    part = world.part()
    assert part.state is PartState.FAILED
    assert part.reason.startswith("no light at port:r2/50. No optical switch has usable ports of all racks")
    assert "r2: no light over output:s1/" in part.reason
    assert world.kinds("a") == ["ended"]
    world.granted(multicast("b", "r1h1", ["r3h1", "r4h1"]))
    assert world.core.view.quarantined.keys() == {"port:r2/50"}


def test_receiver_dark_twice_over_a_cross_connect_is_quarantined():
    world = measuring(2, [])
    world.dead = {("out", output_of(world, "r2"))}
    world.serve(multicast("a", "r1h1", ["r2h1"]))
    assert world.part().state is PartState.FAILED
    assert quarantined(world) == {"port:r2/50"}
    lightings = [c for c in world.commands if isinstance(c, SetCircuits) and c.changes[0].connect]
    assert len(lightings) == 2


def test_alarm_moves_only_the_dark_branch(world):
    (old,) = [c for c in world.switches["ocs1"].held if c.output == output_of(world, "r2")]
    world.after_operation = lambda: "r3h1" in world.served() or pytest.fail("the other receiver was cut off")
    world.handle(LightAlarmRaised("ocs1", old.output, "loss of light"))
    assert next(iter(world.core.reservations)).state.value == "changing"
    world.settle()
    removed, added = commanded_circuits(world)
    assert removed == {old}
    assert [c.output for c in added] == [old.output]
    assert not {c.input for c in added} & {output(world, 0), output(world, 1)}
    assert commanded_rules(world) == []
    assert world.served() == set(GROUP)
    assert world.kinds("a") == ["granted", "changed"]
    assert world.part().state is PartState.ACTIVE
    assert world.reason() is None
    assert quarantined(world) == {f"output:s1/{old.input}"}


def test_status_reports_a_dark_leaf_without_a_free_output():
    world = measuring(3, [2])
    world.granted(multicast("a", "r1h1", GROUP))
    world.commands.clear()
    world.run(LightAlarmRaised("ocs1", output_of(world, "r2")))
    assert world.commands == []
    assert world.reason() == "no light at port:r2/50, and no free splitter output to replace it"
    assert world.part().state is PartState.ACTIVE
    assert world.served() == set(GROUP), "the switch may be wrong: no circuit is removed"
    world.restart()
    assert world.reason() == "no light at port:r2/50, and no free splitter output to replace it", (
        "the journal knows it, too"
    )


def test_repair_skips_free_outputs_of_a_quarantined_splitter():
    """All leaves behind a splitter are dark: its open outputs are dark as well."""
    world = measuring(3, [4])
    world.granted(multicast("a", "r1h1", GROUP))
    world.reconnect("ocs1", forgets=lambda circuit: True)
    world.dead = {("in", n) for n in world.fabric.splitters["s1"].outputs}
    world.commands.clear()
    world.settle()
    assert quarantined(world) == {"splitter:s1"}
    assert commanded_circuits(world)[0] == set()
    assert "no free splitter output" in world.reason()


def test_branch_dark_over_two_outputs_quarantines_its_receiver(world):
    (old,) = [c for c in world.switches["ocs1"].held if c.output == output_of(world, "r2")]
    world.dead = {("out", old.output)}
    world.after_operation = lambda: "r3h1" in world.served() or pytest.fail("the other receiver was cut off")
    world.run(LightAlarmRaised("ocs1", old.output))
    assert quarantined(world) == {"port:r2/50"}
    assert world.switches["ocs1"].held >= {old}
    assert world.part().state is PartState.ACTIVE
    assert "port:r2/50" in world.reason()
    world.commands.clear()
    world.run(LightAlarmRaised("ocs1", old.output))
    assert commanded_circuits(world) == (set(), set()), "no further attempt: the receiver itself is to blame"
    assert "port:r2/50" in world.reason()


def test_alarm_during_a_change_is_handled_after_it(world):
    """The switch sends the alarm once, and the branch is not part of the change."""
    world.extend("a", add_receivers=("r4h1",))
    world.handle(LightAlarmRaised("ocs1", output_of(world, "r2")))
    assert world.kinds("a") == ["granted"]
    world.settle()
    assert world.kinds("a") == ["granted", "changed", "changed"]
    assert world.served() == {*GROUP, "r4h1"}
    assert output_name(world, 0) in quarantined(world)


def test_alarm_caused_by_a_repair_is_ignored(world):
    """While a leaf is moved it sees no light for a moment."""
    world.handle(LightAlarmRaised("ocs1", output_of(world, "r2")))
    world.run(LightAlarmRaised("ocs1", output_of(world, "r2")))
    assert world.kinds("a") == ["granted", "changed"]


def test_diagnosis_does_not_lift_a_quarantine_of_the_operator(world):
    world.handle(LightAlarmRaised("ocs1", output_of(world, "r2")))
    world.handle(ElementQuarantined(output_name(world, 0), "dirty"))
    world.dead = {("out", output_of(world, "r2"))}
    world.settle()
    assert world.core.view.quarantined[output_name(world, 0)] == "dirty"
    assert "port:r2/50" in quarantined(world)


def test_extension_with_a_dark_new_leaf_is_undone(world):
    before = {name: world.device(name).held for name in world.devices}
    holder = dict(world.core.view.holders)
    world.after_operation = lambda: set(GROUP) <= world.served() or pytest.fail("a staying receiver was cut off")
    world.dead = {("in", output(world, 2))}
    world.extend("a", add_receivers=("r4h1",))
    world.settle()
    assert {name: world.device(name).held for name in world.devices} == before
    assert world.core.view.holders == holder
    event = world.core.request(key_of("a")).events[-1]
    assert (event.kind.value, event.reason) == ("changed", "no light at the new leaves")
    assert event.grant.receivers == tuple(GROUP)
    assert world.reason() is None, "all granted receivers are lit"
    assert quarantined(world) == {output_name(world, 2)}


def test_quarantined_outputs_do_not_count_as_free(world):
    for number in (2, 3):
        world.handle(ElementQuarantined(output_name(world, number), "dirty"))
    with rejected("no_free_output"):
        world.extend("a", add_receivers=("r4h1",))


def link_world(**settings):
    """Return a world whose ToRs report that no optical port has a link."""
    world = measuring(4, [4], settings=CoreSettings(**settings))
    for datapath in (1, 2, 3, 4):
        world.handle(PortChanged(datapath, 50, up=False, reason="no signal"))
    world.advance(world.core.settings.flap_tolerance)
    return world


def test_grant_waits_for_the_links_of_its_leaves():
    world = link_world()
    world.serve(multicast("a", "r1h1", GROUP))
    assert world.part().state is PartState.CONFIGURING
    world.handle(PortChanged(2, 50, up=True))
    assert world.kinds("a") == []
    world.handle(PortChanged(3, 50, up=True))
    assert world.kinds("a") == ["granted"]


def test_link_down_past_link_wait_counts_as_a_dark_leaf():
    world = link_world(link_wait=3.0)
    world.serve(multicast("a", "r1h1", GROUP))
    world.handle(PortChanged(3, 50, up=True))
    assert world.core.next_timer() == world.now + 3.0
    world.advance(2.9)
    assert quarantined(world) == set()
    world.now += 0.1
    world.handle(TimePassed())
    assert quarantined(world) == {output_name(world, 0)}
    assert world.part().state is PartState.PENDING
    assert "no light at port:r2/50" in world.reason()
    world.settle()
    world.run(PortChanged(2, 50, up=True))
    assert world.kinds("a") == ["granted"]


def test_each_attempt_has_its_own_link_wait():
    world = link_world(link_wait=3.0)
    world.serve(multicast("a", "r1h1", GROUP))
    world.now += 1.0
    for datapath in (2, 3):
        world.handle(PortChanged(datapath, 50, up=True))
    world.extend("a", add_receivers=("r4h1",))
    world.settle()
    world.advance(2.5)
    assert world.kinds("a") == ["granted"], "the wait of the grant is over, not that of the extension"
    world.advance(0.5)
    assert world.kinds("a") == ["granted", "changed"]
    assert world.core.request(key_of("a")).events[-1].reason == "no light at the new leaves"
    assert world.served() == set(GROUP)


def test_flap_tolerance_starts_again_for_each_flap(world):
    """A receiver that locks loses its link several times; each time has the whole tolerance."""
    for _ in range(5):
        world.handle(PortChanged(2, 50, up=False))
        world.advance(0.6)
        world.handle(PortChanged(2, 50, up=True))
        world.advance(0.1)
    world.handle(PortChanged(2, 50, up=False))
    world.advance(0.9)
    assert world.commands == []
    world.advance(0.1)
    assert commanded_circuits(world)[0] == {CrossConnect("ocs1", output(world, 0), output_of(world, "r2"))}


def test_repeated_link_loss_counts_from_the_first_report(world):
    world.handle(PortChanged(2, 50, up=False))
    world.advance(0.9)
    world.handle(PortChanged(2, 50, up=False))
    world.advance(0.1)
    assert commanded_circuits(world)[0] == {CrossConnect("ocs1", output(world, 0), output_of(world, "r2"))}


def test_lost_link_is_repaired_over_another_output(world):
    world.after_operation = lambda: "r3h1" in world.served() or pytest.fail("the other receiver was cut off")
    world.handle(PortChanged(2, 50, up=False))
    world.advance(1.0)
    assert world.kinds("a") == ["granted"], "the change waits for the link"
    world.handle(PortChanged(2, 50, up=True))
    assert world.kinds("a") == ["granted", "changed"]
    assert commanded_rules(world) == []
    removed, added = commanded_circuits(world)
    assert len(removed) == len(added) == 1
    assert world.served() == set(GROUP)


def test_tree_with_an_unrepairable_link_can_still_be_changed(world):
    world.handle(PortChanged(2, 50, up=False))
    world.advance(1.0)
    world.advance(world.core.settings.link_wait)
    assert next(iter(world.core.reservations)).state.value == "lit"
    assert quarantined(world) == {"port:r2/50"}
    assert "no light at port:r2/50" in world.reason()
    world.commands.clear()
    world.advance(20.0)
    assert commanded_circuits(world) == (set(), set()), "the repair is not retried"
    world.extend("a", remove_receivers=("r2h1",), add_receivers=("r4h1",))
    world.settle()
    assert world.served() == {"r3h1", "r4h1"}
    assert world.reason() is None


def test_grant_waits_again_for_a_link_lost_before_it():
    """A receiver that locks flaps."""
    world = link_world()
    world.submit(multicast("a", "r1h1", GROUP, size=10**12))
    for datapath in (2, 3):
        world.handle(PortChanged(datapath, 50, up=True))
    world.handle(PortChanged(2, 50, up=False))
    world.advance(1.5)
    assert world.kinds("a") == []
    world.handle(PortChanged(2, 50, up=True))
    assert world.kinds("a") == ["granted"]
    assert commanded_circuits(world)[0] == set()
    assert quarantined(world) == set()

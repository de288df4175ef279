"""Light that is checked: dark leaves, lost links and alarms, and the hardware that is to blame."""

from __future__ import annotations

import pytest

from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.errors import Rejected
from blast_controller.core.model.events import (
    ElementQuarantined,
    ExtensionAsked,
    FinishAsked,
    LightAlarm,
)
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension
from tests.support.core import key_of, multicast
from tests.support.measuring import (
    GROUP,
    circuits_told,
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


# ------------------------------------------------------------------------------------------- before a grant


def test_a_dark_leg_is_avoided_in_the_next_attempt():
    world = measuring(3, [4])
    world.dead = {("in", leg(world, 0))}
    world.granted(multicast("a", "r1h1", GROUP))
    assert world.kinds("a") == ["granted"]
    assert quarantined(world) == {leg_name(world, 0)}
    assert "no light towards port:r2/50" in world.core.view.quarantined[leg_name(world, 0)]
    assert served(world) == set(GROUP)
    assert leg(world, 0) not in {c.input for c in world.switches["ocs1"].held}


def test_a_receiver_that_is_dark_over_two_legs_is_to_blame_and_the_legs_are_not():
    world = measuring(4, [4])
    world.dead = {("out", output_of(world, "r2"))}
    world.submit(multicast("a", "r1h1", GROUP))
    world.settle()
    assert quarantined(world) == {"port:r2/50"}
    part = part_of(world)
    assert part.state is PartState.FAILED
    assert part.reason.startswith("no light at port:r2/50. No optical switch has usable ports of all the racks")
    assert "r2: no light over leg:s1/" in part.reason
    assert world.kinds("a") == ["ended"]
    world.granted(multicast("b", "r1h1", ["r3h1", "r4h1"]))
    assert world.core.view.quarantined.keys() == {"port:r2/50"}


def test_another_port_of_the_rack_serves_when_one_is_to_blame():
    world = measuring(3, [4], ports=2)
    world.dead = {("out", output_of(world, "r2"))}
    world.granted(multicast("a", "r1h1", GROUP))
    assert quarantined(world) == {"port:r2/50"}
    assert served(world) == set(GROUP)


def test_a_splitter_that_is_dark_as_a_whole_is_to_blame():
    world = measuring(3, [4, 4])
    world.dead = {("in", n) for n in world.fabric.splitters["s1"].outputs}
    world.granted(multicast("a", "r1h1", GROUP))
    assert quarantined(world) == {"splitter:s1"}
    assert served(world) == set(GROUP)
    assert "splitter:s2" in world.core.view.holders


def test_without_another_splitter_it_is_given_up_with_the_sentence():
    world = measuring(3, [4])
    world.dead = {("in", n) for n in world.fabric.splitters["s1"].outputs}
    world.submit(multicast("a", "r1h1", GROUP))
    world.settle()
    part = part_of(world)
    assert part.state is PartState.FAILED
    assert "no light at port:r2/50, port:r3/50" in part.reason
    assert "the splitters of this fabric can join at most 2" in part.reason
    assert world.core.view.holders == {}
    assert not world.switches["ocs1"].held


def test_a_plain_cross_connect_dark_twice_condemns_the_receiver():
    world = measuring(2, [])
    world.dead = {("out", output_of(world, "r2"))}
    world.submit(multicast("a", "r1h1", ["r2h1"]))
    world.settle()
    assert part_of(world).state is PartState.FAILED
    assert quarantined(world) == {"port:r2/50"}
    lightings = [c for c in world.commands if isinstance(c, SetCircuits) and c.changes[0].connect]
    assert len(lightings) == 2


def test_a_receiver_that_has_seen_light_is_not_blamed_for_what_was_before():
    world = measuring(3, [4, 4])
    world.dead = {("in", leg(world, 0))}
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    world.dead = {("in", leg(world, 1))}
    world.granted(multicast("b", "r1h1", ["r2h1", "r3h1"]))
    assert not [element for element in quarantined(world) if element.startswith("port:")]


def test_dark_and_refused_is_a_failure_of_the_device():
    """What a device refuses says nothing about light."""
    world = measuring(3, [4])
    world.dead = {("in", leg(world, 0))}
    world.submit(multicast("a", "r1h1", GROUP))
    world.work(2, denied={0})
    world.work("ocs1")
    for name in (1, 3):
        world.work(name)
    world.deliver()
    assert part_of(world).state is PartState.PENDING
    assert "denied" in reason(world)
    world.settle()
    assert world.kinds("a") == ["granted"]


def test_a_transmitter_that_is_dark_over_two_splitters_is_to_blame_and_the_splitters_are_not():
    world = measuring(5, [4, 4, 4])
    world.dead = {("in", world.fabric.racks["r1"].optical_ports[0].input)}
    world.submit(multicast("a", "r1h1", GROUP))
    world.settle()
    assert quarantined(world) == {"port:r1/50"}
    assert "r1: no light over splitter:s1 and splitter:s2" in part_of(world).reason
    world.granted(multicast("b", "r4h1", GROUP))


# ------------------------------------------------------------------------------------------------ alarms


def test_an_alarm_moves_just_that_branch(world):
    (old,) = [c for c in world.switches["ocs1"].held if c.output == output_of(world, "r2")]
    world.after_operation = lambda: "r3h1" in served(world) or pytest.fail("the other receiver was cut off")
    world.handle(LightAlarm("ocs1", old.output, "loss of light"))
    assert next(iter(world.core.reservations)).state.value == "changing"
    world.settle()
    gone, come = circuits_told(world)
    assert gone == {old}
    assert [c.output for c in come] == [old.output]
    assert not {c.input for c in come} & {leg(world, 0), leg(world, 1)}
    assert rules_told(world) == []
    assert served(world) == set(GROUP)
    assert world.kinds("a") == ["granted", "changed"]
    assert part_of(world).state is PartState.ACTIVE
    assert reason(world) is None
    assert quarantined(world) == {f"leg:s1/{old.input}"}


@pytest.mark.parametrize("output", [4, 99])
def test_an_alarm_at_an_output_that_nobody_uses_changes_nothing(world, output):
    assert world.handle(LightAlarm("ocs1", output)) == []
    assert quarantined(world) == set()


def test_without_an_open_leg_the_status_says_so():
    world = measuring(3, [2])
    world.granted(multicast("a", "r1h1", GROUP))
    world.commands.clear()
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    world.settle()
    assert world.commands == []
    assert reason(world) == "no light at port:r2/50, and no open leg to lead it there"
    assert part_of(world).state is PartState.ACTIVE
    assert served(world) == set(GROUP), "the switch may be wrong: nothing is taken away"
    world.restart()
    assert reason(world) == "no light at port:r2/50, and no open leg to lead it there", "the journal knows it, too"


def test_a_repair_that_succeeds_takes_the_sentence_back():
    world = measuring(3, [2])
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    world.handle(ExtensionAsked(key_of("a"), Extension(remove_receivers=("r3h1",))))
    world.settle()
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    world.settle()
    assert world.kinds("a") == ["granted", "changed", "changed"]
    assert reason(world) is None


def test_open_legs_of_a_condemned_splitter_are_no_way_out():
    """All leaves behind a splitter are dark: its open legs are dark as well."""
    world = measuring(3, [4])
    world.granted(multicast("a", "r1h1", GROUP))
    world.lose("ocs1")
    world.come_back("ocs1", forgets=lambda circuit: True)
    world.dead = {("in", n) for n in world.fabric.splitters["s1"].outputs}
    world.commands.clear()
    world.settle()
    assert quarantined(world) == {"splitter:s1"}
    assert circuits_told(world)[0] == set()
    assert "no open leg" in reason(world)


def test_a_branch_that_stays_dark_over_another_leg_is_left_alone_with_its_receiver_to_blame(world):
    (old,) = [c for c in world.switches["ocs1"].held if c.output == output_of(world, "r2")]
    world.dead = {("out", old.output)}
    world.after_operation = lambda: "r3h1" in served(world) or pytest.fail("the other receiver was cut off")
    world.handle(LightAlarm("ocs1", old.output))
    world.settle()
    assert quarantined(world) == {"port:r2/50"}
    assert world.switches["ocs1"].held >= {old}
    assert part_of(world).state is PartState.ACTIVE
    assert "port:r2/50" in reason(world)
    world.commands.clear()
    world.handle(LightAlarm("ocs1", old.output))
    world.settle()
    assert circuits_told(world) == (set(), set()), "no further attempt: the receiver itself is to blame"
    assert "port:r2/50" in reason(world)


def test_a_receiver_that_a_repair_has_lit_again_is_proven_good(world):
    """A second alarm, much later and over the new leg, is again the leg's fault first."""
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    world.settle()
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    world.settle()
    assert "port:r2/50" not in quarantined(world)
    assert world.kinds("a") == ["granted", "changed", "changed"]
    assert served(world) == set(GROUP)


def test_an_alarm_during_a_change_is_heeded_when_that_is_done(world):
    """The switch tells it once; the branch is not part of the change."""
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    assert world.kinds("a") == ["granted"]
    world.settle()
    assert world.kinds("a") == ["granted", "changed", "changed"]
    assert served(world) == {*GROUP, "r4h1"}
    assert leg_name(world, 0) in quarantined(world)


def test_the_alarm_that_a_repair_itself_causes_is_ignored(world):
    """While a leaf is moved it sees no light for a moment."""
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    world.settle()
    assert world.kinds("a") == ["granted", "changed"]


def test_what_is_given_back_to_a_switch_and_stays_dark_is_repaired(world):
    world.lose("ocs1")
    world.come_back("ocs1", forgets=lambda circuit: circuit == leg(world, 0))
    world.dead = {("in", leg(world, 0))}
    world.settle()
    assert quarantined(world) == {leg_name(world, 0)}
    assert world.kinds("a") == ["granted", "changed"]
    assert served(world) == set(GROUP)


def test_a_quarantine_of_the_operator_is_not_lifted_by_a_finding(world):
    world.handle(LightAlarm("ocs1", output_of(world, "r2")))
    world.handle(ElementQuarantined(leg_name(world, 0), "dirty"))
    world.dead = {("out", output_of(world, "r2"))}
    world.settle()
    assert world.core.view.quarantined[leg_name(world, 0)] == "dirty"
    assert "port:r2/50" in quarantined(world)


# -------------------------------------------------------------------------------------------- extensions


def test_no_light_at_a_new_leaf_refuses_the_extension_and_keeps_the_old_state(world):
    before = {name: world.device(name).held for name in world.devices}
    holder = dict(world.core.view.holders)
    world.after_operation = lambda: set(GROUP) <= served(world) or pytest.fail("a receiver who stays was cut off")
    world.dead = {("in", leg(world, 2))}
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.settle()
    assert {name: world.device(name).held for name in world.devices} == before
    assert world.core.view.holders == holder
    event = world.core.request(key_of("a")).events[-1]
    assert (event.kind.value, event.reason) == ("changed", "no light arrived at the new leaves")
    assert event.grant.receivers == tuple(GROUP)
    assert reason(world) is None, "nobody who was promised light lacks it"
    assert quarantined(world) == {leg_name(world, 2)}


def test_the_next_extension_takes_a_leg_that_is_not_dark(world):
    world.dead = {("in", leg(world, 2))}
    for _ in range(2):
        world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
        world.settle()
    assert served(world) == {*GROUP, "r4h1"}
    assert CrossConnect("ocs1", leg(world, 3), output_of(world, "r4")) in world.switches["ocs1"].held


def test_quarantined_legs_do_not_count_as_open(world):
    for number in (2, 3):
        world.handle(ElementQuarantined(leg_name(world, number), "dirty"))
    with pytest.raises(Rejected) as refusal:
        world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    assert refusal.value.code == "no_open_leg"

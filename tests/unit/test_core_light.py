"""Light that is checked: dark leaves, lost links and alarms, and the hardware that is to blame."""

from __future__ import annotations

import pytest

from blast_controller.core.commands import SetCircuits, SetForwarding
from blast_controller.core.errors import Rejected
from blast_controller.core.events import (
    ElementQuarantined,
    ExtensionAsked,
    FinishAsked,
    LightAlarm,
    PortChanged,
    StepConfirmed,
    StepDark,
    StepFailed,
    Tick,
)
from blast_controller.core.fabric import CrossConnect
from blast_controller.core.part_states import PartState
from blast_controller.core.requests import Extension
from blast_controller.core.settings import CoreSettings
from tests.support.core import World, key_of, make_fabric, multicast

GROUP = ["r2h1", "r3h1"]


class MeasuringWorld(World):
    """Its optical switches measure power: `dead` are the inputs and outputs, as ("in" or "out", number), that fibres
    behind are broken at."""

    def __init__(self, fabric, settings=None):
        super().__init__(fabric, settings)
        self.dead = set()

    def is_dark(self, output):
        feed = next((c.input for c in self.switches["ocs1"].held if c.output == output), None)
        if feed is None or ("out", output) in self.dead or ("in", feed) in self.dead:
            return True
        splitter = next((s for s in self.fabric.splitters.values() if feed in s.outputs), None)
        return splitter is not None and self.is_dark(splitter.input)

    def _answer(self, name, command, refusals, reply):
        for position, change in enumerate(command.changes):
            dark = frozenset(o for o in getattr(change, "leaves", ()) if self.is_dark(o))
            if refusals.get(position):
                self.post(StepFailed(name, change.reservation, change.step, "denied"))
            elif dark:
                self.post(StepDark(name, change.reservation, change.step, dark))
            else:
                self.post(StepConfirmed(name, change.reservation, change.step, 0.01))


def measuring(racks, splitters, dead=(), settings=None, **more):
    world = MeasuringWorld(make_fabric(racks, splitters, **more), settings)
    world.dead = set(dead)
    world.connect_all()
    world.commands.clear()
    return world


def part_of(world, key="a"):
    return world.core.request(key_of(key)).parts[0]


def reason(world, key="a"):
    return world.core.reason(world.core.request(key_of(key)), part_of(world, key), world.now)


def served(world, key="a"):
    return world.receivers_of(world.fabric.hosts["r1h1"], part_of(world, key).grant.group_address)


def quarantined(world):
    return set(world.core.ledger.quarantined)


def leg(world, number, splitter="s1"):
    """The switch input that a splitter's leg enters at."""
    return world.fabric.splitters[splitter].outputs[number]


def leg_name(world, number, splitter="s1"):
    return f"leg:{splitter}/{leg(world, number, splitter)}"


def output_of(world, rack):
    return world.fabric.racks[rack].optical_ports[0].output


def later(world, seconds):
    world.now += seconds
    world.handle(Tick())
    world.settle()


def circuits_told(world):
    """What switches were told: (disconnected, connected)."""
    changes = [change for c in world.commands if isinstance(c, SetCircuits) for change in c.changes]
    return {c for x in changes for c in x.disconnect}, {c for x in changes for c in x.connect}


def rules_told(world):
    return [c for c in world.commands if isinstance(c, SetForwarding)]


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
    assert "no light towards port:r2/50" in world.core.ledger.quarantined[leg_name(world, 0)]
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
    assert world.core.ledger.quarantined.keys() == {"port:r2/50"}


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
    assert "splitter:s2" in world.core.ledger.holder


def test_without_another_splitter_it_is_given_up_with_the_sentence():
    world = measuring(3, [4])
    world.dead = {("in", n) for n in world.fabric.splitters["s1"].outputs}
    world.submit(multicast("a", "r1h1", GROUP))
    world.settle()
    part = part_of(world)
    assert part.state is PartState.FAILED
    assert "no light at port:r2/50, port:r3/50" in part.reason
    assert "the splitters of this fabric can join at most 2" in part.reason
    assert world.core.ledger.holder == {}
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
    assert world.core.ledger.quarantined[leg_name(world, 0)] == "dirty"
    assert "port:r2/50" in quarantined(world)


# -------------------------------------------------------------------------------------------- extensions


def test_no_light_at_a_new_leaf_refuses_the_extension_and_keeps_the_old_state(world):
    before = {name: world.device(name).held for name in world.devices}
    holder = dict(world.core.ledger.holder)
    world.after_operation = lambda: set(GROUP) <= served(world) or pytest.fail("a receiver who stays was cut off")
    world.dead = {("in", leg(world, 2))}
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.settle()
    assert {name: world.device(name).held for name in world.devices} == before
    assert world.core.ledger.holder == holder
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


# ------------------------------------------------------------------------------------------------ links


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

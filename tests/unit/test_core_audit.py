"""Audits: every device is read and compared with what is wanted of it, and repaired unless it is a dry run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.auditor import AuditReport
from blast_controller.core.model.commands import Forward, ReadDevice, SetCircuits, SetForwarding
from blast_controller.core.model.errors import Rejected
from blast_controller.core.model.events import (
    AuditAsked,
    CircuitsObserved,
    ExtensionAsked,
    FinishAsked,
    SettingsChanged,
    TableObserved,
    Tick,
    WithdrawAsked,
)
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension
from blast_controller.core.model.settings import CoreSettings
from tests.support.core import World, key_of, make_fabric, multicast, ready_world

GROUP = ["r2h1", "r3h1"]
EVERY = ("switch:ocs1", *(f"tor:{number:016x}" for number in (1, 2, 3, 4)))
QUIET = AuditReport(dry_run=False, commands=(), foreign=(), compared=EVERY)


@pytest.fixture
def world():
    """A lit group on a 1:4 splitter."""
    world = ready_world(make_fabric(4, [4]))
    world.granted(multicast("a", "r1h1", GROUP, size=10**12))
    world.commands.clear()
    return world


def part_of(world, key="a"):
    return world.core.request(key_of(key)).parts[0]


def served(world, key="a"):
    return world.receivers_of(world.fabric.hosts["r1h1"], part_of(world, key).grant.group_address)


def audit(world, dry_run=False):
    """The report of a whole round."""
    world.handle(AuditAsked(dry_run))
    number = world.core.audit_number
    world.settle()
    return world.announced[number]


def without(datapath):
    """The report of a round in which a ToR went away."""
    name = f"tor:{datapath:016x}"
    compared = tuple(other for other in EVERY if other != name)
    return replace(QUIET, compared=compared, not_compared=((name, "disconnected before it answered: connection lost"),))


def told_devices(world):
    return [c for c in world.commands if isinstance(c, SetCircuits | SetForwarding)]


def spoil(world):
    """By hand: a circuit is gone, a rule is gone, a rule leads elsewhere, and a rule of ours is left over."""
    switch = world.switches["ocs1"]
    del switch.circuits[1]
    world.tors[2].rules.clear()
    ((key, (_, number)),) = world.tors[3].rules.items()
    world.tors[3].rules[key] = ((7,), number)
    world.tors[4].rules[50, "10.0.1.1", "239.77.0.9"] = ((1,), 99)


def contents(world):
    return {name: world.device(name).held for name in world.devices}


# ------------------------------------------------------------------------------------------------ on demand


def test_every_device_is_asked_once(world):
    commands = world.handle(AuditAsked(dry_run=False))
    assert commands == [ReadDevice(name) for name in ("ocs1", 1, 2, 3, 4)]


def test_an_audit_of_what_is_right_finds_nothing(world):
    assert audit(world) == QUIET
    assert world.commands == []


def test_a_dry_run_tells_what_it_would_do_and_does_nothing(world):
    spoil(world)
    before = contents(world)
    report = audit(world, dry_run=True)
    assert report.dry_run
    group = part_of(world).grant.group_address
    assert sorted(report.commands) == [
        "reservation 1: add the rule for 239.77.0.1 from port 50 to 1 on 0000000000000002",
        f"reservation 1: add the rule for {group} from port 50 to 1 on 0000000000000003",
        "reservation 1: connect 1 to 5 on ocs1",
        "reservation 99: remove the rule for 239.77.0.9 from port 50 to 1 on 0000000000000004",
    ]
    assert contents(world) == before
    assert world.commands == []


def test_an_audit_does_what_the_dry_run_told_and_the_next_one_finds_nothing(world):
    wanted = contents(world)
    spoil(world)
    planned = audit(world, dry_run=True)
    done = audit(world)
    assert sorted(done.commands) == sorted(planned.commands)
    assert contents(world) == wanted
    assert served(world) == set(GROUP)
    assert world.kinds("a") == ["granted"]
    world.commands.clear()
    assert audit(world) == QUIET
    assert world.commands == []


def test_only_what_differs_is_touched(world):
    del world.switches["ocs1"].circuits[1]
    audit(world)
    (command,) = told_devices(world)
    (change,) = command.changes
    assert (change.disconnect, change.connect) == ((), (CrossConnect("ocs1", 1, 5),))


def test_the_leftovers_of_a_reservation_that_nobody_knows_are_removed(world):
    rule = Forward(50, "10.0.1.1", "239.77.0.9", (1,))
    world.tors[4].add(rule, 99)
    audit(world)
    assert not world.tors[4].rules
    (command,) = told_devices(world)
    assert command.datapath == 4
    assert command.changes[0].remove == (rule,)


def test_a_repair_that_is_refused_revokes(world):
    del world.switches["ocs1"].circuits[1]
    world.handle(AuditAsked(dry_run=False))
    for name in world.devices:
        world.work(name)
    world.deliver()
    world.work("ocs1", denied={0})
    world.settle()
    assert world.kinds("a") == ["granted", "revoked", "granted"]
    assert served(world) == set(GROUP)


def test_one_round_at_a_time(world):
    world.handle(AuditAsked(dry_run=True))
    with pytest.raises(Rejected) as refusal:
        world.handle(AuditAsked(dry_run=False))
    assert refusal.value.code == "busy"
    world.settle()
    assert audit(world) == QUIET


def test_readings_that_nobody_asked_for_change_nothing(world):
    assert world.handle(CircuitsObserved("ocs1", frozenset())) == []
    assert world.handle(TableObserved(2, frozenset(), 0)) == []
    world.handle(AuditAsked(dry_run=False))
    world.settle()
    assert world.handle(CircuitsObserved("ocs1", frozenset())) == [], "the round is over"


# ----------------------------------------------------------------------------------------------- not looked at


def test_a_device_that_is_away_is_named_and_not_said_to_hold_anything(world):
    world.lose("ocs1")
    world.lose(3)
    world.deliver()
    report = audit(world, dry_run=True)
    assert report.compared == tuple(f"tor:{number:016x}" for number in (1, 2, 4))
    assert [what for what, _ in report.not_compared] == ["switch:ocs1", "tor:0000000000000003"]
    assert all(reason.startswith("disconnected: ") for _, reason in report.not_compared)


def test_with_every_device_away_nothing_was_compared():
    world = World(make_fabric(2, [4]))
    report = audit(world)
    assert report.compared == ()
    assert dict(report.not_compared) == dict.fromkeys(EVERY[:3], "disconnected: not connected yet")


def test_a_device_that_goes_away_while_it_is_read_is_named(world):
    world.handle(AuditAsked(dry_run=True))
    number = world.core.audit_number
    world.lose(2)
    world.settle()
    report = world.announced[number]
    assert EVERY[2] not in report.compared and len(report.compared) == 4
    ((what, reason),) = report.not_compared
    assert what == EVERY[2] and reason.startswith("disconnected before it answered: ")


def test_who_is_waited_for_is_told(world):
    assert world.core.audit_waits_for == []
    world.handle(AuditAsked(dry_run=True))
    world.work(2)
    world.deliver()
    assert world.core.audit_waits_for == sorted({*EVERY} - {EVERY[2]})


# ------------------------------------------------------------------------------------------------ foreign


def test_foreign_circuits_and_rules_are_reported_and_left_alone(world):
    switch, foreign = world.switches["ocs1"], CrossConnect("ocs1", 40, 41)
    switch.circuits[40] = 41
    switch.foreign.add(foreign)
    world.tors[2].foreign_rules = 3
    for dry_run in (True, False):
        report = audit(world, dry_run)
        assert report.commands == ()
        assert set(report.foreign) == {"40 to 41 on ocs1", "3 rules on 0000000000000002"}
    assert foreign in switch.held
    assert world.commands == []


def test_a_foreign_circuit_on_free_hardware_is_planned_around(world):
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    switch, foreign = world.switches["ocs1"], CrossConnect("ocs1", 40, 2)
    switch.circuits[40] = 2
    switch.foreign.add(foreign)
    audit(world)
    with pytest.raises(Rejected, match="r2: occupied by the cross-connect 40 to 2 on ocs1, which Blast did not make"):
        world.submit(multicast("b", "r1h1", ["r2h1"]))


def test_whoever_waited_is_served_when_an_audit_finds_the_foreign_circuit_gone():
    world = ready_world(make_fabric(3, [4]))
    world.submit(multicast("a", "r1h1", GROUP))
    switch, foreign = world.switches["ocs1"], CrossConnect("ocs1", 40, 2)
    world.handle(WithdrawAsked(key_of("a")))
    world.settle()
    world.granted(multicast("b", "r1h1", ["r3h1"]))
    world.submit(multicast("c", "r1h1", GROUP))
    switch.circuits[40] = 2
    switch.foreign.add(foreign)
    audit(world)
    world.handle(FinishAsked(key_of("b"), 0))
    world.settle()
    assert part_of(world, "c").state is PartState.PENDING
    switch.foreign.clear()
    del switch.circuits[40]
    assert audit(world, dry_run=True).commands == ()
    assert part_of(world, "c").state is PartState.PENDING, "a dry run sets nothing going"
    audit(world)
    assert part_of(world, "c").state is PartState.ACTIVE


def test_a_circuit_between_our_ports_that_we_did_not_make_is_foreign(world):
    """Ours is the exact pair that the journal has, whatever the ports."""
    switch = world.switches["ocs1"]
    foreign = CrossConnect("ocs1", 4, 4)
    switch.circuits[4] = 4
    switch.foreign.add(foreign)
    assert audit(world).foreign == ("4 to 4 on ocs1",)
    assert foreign in switch.held


# -------------------------------------------------------------------------------------------- in movement


def test_a_reading_that_is_older_than_what_was_told_since_is_taken_again(world):
    world.handle(AuditAsked(dry_run=False))
    before = world.switches["ocs1"].held
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.commands.clear()
    assert world.handle(CircuitsObserved("ocs1", before)) == [ReadDevice("ocs1")]
    world.settle()
    # The reading that was under way when the change was asked for comes first.
    moving = (("reservation 1 on switch:ocs1", "a change of it is on its way"),)
    assert world.announced[world.core.audit_number] == replace(QUIET, not_compared=moving)
    assert served(world) == {*GROUP, "r4h1"}
    assert world.kinds("a") == ["granted", "changed"]


def test_what_a_device_has_still_to_answer_for_is_no_difference(world):
    world.handle(FinishAsked(key_of("a"), 0))
    report = audit(world)
    assert report == QUIET
    assert not world.switches["ocs1"].held
    assert world.core.view.holders == {}


def test_a_device_that_goes_away_does_not_hold_up_the_round(world):
    world.handle(AuditAsked(dry_run=False))
    number = world.core.audit_number
    for name in world.devices:
        if name != 2:
            world.work(name)
    world.deliver()
    assert number not in world.announced
    world.lose(2)
    world.deliver()
    assert world.announced[number] == without(2)
    world.come_back(2, forgets=lambda rule: True)
    world.settle()
    assert served(world) == set(GROUP), "it is looked at when it returns"


def test_the_answer_of_a_device_that_has_been_away_meanwhile_is_not_taken(world):
    world.handle(AuditAsked(dry_run=False))
    world.lose(2)
    world.deliver()
    world.come_back(2)
    world.deliver()
    assert world.handle(TableObserved(2, frozenset(), 0)) == []
    world.settle()
    assert world.announced[world.core.audit_number] == without(2)


def test_devices_that_are_away_are_not_asked(world):
    for name in ("ocs1", 1, 2, 3):
        world.lose(name)
    world.deliver()
    assert world.handle(AuditAsked(dry_run=False)) == [ReadDevice(4)]
    world.lose(4)
    world.deliver()
    assert world.announced[1].compared == ()
    world.handle(AuditAsked(dry_run=False))
    assert world.announced[2].compared == (), "a round without devices is over at once"


# ------------------------------------------------------------------------------------------------- by time


def tick(world, seconds):
    world.now += seconds
    return [c for c in world.handle(Tick()) if isinstance(c, ReadDevice)]


def test_devices_are_read_as_often_as_the_settings_say():
    world = ready_world(make_fabric(2), CoreSettings(reconcile_every=7.0))
    world.restart()
    world.connect_all()
    assert tick(world, 6.9) == []
    assert len(tick(world, 0.1)) == 3
    world.settle()
    assert tick(world, 6.9) == []
    assert len(tick(world, 0.1)) == 3


def test_a_round_that_takes_long_is_not_overtaken():
    world = ready_world(make_fabric(2), CoreSettings(reconcile_every=7.0))
    world.restart()
    world.connect_all()
    assert len(tick(world, 7.0)) == 3
    assert tick(world, 7.0) == []
    assert world.core.audit_number == 1
    world.settle()
    assert len(tick(world, 7.0)) == 3


def set_every(world, seconds):
    world.handle(SettingsChanged(replace(world.core.settings, reconcile_every=seconds)))


def test_audits_can_be_switched_on_and_off_while_it_runs():
    world = ready_world(make_fabric(2))
    world.restart()
    world.connect_all()
    assert tick(world, 100.0) == []
    set_every(world, 5.0)
    assert tick(world, 4.9) == []
    assert len(tick(world, 0.1)) == 3
    world.settle()
    set_every(world, None)
    assert tick(world, 100.0) == []
    assert world.core.next_timer() is None


def test_another_interval_counts_at_once_and_never_twice():
    world = ready_world(make_fabric(2), CoreSettings(reconcile_every=100.0))
    world.restart()
    world.connect_all()
    for seconds in (5.0, None, 5.0, 5.0):
        set_every(world, seconds)
    rounds = 0
    for _ in range(40):
        rounds += bool(tick(world, 0.5))
        world.settle()
    assert rounds == 4

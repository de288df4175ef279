"""Audits: the controller compares every device with the desired state and repairs it, unless in a dry run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.auditor import AuditReport
from blast_controller.core.model.commands import ReadDevice
from blast_controller.core.model.events import (
    AuditRequested,
    CircuitsObserved,
    SettingsChanged,
    TableObserved,
    TimePassed,
)
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.rollout.late_writes import LASTS, LOOK, NO_RESERVATION
from blast_controller.ops.activity import late_line
from tests.support.controller.core import make_fabric, multicast, ready_world, rejected
from tests.support.controller.core_checks import audited

GROUP = ["r2h1", "r3h1"]
EVERY = ("switch:ocs1", *(f"tor:{number:016x}" for number in (1, 2, 3, 4)))
QUIET = AuditReport(dry_run=False, commands=(), foreign=(), compared=EVERY)


@pytest.fixture
def world():
    """Return a world with a lit group on a 1:4 splitter."""
    world = ready_world(make_fabric(4, [4]))
    world.granted(multicast("a", "r1h1", GROUP, size=10**12))
    world.commands.clear()
    return world


def audit(world, dry_run=False):
    """Run a whole audit, and return its report."""
    world.handle(AuditRequested(dry_run))
    number = world.core.audit_number
    world.settle()
    return world.announced[number]


def without(datapath):
    """Return the report of an audit during which a ToR disconnected."""
    name = f"tor:{datapath:016x}"
    compared = tuple(other for other in EVERY if other != name)
    return replace(QUIET, compared=compared, not_compared=((name, "disconnected before it replied: connection lost"),))


def spoil(world):
    """Remove a circuit and a rule, change the output of a rule, and add a leftover rule of ours."""
    switch = world.switches["ocs1"]
    del switch.circuits[1]
    world.tors[2].rules.clear()
    ((key, (_, number)),) = world.tors[3].rules.items()
    world.tors[3].rules[key] = ((7,), number)
    world.tors[4].rules[50, "10.0.1.1", "239.77.0.9"] = ((1,), 99)


def contents(world):
    return {name: world.device(name).held for name in world.devices}


# ------------------------------------------------------------------------------------------------ on demand


def test_dry_run_reports_repairs_without_changing_devices(world):
    spoil(world)
    before = contents(world)
    report = audit(world, dry_run=True)
    assert report.dry_run
    group = world.part().grant.group_address
    assert sorted(report.commands) == [
        "reservation 1: add the rule for 239.77.0.1 from port 50 to 1 on 0000000000000002",
        f"reservation 1: add the rule for {group} from port 50 to 1 on 0000000000000003",
        "reservation 1: connect 1 to 5 on ocs1",
        "reservation 99: remove the rule for 239.77.0.9 from port 50 to 1 on 0000000000000004",
    ]
    assert contents(world) == before
    assert world.commands == []


def test_audit_runs_the_repairs_of_its_dry_run_once(world):
    expected = contents(world)
    spoil(world)
    planned = audit(world, dry_run=True)
    done = audit(world)
    assert sorted(done.commands) == sorted(planned.commands)
    assert contents(world) == expected
    assert world.served() == set(GROUP)
    assert world.kinds("a") == ["granted"]
    world.commands.clear()
    assert audit(world) == QUIET
    assert world.commands == []


def test_audit_is_rejected_while_another_one_runs(world):
    world.handle(AuditRequested(dry_run=True))
    with rejected("busy"):
        world.handle(AuditRequested(dry_run=False))

    world.settle()
    assert audit(world) == QUIET


def test_unrequested_readings_issue_no_commands(world):
    assert world.handle(CircuitsObserved("ocs1", frozenset())) == []
    assert world.handle(TableObserved(2, frozenset(), 0)) == []
    world.run(AuditRequested(dry_run=False))
    assert world.handle(CircuitsObserved("ocs1", frozenset())) == [], "the round is over"


# ----------------------------------------------------------------------------------------------- not compared


def test_audit_names_disconnected_devices_and_the_reason(world):
    world.lose("ocs1")
    world.disconnect(3)
    report = audit(world, dry_run=True)
    assert report.compared == tuple(f"tor:{number:016x}" for number in (1, 2, 4))
    assert [device for device, _ in report.not_compared] == ["switch:ocs1", "tor:0000000000000003"]
    assert all(reason.startswith("disconnected: ") for _, reason in report.not_compared)


def test_audit_lists_devices_that_have_not_replied(world):
    assert world.core.audit_waits_for == []
    world.handle(AuditRequested(dry_run=True))
    world.work(2)
    world.deliver()
    assert world.core.audit_waits_for == sorted({*EVERY} - {EVERY[2]})


# ------------------------------------------------------------------------------------------------ foreign


def test_audit_reports_and_keeps_foreign_circuits_and_rules(world):
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


def test_audit_serves_pending_request_once_foreign_circuit_is_removed():
    world = ready_world(make_fabric(3, [4]))
    world.submit(multicast("a", "r1h1", GROUP))
    switch, foreign = world.switches["ocs1"], CrossConnect("ocs1", 40, 2)
    world.withdraw("a")
    world.granted(multicast("b", "r1h1", ["r3h1"]))
    world.submit(multicast("c", "r1h1", GROUP))
    switch.circuits[40] = 2
    switch.foreign.add(foreign)
    audit(world)
    world.finish("b")
    assert world.part("c").state is PartState.PENDING
    switch.foreign.clear()
    del switch.circuits[40]
    assert audit(world, dry_run=True).commands == ()
    assert world.part("c").state is PartState.PENDING, "a dry run starts no request"
    audit(world)
    assert world.part("c").state is PartState.ACTIVE


# -------------------------------------------------------------------------------------------- during changes


def test_audit_repeats_reading_older_than_a_later_change(world):
    world.handle(AuditRequested(dry_run=False))
    before = world.switches["ocs1"].held
    world.extend("a", add_receivers=("r4h1",))
    world.commands.clear()
    assert world.handle(CircuitsObserved("ocs1", before)) == [ReadDevice("ocs1")]
    world.settle()
    # The reading in progress when the change was requested arrives first.
    moving = (("reservation 1 on switch:ocs1", "a change of it is in progress"),)
    assert world.announced[world.core.audit_number] == replace(QUIET, not_compared=moving)
    assert world.served() == {*GROUP, "r4h1"}
    assert world.kinds("a") == ["granted", "changed"]


def test_audit_ignores_reading_of_device_that_reconnected(world):
    world.handle(AuditRequested(dry_run=False))
    world.disconnect(2)
    world.come_back(2)
    world.deliver()
    assert world.handle(TableObserved(2, frozenset(), 0)) == []
    world.settle()
    assert world.announced[world.core.audit_number] == without(2)


def test_audit_reads_connected_devices_only(world):
    for name in ("ocs1", 1, 2, 3):
        world.lose(name)
    world.deliver()
    assert world.handle(AuditRequested(dry_run=False)) == [ReadDevice(4)]
    world.disconnect(4)
    assert world.announced[1].compared == ()
    world.handle(AuditRequested(dry_run=False))
    assert world.announced[2].compared == (), "a round without devices is over at once"


# ------------------------------------------------------------------------------------------------- by time


def tick(world, seconds):
    world.now += seconds
    return [c for c in world.handle(TimePassed()) if isinstance(c, ReadDevice)]


def test_periodic_audit_waits_for_the_previous_one():
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


def test_periodic_audits_can_be_enabled_and_disabled_at_run_time():
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


def test_new_audit_interval_replaces_the_old_one_at_once():
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


# ---------------------------------------------------------------------------------------------------------- late writes


LATE_SETTINGS = CoreSettings(reconcile_every=60.0)


@pytest.fixture
def restarted():
    restarted = ready_world(make_fabric(4, [4]), LATE_SETTINGS)
    # As every process does, it begins with a journal.
    restarted.recover()
    return restarted


def ours(restarted) -> frozenset[CrossConnect]:
    return restarted.switches["ocs1"].held


def make_late(restarted, circuits) -> None:
    """Let the switch carry out an earlier command that connects these circuits."""
    restarted.switches["ocs1"].circuits.update({c.input: c.output for c in circuits})


def ended_circuits(restarted) -> frozenset[CrossConnect]:
    """Return the circuits of a reservation that was lit when the controller was replaced and has ended since."""
    restarted.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    circuits = ours(restarted)
    restarted.recover()
    restarted.withdraw("a")
    assert not ours(restarted)
    return circuits


def pass_time(restarted, seconds: float) -> None:
    restarted.now += seconds
    restarted.catch_up()
    restarted.settle()


def test_next_late_write_check_removes_late_circuits(restarted):
    circuits = ended_circuits(restarted)
    make_late(restarted, circuits)
    restarted.commands.clear()
    pass_time(restarted, LOOK)
    assert not ours(restarted)
    (command,) = restarted.commands
    assert {c for change in command.changes for c in change.disconnect} == circuits
    assert [change.reservation for change in command.changes] == [NO_RESERVATION]
    line = late_line(command)
    assert line.event == "late_write" and all(f"{c.input} to {c.output}" in line.message for c in circuits)


def test_late_circuits_are_removed_after_a_second_restart(restarted):
    circuits = ended_circuits(restarted)
    restarted.restart()
    make_late(restarted, circuits)
    restarted.connect_all()
    restarted.settle()
    assert not ours(restarted)


def test_audit_reports_late_circuits_as_late_writes(restarted):
    circuits = ended_circuits(restarted)
    make_late(restarted, circuits)
    planned = audited(restarted, dry_run=True)
    assert planned.foreign == () and len(planned.commands) == len(circuits)
    assert all(command.startswith("late write: delete") for command in planned.commands)
    assert audited(restarted, dry_run=False).commands == planned.commands
    assert audited(restarted, dry_run=False).commands == ()


def test_late_circuits_become_foreign_after_retention(restarted):
    circuits = ended_circuits(restarted)
    pass_time(restarted, LASTS)
    pass_time(restarted, LASTS)
    assert not restarted.core.view.late_circuits("ocs1")
    assert not [key for kind, key in restarted.store._state if kind == "late"]
    make_late(restarted, circuits)
    restarted.switches["ocs1"].foreign |= circuits
    report = audited(restarted, dry_run=False)
    assert report.commands == () and len(report.foreign) == len(circuits)
    assert ours(restarted) == circuits


def test_audit_keeps_circuits_that_a_new_request_uses_again(restarted):
    circuits = ended_circuits(restarted)
    restarted.granted(multicast("again", "r1h1", ["r2h1", "r3h1"]))
    assert ours(restarted) == circuits
    assert audited(restarted, dry_run=False).commands == ()
    assert ours(restarted) == circuits


def test_unanswered_circuits_of_a_lost_session_count_as_late(restarted):
    restarted.submit(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    restarted.lose("ocs1")
    (epoch, command) = restarted.switches["ocs1"].in_flight[0]
    circuits = {c for change in command.changes for c in change.connect}
    restarted.deliver()
    assert restarted.core.view.late_circuits("ocs1") == circuits
    restarted.withdraw("a")
    restarted.connect_all()
    restarted.settle()
    make_late(restarted, circuits)
    pass_time(restarted, LOOK)
    assert not ours(restarted) and epoch == restarted.epoch

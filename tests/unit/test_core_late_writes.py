"""What an older controller or session has sent to an optical switch arrives when nobody wants it any more."""

from __future__ import annotations

import pytest

from blast_controller.core.model.events import WithdrawAsked
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.rollout.late_writes import LASTS, LOOK, NOBODY
from blast_controller.ops.activity import late_line
from tests.support.core import key_of, make_fabric, multicast, ready_world
from tests.support.core_checks import audited

SETTINGS = CoreSettings(reconcile_every=60.0)


@pytest.fixture
def world():
    world = ready_world(make_fabric(4, [4]), SETTINGS)
    # As every process does, it begins with a journal.
    world.restart()
    world.connect_all()
    world.settle()
    return world


def ours(world) -> frozenset[CrossConnect]:
    return world.switches["ocs1"].held


def make_late(world, circuits) -> None:
    """A switch carries out at last what it was told to."""
    world.switches["ocs1"].circuits.update({c.input: c.output for c in circuits})


def gone(world) -> frozenset[CrossConnect]:
    """A reservation that was live when the controller was replaced, and has ended since: its circuits."""
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    circuits = ours(world)
    world.restart()
    world.connect_all()
    world.settle()
    world.handle(WithdrawAsked(key_of("a")))
    world.settle()
    assert not ours(world)
    return circuits


def pass_time(world, seconds: float) -> None:
    world.now += seconds
    world.catch_up()
    world.settle()


def test_it_is_taken_away_by_the_next_look_which_is_soon(world):
    circuits = gone(world)
    make_late(world, circuits)
    world.commands.clear()
    pass_time(world, LOOK)
    assert not ours(world)
    (command,) = world.commands
    assert {c for change in command.changes for c in change.disconnect} == circuits
    assert [change.reservation for change in command.changes] == [NOBODY]
    line = late_line(command)
    assert line.event == "late_write" and all(f"{c.input} to {c.output}" in line.message for c in circuits)


def test_a_second_restart_does_not_forget_it(world):
    circuits = gone(world)
    world.restart()
    make_late(world, circuits)
    world.connect_all()
    world.settle()
    assert not ours(world)


def test_an_audit_says_so_and_calls_it_no_stranger(world):
    circuits = gone(world)
    make_late(world, circuits)
    planned = audited(world, dry_run=True)
    assert planned.foreign == () and len(planned.commands) == len(circuits)
    assert all(command.startswith("late write: delete") for command in planned.commands)
    assert audited(world, dry_run=False).commands == planned.commands
    assert audited(world, dry_run=False).commands == ()


def test_after_a_while_it_is_whoever_s_and_left_alone(world):
    circuits = gone(world)
    pass_time(world, LASTS)
    pass_time(world, LASTS)
    assert not world.core.view.late_circuits("ocs1")
    assert not [key for kind, key in world.store._state if kind == "late"]
    make_late(world, circuits)
    world.switches["ocs1"].foreign |= circuits
    report = audited(world, dry_run=False)
    assert report.commands == () and len(report.foreign) == len(circuits)
    assert ours(world) == circuits


def test_it_is_left_alone_where_somebody_wants_it_again(world):
    circuits = gone(world)
    world.granted(multicast("again", "r1h1", ["r2h1", "r3h1"]))
    assert ours(world) == circuits
    assert audited(world, dry_run=False).commands == ()
    assert ours(world) == circuits


def test_what_a_lost_session_left_unanswered_is_remembered_too(world):
    world.submit(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    world.lose("ocs1")
    (epoch, command) = world.switches["ocs1"].in_flight[0]
    circuits = {c for change in command.changes for c in change.connect}
    world.deliver()
    assert world.core.view.late_circuits("ocs1") == circuits
    world.handle(WithdrawAsked(key_of("a")))
    world.settle()
    world.connect_all()
    world.settle()
    make_late(world, circuits)
    pass_time(world, LOOK)
    assert not ours(world) and epoch == world.epoch

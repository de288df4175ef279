"""Transfers that pause and continue, and requests served in parts, from the decision to the devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.commands import SetCircuits, SetForwarding
from blast_controller.core.model.errors import RejectedError, RequestEndedError
from blast_controller.core.model.events import LightAlarmRaised, ProgressReported
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind
from blast_controller.core.model.settings import CoreSettings
from tests.support.controller.core import key_of, make_fabric, multicast, ready_world

SETTINGS = CoreSettings(reconcile_every=None, keep_warm=60.0)
GB = 10**9
"""0.8 s at the line rate of the tests' fabric."""


@pytest.fixture
def world():
    return ready_world(make_fabric(6, [4]), SETTINGS)


def ask(world, key, sender, receivers, size=10 * GB, **how):
    world.serve(replace(multicast(key, sender, receivers, size), **how))
    return world.core.request(key_of(key))


def report_progress(world, key, reached, part=0):
    world.run(ProgressReported(key_of(key), part, reached))


def kinds(world, key):
    return [event.kind for event in world.core.request(key_of(key)).events]


def long_one(world, **how):
    return ask(world, "long", "r1h1", ["r2h1", "r3h1"], may_pause=True, **how)


def short_one(world):
    return ask(world, "short", "r4h1", ["r5h1", "r6h1"], GB // 10)


def test_lease_of_one_chunk_continues_while_no_request_waits(world):
    long_one(world)
    grant = world.part("long").grant
    assert grant.first_byte == 0 and 0.5 <= grant.lease < 1.0 and grant.estimated_service == pytest.approx(8.0)
    world.commands.clear()
    report_progress(world, "long", GB // 2)
    world.advance(grant.lease)
    part = world.part("long")
    assert part.state is PartState.ACTIVE and kinds(world, "long") == [EventKind.GRANTED, EventKind.CHANGED]
    assert part.grant.first_byte == GB // 2 and part.grant.estimated_service == pytest.approx(7.6)
    assert not [c for c in world.commands if isinstance(c, SetCircuits | SetForwarding)]


def test_shorter_request_is_served_first_and_paused_one_resumes(world):
    long_one(world)
    short_one(world)
    assert world.part("short").state is PartState.PENDING
    report_progress(world, "long", GB // 2)
    world.advance(world.part("long").grant.lease)
    assert world.part("long").state is PartState.PENDING and world.part("short").state is PartState.ACTIVE
    assert kinds(world, "long")[-1] is EventKind.PAUSED and world.part("long").grant is None
    world.finish("short")
    part = world.part("long")
    assert part.state is PartState.ACTIVE and part.grant.first_byte == GB // 2
    assert world.receivers_of(world.fabric.hosts["r1h1"], part.grant.group_address) == {"r2h1", "r3h1"}


def test_request_expires_if_its_sender_reports_no_progress(world):
    """Only the sender knows its progress, so silence means that it has vanished."""
    long_one(world)
    world.advance(world.part("long").grant.lease + 0.01)
    assert world.part("long").state is PartState.EXPIRED


@pytest.mark.parametrize("reached", [-1, GB // 2 - 1, 10 * GB + 1])
def test_core_rejects_progress_backward_or_beyond_the_size(world, reached):
    long_one(world)
    report_progress(world, "long", GB // 2)
    with pytest.raises(RejectedError, match="The progress must be from byte"):
        world.handle(ProgressReported(key_of("long"), 0, reached))


def test_core_rejects_progress_of_ended_or_unknown_part(world):
    long_one(world)
    with pytest.raises(RejectedError, match="no part 1"):
        world.handle(ProgressReported(key_of("long"), 1, 0))
    world.finish("long")
    with pytest.raises(RequestEndedError):
        world.handle(ProgressReported(key_of("long"), 0, GB))


def busy_rack(world):
    """Submit a group of five racks that can be served except for rack 5, which is busy."""
    ask(world, "other", "r6h1", ["r5h1"])
    return ask(world, "wide", "r1h1", ["r1h2", "r2h1", "r2h2", "r3h1", "r4h1", "r5h1"], may_split=True)


def test_split_request_serves_the_rest_when_its_rack_is_free():
    world = ready_world(make_fabric(6, [4, 4]), SETTINGS)
    wide = busy_rack(world)
    first, rest = wide.parts
    assert (first.state, rest.state) == (PartState.ACTIVE, PartState.PENDING)
    assert first.receivers == ("r1h2", "r2h1", "r2h2", "r3h1", "r4h1") and rest.receivers == ("r5h1",)
    assert first.grant.unserved == ("r5h1",)
    reached = world.receivers_of(world.fabric.hosts["r1h1"], first.grant.group_address)
    assert reached == set(first.receivers)
    world.finish("other")
    assert rest.state is PartState.PENDING, "the sender has one transmitter"
    world.finish("wide")
    assert rest.state is PartState.ACTIVE and rest.grant.first_byte == 0 and rest.grant.part == 1
    world.finish("wide", 1)
    assert world.state("wide") is PartState.DONE


def test_extension_of_a_split_request_is_rejected():
    world = ready_world(make_fabric(6, [4, 4]), SETTINGS)
    busy_rack(world)
    with pytest.raises(RejectedError, match="several parts"):
        world.extend("wide", add_seconds=1.0)


def test_progress_does_not_shorten_a_lease(world):
    ask(world, "long", "r1h1", ["r2h1", "r3h1"], size=100 * GB)
    before = world.part("long").lease_end
    report_progress(world, "long", 90 * GB)
    world.extend("long", add_seconds=5.0)
    world.settle()
    assert world.part("long").lease_end == pytest.approx(before + 5.0)


def test_progress_while_paused_does_not_extend_the_next_lease(world):
    long_one(world)
    short_one(world)
    report_progress(world, "long", GB // 2)
    world.advance(world.part("long").grant.lease)
    report_progress(world, "long", GB)
    world.finish("short")
    assert world.part("long").grant.first_byte == GB
    world.advance(world.part("long").grant.lease + 0.01)
    assert world.part("long").state is PartState.EXPIRED


def test_repair_keeps_the_receivers_of_a_part():
    world = ready_world(make_fabric(6, [4, 4]), SETTINGS)
    wide = busy_rack(world)
    before = wide.parts[0].receivers
    reservation = next(r for r in world.core.reservations if r.id == wide.parts[0].reservation)
    world.run(LightAlarmRaised("ocs1", reservation.layout.tree.leaves[0].port.output, "LOS"))
    assert kinds(world, "wide")[-1] is EventKind.CHANGED
    assert wide.parts[0].receivers == before == wide.parts[0].grant.receivers

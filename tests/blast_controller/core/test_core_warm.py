"""Trees kept lit after a transfer: granted again without device commands, and evicted when others need elements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import (
    DeviceDisconnected,
    ElementQuarantined,
    FinishRequested,
    LightAlarmRaised,
    PortChanged,
    SettingsChanged,
)
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from blast_controller.core.policy.returning_groups import MAX_GROUPS, ReturningGroups
from blast_controller.core.rollout.reservation_states import ReservationState
from tests.support.controller.core import TENANT, key_of, make_fabric, multicast, ready_world

GROUP = ("r2h1", "r3h1")
WARM = CoreSettings(keep_warm=60.0, reconcile_every=None)


@pytest.fixture
def world():
    return ready_world(make_fabric(5, [4, 4]), WARM)


def submit(world, key, sender="r1h1", receivers=GROUP):
    world.serve(multicast(key, sender, receivers))
    return world.part(key)


def iterate(world, *keys):
    for key in keys:
        submit(world, key)
        world.finish(key)


def states(world):
    return [reservation.state for reservation in world.core.reservations]


def circuits(world):
    return set().union(*(switch.circuits for switch in world.switches.values()))


def test_same_group_is_granted_again_without_device_commands(world):
    iterate(world, "a")
    before = circuits(world)
    world.commands.clear()
    part = submit(world, "b")
    assert part.state is PartState.ACTIVE and part.grant.group_address == world.part().grant.group_address
    assert world.device_commands() == [] and circuits(world) == before != set()
    assert part.grant.timings.optical is None and part.grant.timings.openflow is None
    served = world.receivers_of(world.fabric.hosts["r1h1"], part.grant.group_address)
    assert served == set(GROUP)


def test_warm_tree_matches_receivers_in_any_order(world):
    iterate(world, "a")
    world.commands.clear()
    assert submit(world, "b", receivers=GROUP[::-1]).state is PartState.ACTIVE and world.device_commands() == []


@pytest.mark.parametrize(("sender", "receivers"), [("r1h2", GROUP), ("r1h1", ("r2h1",)), ("r1h1", ("r2h2", "r3h1"))])
def test_warm_tree_does_not_serve_another_group(world, sender, receivers):
    iterate(world, "a")
    world.commands.clear()
    part = submit(world, "b", sender, receivers)
    assert part.state is PartState.ACTIVE and world.device_commands()
    assert world.receivers_of(world.fabric.hosts[sender], part.grant.group_address) == set(receivers)


def test_warm_tree_does_not_serve_another_tenant(world):
    iterate(world, "a")
    world.commands.clear()
    world.serve(replace(multicast("b", "r1h1", GROUP), tenant="other"))
    assert world.device_commands() and world.core.request(("other", "b")).parts[0].state is PartState.ACTIVE


def test_warm_tree_is_torn_down_after_keep_warm(world):
    iterate(world, "a")
    world.advance(30.0)
    iterate(world, "b")
    world.advance(59.0)
    assert states(world) == [ReservationState.IDLE]
    world.advance(1.5)
    assert states(world) == [] and circuits(world) == set()


def test_tree_is_not_kept_after_withdrawal_or_without_keep_warm(world):
    submit(world, "a")
    world.withdraw("a")
    assert states(world) == []
    world.handle(SettingsChanged(replace(WARM, keep_warm=0.0)))
    iterate(world, "b")
    assert states(world) == []


def test_dark_tree_is_not_kept_warm(world):
    iterate(world, "a")
    (kept,) = world.core.reservations
    world.run(LightAlarmRaised("ocs1", kept.layout.tree.leaves[0].port.output, "LOS"))
    assert states(world) == []
    iterate(world, "b")
    (kept,) = world.core.reservations
    leaf = kept.layout.tree.leaves[0].port
    world.handle(PortChanged(world.core.fabric.datapath_of(leaf.rack), leaf.port, False, "no light"))
    world.advance(2.0)
    assert states(world) == []


@pytest.mark.parametrize("device", ["ocs1", 2])
def test_warm_tree_is_not_granted_while_its_device_is_disconnected(world, device):
    iterate(world, "a")
    world.handle(DeviceDisconnected(device, "gone"))
    assert submit(world, "b").state is PartState.PENDING


def test_warm_tree_does_not_count_against_tenant_limits(world):
    limited = replace(WARM, tenants={TENANT: TenantLimits(max_splitters=1)})
    world = ready_world(make_fabric(6, [4, 4]), limited)
    iterate(world, "a")
    assert submit(world, "b", "r4h1", ("r5h1", "r6h1")).state is PartState.ACTIVE
    world.commands.clear()
    assert submit(world, "c").state is PartState.PENDING and world.device_commands() == []


def test_element_of_a_warm_tree_moves_in_one_command(world):
    iterate(world, "a")
    world.commands.clear()
    world.submit(multicast("b", "r4h1", ("r2h1", "r5h1")))
    (command,) = [c for c in world.commands if isinstance(c, SetCircuits)]
    assert [bool(change.disconnect) for change in command.changes] == [True, False]
    world.settle()
    assert world.part("b").state is PartState.ACTIVE


def test_failed_takeover_returns_elements_to_the_warm_tree(world):
    iterate(world, "a")
    (kept,) = world.core.reservations
    held = set(kept.elements)
    world.submit(multicast("b", "r4h1", ("r3h1", "r5h1")))
    world.work("ocs1", denied={0})
    world.settle()
    assert world.part("b").state is PartState.PENDING
    assert {e for e, holder in world.core.view.holders.items() if holder == kept.id} == held
    world.advance(2.0)
    assert world.part("b").state is PartState.ACTIVE and states(world) == [ReservationState.LIT]


def test_evicted_tree_keeps_circuits_on_its_former_outputs(world):
    """The new tree uses the same outputs; the old one still waits for a ToR when the switch comes back."""
    iterate(world, "a")
    world.submit(multicast("b", "r4h1", GROUP))
    for name in [name for name in world.devices if name != 1]:
        while world.device(name).queue:
            world.work(name)
    world.deliver()
    assert world.part("b").state is PartState.ACTIVE
    before = circuits(world)
    world.disconnect("ocs1")
    world.connect_all()
    world.settle()
    assert circuits(world) == before
    assert world.receivers_of(world.fabric.hosts["r4h1"], world.part("b").grant.group_address) == set(GROUP)


def test_warm_tree_is_not_granted_while_a_leaf_has_no_link(world):
    iterate(world, "a")
    (kept,) = world.core.reservations
    leaf = kept.layout.tree.leaves[0].port
    world.handle(PortChanged(world.core.fabric.datapath_of(leaf.rack), leaf.port, False, "no light"))
    world.commands.clear()
    submit(world, "b")
    assert world.device_commands(), "a new tree is made, whose grant waits for the link"
    assert world.part("b").state is PartState.CONFIGURING


# ------------------------------------------------------------------------------------------------------- a dark reserve


SETTINGS = CoreSettings(keep_warm=60.0, warm_reserve=0.5, reconcile_every=None)
A, B, C = ("r1h1", ("r2h1", "r3h1")), ("r4h1", ("r5h1", "r6h1")), ("r7h1", ("r8h1", "r9h1"))
WIDE = ("r1h1", tuple(f"r{n}h1" for n in range(2, 9)))
"""Needs two splitters 1:4."""


def room(racks=9, splitters=(4, 4, 4, 4), settings=SETTINGS, **more):
    return ready_world(make_fabric(racks, splitters, **more), settings)


def number_of(world):
    return len(world.core.requests)


def ask(world, group):
    """Submit a new request, check that it is active, and return its key."""
    key = f"k{number_of(world)}"
    world.serve(multicast(key, *group))
    assert world.state(key) is PartState.ACTIVE
    return key


def serve(world, *groups, seconds=1.0):
    """Serve one request after the other; return for each whether it found a warm tree."""
    found = []
    for group in groups:
        before = world.core.view.warm_counts.hits
        key = ask(world, group)
        found.append(world.core.view.warm_counts.hits > before)
        world.now += seconds
        world.finish(key)
        world.advance(seconds)
    return found


def orders(world):
    return [command for command in world.commands if isinstance(command, SetCircuits)]


def test_group_finds_a_warm_tree_from_its_third_request():
    assert serve(room(), A, A, A, A) == [False, False, True, True]
    assert serve(room(), A, B, A, B, A, B, A, B) == [False] * 4 + [True] * 4


def test_group_without_reserve_is_warm_from_its_second_request():
    assert serve(room(settings=replace(SETTINGS, warm_reserve=0.0)), A, A, A) == [False, True, True]


def test_full_reserve_keeps_no_trees_of_alternating_groups():
    world = room(settings=replace(SETTINGS, warm_reserve=1.0))
    assert serve(world, A, B, A, B, A, B) == [False] * 6 and states(world) == []


def test_group_that_returns_too_late_finds_no_warm_tree():
    assert serve(room(), A, A, A, seconds=31.0) == [False, False, True]
    assert serve(room(), A, A, A, A, seconds=60.5) == [False] * 4


def test_alternating_jobs_do_not_evict_each_other():
    """The oldest tree is always the next one to be requested."""
    world = room(splitters=(4, 4))
    assert serve(world, *(A, B, C) * 6)[-9:] in ([True, False, False] * 3, [False, True, False] * 3)


def test_lone_group_keeps_all_its_elements_warm():
    world = room(splitters=(4, 4))
    assert serve(world, WIDE, WIDE, WIDE, WIDE) == [False, False, True, True]
    assert states(world) == [ReservationState.IDLE]
    # Another group evicts the elements that it needs; the rest is freed for the next groups.
    assert serve(world, ("r9h1", ("r8h1",)), WIDE, WIDE, WIDE) == [False] * 4
    assert states(world) == []


def test_warm_tree_is_evicted_when_another_group_arrives():
    """The newcomer needs no element of the tree."""
    world = room(splitters=(4, 4))
    serve(world, WIDE, WIDE)
    assert states(world) == [ReservationState.IDLE]
    serve(world, ("r9h1", ("r9h2",)))
    assert states(world) == [ReservationState.IDLE], "a group within its rack uses no optical port"
    world = room(racks=11, splitters=(4, 4))
    serve(world, WIDE, WIDE)
    ask(world, ("r10h1", ("r11h1",)))
    assert states(world) == [ReservationState.LIT] and world.core.view.warm_counts.taken_over == 0


def test_eviction_waits_for_a_connect_in_progress():
    world = room()
    first = ask(world, A)
    world.submit(multicast("late", *B))
    world.commands.clear()
    world.handle(FinishRequested(key_of(first), 0))
    assert orders(world) == [] and ReservationState.IDLE in states(world)
    world.settle()
    (order,) = orders(world)
    assert order.changes[0].disconnect and world.state("late") is PartState.ACTIVE
    assert states(world) == [ReservationState.LIT]


def test_connect_in_the_batch_of_a_finish_is_sent_alone():
    """Both reach the core in one batch: the connect does not wait for the disconnect."""
    world = room()
    first = ask(world, A)
    world.commands.clear()
    world.core.take(FinishRequested(key_of(first), 0), world.now)
    world.submit(multicast("at once", *B))
    (order,) = orders(world)
    assert [bool(change.disconnect) for change in order.changes] == [False]
    world.settle()
    assert states(world) == [ReservationState.LIT]


def test_larger_reserve_evicts_warm_trees_at_once():
    world = room(settings=replace(SETTINGS, warm_reserve=0.0))
    serve(world, A, B, A, B)
    assert states(world) == [ReservationState.IDLE] * 2
    world.run(SettingsChanged(replace(SETTINGS, warm_reserve=1.0)))
    assert states(world) == [] and world.core.view.warm_counts.gave_way == 2


def test_quarantine_does_not_count_as_eviction():
    world = room()
    serve(world, A, A)
    world.run(ElementQuarantined("splitter:s1", "broken"))
    assert world.core.view.warm_counts.gave_way == 1 and states(world) == [], "the first of the two was a newcomer"


def test_warm_counts_cover_hits_evictions_and_takeovers():
    world = room()
    serve(world, A, A, A, A)
    serve(world, ("r2h1", ("r4h1",)))
    counts = world.core.view.warm_counts
    assert (counts.lit, counts.hits, counts.gave_way, counts.taken_over) == (5, 2, 2, 1)


def test_group_whose_racks_others_need_is_not_kept_warm():
    """With one port per rack, each group would block the other for ever."""
    world, other = room(), ("r2h1", ("r4h1", "r5h1"))
    assert serve(world, *(A, other) * 6) == [False] * 12
    assert world.core.view.warm_counts.taken_over == 0 and states(world) == []


def test_job_disturbed_once_keeps_its_tree_the_next_time():
    world, other = room(), ("r4h1", ("r3h1",))
    assert serve(world, A, A, A, A) == [False, False, True, True]
    assert serve(world, other, A, A) == [False, False, True]
    assert serve(world, other, A, ("r3h1", ("r5h1",)), A, A, A) == [False, False, False, False, False, True]
    assert world.core.view.warm_counts.taken_over == 3


def test_needs_of_others_do_not_count_while_enough_is_free():
    world = room(ports=3)
    assert serve(world, A, ("r2h1", ("r4h1",)), A) == [False, False, True]


@pytest.mark.parametrize("number", [1, MAX_GROUPS, MAX_GROUPS + 1])
def test_returning_groups_remember_the_latest_max_groups(number):
    groups = ReturningGroups()
    for index in range(number):
        for _ in range(2):
            groups.come(("t", f"h{index}", frozenset()), False, 60.0, 0.0)
            groups.go(("t", f"h{index}", frozenset()), (), 0.0)
    groups.come(("t", "h0", frozenset()), False, 60.0, 1.0)
    known = groups.go(("t", "h0", frozenset()), (), 2.0) is not None
    assert known == (number <= MAX_GROUPS) and len(groups._visits) <= MAX_GROUPS

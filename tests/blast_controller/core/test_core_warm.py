"""Trees kept lit after a transfer: granted again without touching a device, given up when somebody needs a piece."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import (
    DeviceDown,
    ElementQuarantined,
    FinishAsked,
    LightAlarm,
    PortChanged,
    SettingsChanged,
)
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from blast_controller.core.policy.returning_groups import MAX_GROUPS, ReturningGroups
from blast_controller.core.rollout.reservation_states import ReservationState
from tests.support.core import TENANT, key_of, make_fabric, multicast, ready_world

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


def test_the_same_group_again_is_granted_without_a_word_to_a_device(world):
    iterate(world, "a")
    before = circuits(world)
    world.commands.clear()
    part = submit(world, "b")
    assert part.state is PartState.ACTIVE and part.grant.group_address == world.part().grant.group_address
    assert world.device_commands() == [] and circuits(world) == before != set()
    assert part.grant.timings.optical is None and part.grant.timings.openflow is None
    served = world.receivers_of(world.fabric.hosts["r1h1"], part.grant.group_address)
    assert served == set(GROUP)


def test_the_order_of_the_receivers_does_not_matter(world):
    iterate(world, "a")
    world.commands.clear()
    assert submit(world, "b", receivers=GROUP[::-1]).state is PartState.ACTIVE and world.device_commands() == []


@pytest.mark.parametrize(("sender", "receivers"), [("r1h2", GROUP), ("r1h1", ("r2h1",)), ("r1h1", ("r2h2", "r3h1"))])
def test_another_group_is_not_served_by_it(world, sender, receivers):
    iterate(world, "a")
    world.commands.clear()
    part = submit(world, "b", sender, receivers)
    assert part.state is PartState.ACTIVE and world.device_commands()
    assert world.receivers_of(world.fabric.hosts[sender], part.grant.group_address) == set(receivers)


def test_another_tenant_does_not_get_it(world):
    iterate(world, "a")
    world.commands.clear()
    world.serve(replace(multicast("b", "r1h1", GROUP), tenant="other"))
    assert world.device_commands() and world.core.request(("other", "b")).parts[0].state is PartState.ACTIVE


def test_it_cools_down(world):
    iterate(world, "a")
    world.advance(30.0)
    iterate(world, "b")
    world.advance(59.0)
    assert states(world) == [ReservationState.IDLE]
    world.advance(1.5)
    assert states(world) == [] and circuits(world) == set()


def test_nothing_is_kept_of_what_was_withdrawn_or_when_it_is_switched_off(world):
    submit(world, "a")
    world.withdraw("a")
    assert states(world) == []
    world.handle(SettingsChanged(replace(WARM, keep_warm=0.0)))
    iterate(world, "b")
    assert states(world) == []


def test_what_has_gone_dark_is_not_granted_again(world):
    iterate(world, "a")
    (kept,) = world.core.reservations
    world.run(LightAlarm("ocs1", kept.layout.tree.leaves[0].port.output, "LOS"))
    assert states(world) == []
    iterate(world, "b")
    (kept,) = world.core.reservations
    leaf = kept.layout.tree.leaves[0].port
    world.handle(PortChanged(world.core.fabric.datapath_of(leaf.rack), leaf.port, False, "no light"))
    world.advance(2.0)
    assert states(world) == []


@pytest.mark.parametrize("device", ["ocs1", 2])
def test_it_is_not_granted_while_a_device_of_it_is_away(world, device):
    iterate(world, "a")
    world.handle(DeviceDown(device, "gone"))
    assert submit(world, "b").state is PartState.PENDING


def test_it_counts_against_no_limit_of_its_tenant(world):
    limited = replace(WARM, tenants={TENANT: TenantLimits(max_splitters=1)})
    world = ready_world(make_fabric(6, [4, 4]), limited)
    iterate(world, "a")
    assert submit(world, "b", "r4h1", ("r5h1", "r6h1")).state is PartState.ACTIVE
    world.commands.clear()
    assert submit(world, "c").state is PartState.PENDING and world.device_commands() == []


def test_a_piece_changes_hands_in_one_round(world):
    iterate(world, "a")
    world.commands.clear()
    world.submit(multicast("b", "r4h1", ("r2h1", "r5h1")))
    (command,) = [c for c in world.commands if isinstance(c, SetCircuits)]
    assert [bool(change.disconnect) for change in command.changes] == [True, False]
    world.settle()
    assert world.part("b").state is PartState.ACTIVE


def test_what_cannot_be_undone_comes_back_to_who_has_handed_it_over(world):
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


def test_who_has_handed_pieces_over_leaves_the_circuits_on_them_alone(world):
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


def test_it_is_not_granted_while_a_leaf_has_no_link(world):
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
    """One request after the other, each done after a while; which of them found their light."""
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


def test_a_group_that_comes_back_is_warm_from_its_third_request_on():
    assert serve(room(), A, A, A, A) == [False, False, True, True]
    assert serve(room(), A, B, A, B, A, B, A, B) == [False] * 4 + [True] * 4


def test_without_a_reserve_it_is_warm_from_its_second_request_on():
    assert serve(room(settings=replace(SETTINGS, warm_reserve=0.0)), A, A, A) == [False, True, True]


def test_with_everything_reserved_nothing_is_kept_but_for_a_group_that_is_alone():
    world = room(settings=replace(SETTINGS, warm_reserve=1.0))
    assert serve(world, A, B, A, B, A, B) == [False] * 6 and states(world) == []


def test_who_stays_away_too_long_has_not_come_back():
    assert serve(room(), A, A, A, seconds=31.0) == [False, False, True]
    assert serve(room(), A, A, A, A, seconds=60.5) == [False] * 4


def test_jobs_that_take_turns_do_not_drive_each_other_out():
    """The oldest tree is always the next one to be asked for."""
    world = room(splitters=(4, 4))
    assert serve(world, *(A, B, C) * 6)[-9:] in ([True, False, False] * 3, [False, True, False] * 3)


def test_a_group_that_has_the_fabric_to_itself_keeps_all_that_it_needs():
    world = room(splitters=(4, 4))
    assert serve(world, WIDE, WIDE, WIDE, WIDE) == [False, False, True, True]
    assert states(world) == [ReservationState.IDLE]
    # Somebody else comes: what stands in his way goes with his own light, the rest is for the next ones.
    assert serve(world, ("r9h1", ("r8h1",)), WIDE, WIDE, WIDE) == [False] * 4
    assert states(world) == []


def test_a_tree_gives_way_as_soon_as_somebody_else_has_come():
    """The newcomer needs no piece of it."""
    world = room(splitters=(4, 4))
    serve(world, WIDE, WIDE)
    assert states(world) == [ReservationState.IDLE]
    serve(world, ("r9h1", ("r9h2",)))
    assert states(world) == [ReservationState.IDLE], "a group within its rack needs no light"
    world = room(racks=11, splitters=(4, 4))
    serve(world, WIDE, WIDE)
    ask(world, ("r10h1", ("r11h1",)))
    assert states(world) == [ReservationState.LIT] and world.core.view.warm_counts.taken_over == 0


def test_no_disconnect_is_told_to_a_switch_that_lights_somebody():
    world = room()
    first = ask(world, A)
    world.submit(multicast("late", *B))
    world.commands.clear()
    world.handle(FinishAsked(key_of(first), 0))
    assert orders(world) == [] and ReservationState.IDLE in states(world)
    world.settle()
    (order,) = orders(world)
    assert order.changes[0].disconnect and world.state("late") is PartState.ACTIVE
    assert states(world) == [ReservationState.LIT]


def test_what_is_asked_for_with_the_end_of_another_is_told_alone():
    """Both reach the core in one batch: the connect does not wait for the disconnect."""
    world = room()
    first = ask(world, A)
    world.commands.clear()
    world.core.take(FinishAsked(key_of(first), 0), world.now)
    world.submit(multicast("at once", *B))
    (order,) = orders(world)
    assert [bool(change.disconnect) for change in order.changes] == [False]
    world.settle()
    assert states(world) == [ReservationState.LIT]


def test_a_larger_reserve_takes_effect_at_once():
    world = room(settings=replace(SETTINGS, warm_reserve=0.0))
    serve(world, A, B, A, B)
    assert states(world) == [ReservationState.IDLE] * 2
    world.run(SettingsChanged(replace(SETTINGS, warm_reserve=1.0)))
    assert states(world) == [] and world.core.view.warm_counts.gave_way == 2


def test_a_quarantine_does_not_count_as_giving_way():
    world = room()
    serve(world, A, A)
    world.run(ElementQuarantined("splitter:s1", "broken"))
    assert world.core.view.warm_counts.gave_way == 1 and states(world) == [], "the first of the two was a newcomer"


def test_what_was_found_lit_given_way_and_taken_over_is_counted():
    world = room()
    serve(world, A, A, A, A)
    serve(world, ("r2h1", ("r4h1",)))
    counts = world.core.view.warm_counts
    assert (counts.lit, counts.hits, counts.gave_way, counts.taken_over) == (5, 2, 2, 1)


def test_a_group_whose_racks_others_need_in_between_is_in_nobodys_way():
    """With one port a rack each of them would stand in the other's way for ever."""
    world, other = room(), ("r2h1", ("r4h1", "r5h1"))
    assert serve(world, *(A, other) * 6) == [False] * 12
    assert world.core.view.warm_counts.taken_over == 0 and states(world) == []


def test_a_job_that_was_disturbed_once_keeps_its_light_the_next_time():
    world, stranger = room(), ("r4h1", ("r3h1",))
    assert serve(world, A, A, A, A) == [False, False, True, True]
    assert serve(world, stranger, A, A) == [False, False, True]
    assert serve(world, stranger, A, ("r3h1", ("r5h1",)), A, A, A) == [False, False, False, False, False, True]
    assert world.core.view.warm_counts.taken_over == 3


def test_needs_of_others_that_leave_enough_do_not_count():
    world = room(ports=3)
    assert serve(world, A, ("r2h1", ("r4h1",)), A) == [False, False, True]


@pytest.mark.parametrize("number", [1, MAX_GROUPS, MAX_GROUPS + 1])
def test_of_very_many_groups_those_heard_of_last_are_remembered(number):
    groups = ReturningGroups()
    for index in range(number):
        for _ in range(2):
            groups.come(("t", f"h{index}", frozenset()), False, 60.0, 0.0)
            groups.go(("t", f"h{index}", frozenset()), (), 0.0)
    groups.come(("t", "h0", frozenset()), False, 60.0, 1.0)
    known = groups.go(("t", "h0", frozenset()), (), 2.0) is not None
    assert known == (number <= MAX_GROUPS) and len(groups._visits) <= MAX_GROUPS

"""Lit trees give way before somebody needs their pieces: a reserve is dark, and who asks waits for no disconnect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import DeviceDown, ElementQuarantined, FinishAsked, SettingsChanged, Tick
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.policy.returning_groups import MOST_GROUPS, ReturningGroups
from blast_controller.core.rollout.reservation_states import ReservationState
from tests.support.core import key_of, make_fabric, multicast, ready_world

SETTINGS = CoreSettings(keep_warm=60.0, warm_reserve=0.5, reconcile_every=None)
A, B, C = ("r1h1", ("r2h1", "r3h1")), ("r4h1", ("r5h1", "r6h1")), ("r7h1", ("r8h1", "r9h1"))
WIDE = ("r1h1", tuple(f"r{n}h1" for n in range(2, 9)))
"""Needs two splitters 1:4."""


def room(racks=9, splitters=(4, 4, 4, 4), settings=SETTINGS, **more):
    return ready_world(make_fabric(racks, splitters, **more), settings)


def number_of(world):
    return len(world.core.requests)


def ask(world, group):
    """A new request; its key."""
    key = f"k{number_of(world)}"
    world.submit(multicast(key, *group))
    world.settle()
    assert world.core.request(key_of(key)).state is PartState.ACTIVE
    return key


def finish(world, key):
    world.handle(FinishAsked(key_of(key), 0))
    world.settle()


def serve(world, *groups, seconds=1.0):
    """One request after the other, each done after a while; which of them found their light."""
    found = []
    for group in groups:
        before = world.core.view.warm_counts.hits
        key = ask(world, group)
        found.append(world.core.view.warm_counts.hits > before)
        world.now += seconds
        finish(world, key)
        world.now += seconds
        world.handle(Tick())
        world.settle()
    return found


def states(world):
    return [reservation.state for reservation in world.core.reservations]


def circuits(world):
    return set().union(*(switch.circuits for switch in world.switches.values()))


def orders(world):
    return [command for command in world.commands if isinstance(command, SetCircuits)]


def test_of_groups_that_never_come_back_nothing_is_in_the_way():
    world = room()
    for group in (A, ("r2h1", ("r1h1", "r4h1")), WIDE, ("r3h1", ("r2h1",))):
        world.commands.clear()
        key = ask(world, group)
        (order,) = orders(world)
        assert not any(change.disconnect for change in order.changes), "a lit tree had to go first"
        finish(world, key)
        assert states(world) == [] and circuits(world) == set()
    assert world.core.view.warm_counts.taken_over == 0


def test_a_group_that_comes_back_is_warm_from_its_third_request_on():
    assert serve(room(), A, A, A, A) == [False, False, True, True]
    assert serve(room(), A, B, A, B, A, B, A, B) == [False] * 4 + [True] * 4


def test_without_a_reserve_it_is_warm_from_its_second_request_on():
    assert serve(room(settings=replace(SETTINGS, warm_reserve=0.0)), A, A, A) == [False, True, True]


def test_with_everything_reserved_nothing_is_kept_but_for_a_group_that_is_alone():
    world = room(settings=replace(SETTINGS, warm_reserve=1.0))
    assert serve(world, A, B, A, B, A, B) == [False] * 6 and states(world) == []


def test_a_newcomer_is_kept_where_enough_is_dark_besides():
    assert serve(room(ports=2), A, A) == [False, True]
    assert serve(room(ports=2, splitters=(4,)), A, A) == [False, False], "the last splitter stays dark"


def test_who_stays_away_too_long_has_not_come_back():
    assert serve(room(), A, A, A, seconds=31.0) == [False, False, True]
    assert serve(room(), A, A, A, A, seconds=60.5) == [False] * 4


def test_half_of_the_splitters_stay_dark():
    world = room(splitters=(4, 4))
    serve(world, A, B, A, B, A, B)
    assert states(world) == [ReservationState.IDLE]
    assert [s.dark for s in world.core.view.reserves if s.ways == 4] == [1]


def test_jobs_that_take_turns_do_not_drive_each_other_out():
    """The oldest tree is always the next one to be asked for."""
    world = room(splitters=(4, 4))
    assert serve(world, *(A, B, C) * 6)[-9:] in ([True, False, False] * 3, [False, True, False] * 3)


def test_a_group_that_is_overdue_goes_before_those_that_are_not():
    world = room(splitters=(4, 4))
    serve(world, A, A, A)
    world.now += 5.0
    serve(world, B, B)
    assert serve(world, B, A) == [True, False]


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
    assert order.changes[0].disconnect and world.core.request(key_of("late")).state is PartState.ACTIVE
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


def test_nothing_is_told_to_a_switch_that_is_away():
    world = room()
    key = ask(world, A)
    world.handle(DeviceDown("ocs1", "gone"))
    world.switches["ocs1"].up = False
    world.commands.clear()
    world.handle(FinishAsked(key_of(key), 0))
    assert orders(world) == []
    world.connect_all()
    world.settle()
    assert states(world) == []


def test_a_larger_reserve_takes_effect_at_once():
    world = room(settings=replace(SETTINGS, warm_reserve=0.0))
    serve(world, A, B, A, B)
    assert states(world) == [ReservationState.IDLE] * 2
    world.handle(SettingsChanged(replace(SETTINGS, warm_reserve=1.0)))
    world.settle()
    assert states(world) == [] and world.core.view.warm_counts.gave_way == 2


def test_what_is_lit_when_keeping_is_switched_off_goes_with_a_reserve():
    world = room()
    serve(world, A, A)
    world.handle(SettingsChanged(replace(SETTINGS, keep_warm=0.0, warm_reserve=1.0)))
    world.settle()
    assert states(world) == []


def test_a_restart_takes_nothing_down_that_was_kept():
    world = room()
    serve(world, A, A)
    before = circuits(world)
    world.restart()
    assert states(world) == [ReservationState.IDLE]
    world.connect_all()
    world.settle()
    assert circuits(world) == before != set()
    assert serve(world, A, A) == [True, True], "nor what it was kept for"


def test_a_quarantine_does_not_count_as_giving_way():
    world = room()
    serve(world, A, A)
    world.handle(ElementQuarantined("splitter:s1", "broken"))
    world.settle()
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


@pytest.mark.parametrize("number", [1, MOST_GROUPS, MOST_GROUPS + 1])
def test_of_very_many_groups_those_heard_of_last_are_remembered(number):
    groups = ReturningGroups()
    for index in range(number):
        for _ in range(2):
            groups.come(("t", f"h{index}", frozenset()), False, 60.0, 0.0)
            groups.go(("t", f"h{index}", frozenset()), (), 0.0)
    groups.come(("t", "h0", frozenset()), False, 60.0, 1.0)
    known = groups.go(("t", "h0", frozenset()), (), 2.0) is not None
    assert known == (number <= MOST_GROUPS) and len(groups._visits) <= MOST_GROUPS

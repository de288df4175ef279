"""Random requests: the reserve stays dark, and a group that fits into it waits for no disconnect."""

from __future__ import annotations

import math
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.inventory.kinds import PieceKind
from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import FinishRequested, TimePassed
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.policy.returning_groups import MAX_TRUST, ReturningGroups
from blast_controller.core.policy.warm_eviction import EvictionOrder
from tests.support.controller.core import World, key_of, make_fabric, multicast, ready_world
from tests.support.controller.core_checks import check_reserve, has_fabric_to_itself, recounted

FAN_OUT = 4
FABRIC = make_fabric(6, [FAN_OUT] * 5, ports=2)
HOSTS = [f"r{n}h1" for n in range(1, 7)]

groups = st.lists(st.sampled_from(HOSTS), min_size=2, max_size=6, unique=True).map(tuple)
# Few groups, so that some come back.
histories = st.lists(groups, min_size=1, max_size=4).flatmap(
    lambda some: st.lists(
        st.tuples(st.sampled_from(some), st.sampled_from(["ask", "ask", "finish", "finish", "wait"])), max_size=25
    )
)


def is_below_reserve(world: World, group: tuple[str, ...]) -> bool:
    """Return whether a group fits into the dark reserve of each kind and is not alone on the fabric."""
    idle, _ = recounted(world.core)
    reserve = {kind: int(world.core.settings.warm_reserve * number) for (_, kind), number in idle.items()}
    splitters = math.ceil((len(group) - 2) / (FAN_OUT - 1))
    enough = reserve.get(f"1:{FAN_OUT}", 0) >= splitters and all(reserve.get(host[:2]) for host in group)
    return enough and not has_fabric_to_itself(world.core, world.now)


@given(histories, st.sampled_from([0.5, 0.7, 1.0]))
def test_group_within_the_reserve_waits_for_no_disconnect(history, share):
    world = ready_world(FABRIC, CoreSettings(keep_warm=20.0, warm_reserve=share, reconcile_every=None))
    keys = count()
    lit: dict[tuple[str, ...], list[str]] = {}
    for group, action in history:
        match action:
            case "ask":
                key, (sender, *receivers) = f"k{next(keys)}", group
                easy = is_below_reserve(world, group)
                world.commands.clear()
                world.submit(multicast(key, sender, receivers, size=10**11))
                orders = [command for command in world.commands if isinstance(command, SetCircuits)]
                world.settle()
                request = world.core.request(key_of(key))
                if easy:
                    assert request.state is PartState.ACTIVE
                    assert not any(change.disconnect for order in orders for change in order.changes)
                if request.state is PartState.ACTIVE:
                    lit.setdefault(group, []).append(key)
            case "finish" if lit.get(group):
                world.handle(FinishRequested(key_of(lit[group].pop()), 0))
            case "wait":
                world.now += 7.0
                world.handle(TimePassed())
        check_reserve(world.core, world.now)
        world.settle()
        check_reserve(world.core, world.now)
        for key in [key for found in lit.values() for key in found]:
            assert world.state(key) is PartState.ACTIVE


KINDS = [PieceKind("ocs1", 0, "r1"), PieceKind("ocs1", 0, "r2"), PieceKind("ocs1", 4, "")]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.frozensets(st.sampled_from(KINDS), min_size=1),
            st.none() | st.integers(0, 9).map(float),
        ),
        max_size=30,
    ),
    st.integers(0, 9).map(float),
)
def test_eviction_order_equals_that_of_a_full_list(steps, now):
    """Each step removes a known number or adds a new one."""
    order, kept = EvictionOrder(), {}
    for number, kinds, due in steps:
        if kept.pop(number, None) is None:
            kept[number] = (kinds, due)
            order.add(number, kinds, due)
        else:
            order.remove(number)
        for kind in KINDS:
            held = {n: when for n, (kinds_of, when) in kept.items() if kind in kinds_of}
            assert order.newcomer(kind) == next((n for n, when in held.items() if when is None), None)
            overdue = sorted((when, n) for n, when in held.items() if when is not None and when <= now)
            others = sorted((when, n) for n, when in held.items() if when is not None and when > now)
            expected = overdue[0][1] if overdue else others[-1][1] if others else None
            assert order.trusted(kind, now) == expected
    assert len(order) == len(kept)


WITHIN = 5.0
visits = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["come", "come", "go", "go", "need", "find"]), st.integers(0, 4)),
    max_size=40,
)
HELD = {"a": KINDS[:1], "b": KINDS[1:], "c": KINDS}
"""The kinds that each group uses; others take the last elements of KINDS[1] and KINDS[2]."""


@given(visits)
def test_trust_and_solitude_follow_the_whole_history(history):
    groups, now, log = ReturningGroups(), 0.0, []
    for name, action, pause in history:
        now += pause
        group = (name, name, frozenset(name))
        match action:
            case "need":
                groups.needed.update(KINDS[1:])
            case "come" | "find":
                groups.come(group, action == "find", WITHIN, now)
            case "go":
                assert groups.go(group, HELD[name], now) == away_if_trusted(name, log)
        log.append((name, action, now))
        recent = {other for other, deed, at in log if deed != "need" and now - at <= WITHIN}
        assert groups.is_alone(WITHIN, now) == (len(recent) < 2)


def away_if_trusted(name: str, log: list[tuple[str, str, float]]) -> float | None:
    """Return how long a group was away before its latest return, or None if it is not trusted."""
    trust, away, left, disturbed = 0, 0.0, None, False
    for other, action, at in log:
        if action == "need":
            disturbed |= name != "a"
        elif other == name and action == "go":
            left, disturbed = at, False
        elif other == name and left is not None:
            away, left = at - left, None
            trust += 1 if action == "find" or not disturbed else -1
            trust = 0 if away > WITHIN else max(0, min(trust, MAX_TRUST))
    return away if trust else None

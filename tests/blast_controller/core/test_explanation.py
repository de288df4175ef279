"""Explanations of requests in random worlds, compared with the later course of events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from blast_controller.core.model.errors import RequestError
from blast_controller.core.model.events import (
    ElementQuarantined,
    ExtendRequested,
    FinishRequested,
    RequestSubmitted,
    WithdrawRequested,
)
from blast_controller.core.model.fabric import StaticTree
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension, MulticastRequest, RequestKey
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from tests.support.controller.core import World, make_fabric, ready_world

RACKS = 5
LONG_AFTER = 2_000.0
"""Seconds; longer than all leases of a history take one after the other: 12 of at most 100 s and what is kept warm."""
TENANTS = ("physics", "biology")


@dataclass(frozen=True)
class Place:
    """A fabric and the settings of its core."""

    splitters: tuple[int, ...]
    ports: int
    switches: int
    loop_leaf: bool
    max_splitters_per_tree: int | None
    max_of_physics: int | None
    keep_warm: float
    has_static_tree: bool

    def world(self, tenants: tuple[str, str] = TENANTS) -> World:
        fabric = make_fabric(RACKS, self.splitters, self.ports, switches=self.switches)
        if self.has_static_tree:
            tree = StaticTree("bus", "r1", 99, None, {"r2": 99, "r3": 99, "r4": 99}, frozenset())
            fabric = replace(fabric, static_trees={"bus": tree})
        limits = {tenants[0]: TenantLimits(max_splitters=self.max_of_physics)}
        return ready_world(
            fabric,
            CoreSettings(
                loop_leaf=self.loop_leaf,
                max_splitters_per_tree=self.max_splitters_per_tree,
                keep_warm=self.keep_warm,
                tenants=limits,
            ),
        )


places = st.builds(
    Place,
    st.lists(st.sampled_from([2, 3, 4]), min_size=1, max_size=4).map(tuple),
    st.integers(1, 2),
    st.integers(1, 2),
    st.booleans(),
    st.none() | st.integers(1, 2),
    st.none() | st.integers(1, 2),
    st.sampled_from([0.0, 30.0]),
    st.booleans(),
)
hosts = st.builds("r{}h{}".format, st.integers(1, RACKS), st.integers(1, 2))
groups = st.tuples(hosts, st.frozensets(hosts, min_size=3, max_size=6))
asks = st.tuples(st.just("ask"), groups, st.sampled_from([10**9, 2 * 10**10, 5 * 10**10]), st.integers(0, 1))
deeds = st.one_of(
    asks,
    st.tuples(st.just("wait"), st.floats(0.1, 9.0)),
    st.tuples(st.just("finish"), st.integers(0, 9)),
    st.tuples(st.just("lose"), st.sampled_from(["ocs1", 2, 5])),
    st.tuples(st.just("quarantine"), st.sampled_from(["port:r2/50", "port:r5/50", "splitter:s1", "output:s2/10"])),
)
histories = st.builds(
    lambda first, then, last: [*first, *then, *last],
    st.lists(asks, min_size=1, max_size=4),
    st.lists(deeds, max_size=6),
    st.lists(asks, min_size=1, max_size=2),
)


def happen(world: World, history: list, tenants: tuple[str, str] = TENANTS, keys: tuple[str, str] = ("k", "k")) -> None:
    """Apply a history, and skip the events that the core rejects."""
    for number, (kind, *more) in enumerate(history):
        try:
            _do(world, number, kind, more, tenants, keys)
        except RequestError:
            continue
        world.settle()


def _do(world: World, number: int, kind: str, more: list, tenants: tuple[str, str], keys: tuple[str, str]) -> None:
    match kind, *more:
        case "ask", (sender, receivers), size, tenant:
            others = tuple(sorted(receivers - {sender}))
            world.handle(
                RequestSubmitted(MulticastRequest(f"{keys[tenant]}{number}", tenants[tenant], sender, others, size))
            )
        case "wait", seconds:
            world.advance_to(world.now + seconds)
        case "finish", which:
            names = list(world.core.requests)
            if names:
                world.handle(FinishRequested(names[which % len(names)], 0))
        case "lose", device:
            if world.device(device).up:
                world.lose(device)
        case "quarantine", element:
            if element in world.core.view.elements:
                world.handle(ElementQuarantined(element, "dirty"))


def waiting(world: World) -> list[RequestKey]:
    return [name for name, request in world.core.requests.items() if request.state is PartState.PENDING]


def explanation_of(world: World, name: RequestKey, viewer: str | None = None):
    return world.core.explain(name, viewer, world.now)


def state_after_leaving_out(
    place: Place, history: list, name: RequestKey, receivers: tuple[str, ...]
) -> PartState | None:
    """Return the state of a request directly after these receivers leave, or None if the core rejects the change."""
    world = place.world()
    happen(world, history)
    try:
        world.handle(ExtendRequested(name, Extension(remove_receivers=receivers)))
    except RequestError:
        return None
    world.settle()
    return world.core.request(name).state


def fewer_racks(world: World, name: RequestKey, than: int) -> Iterator[tuple[str, ...]]:
    """Yield the receivers in each choice of fewer than `than` of the request's racks, but never in all of them."""
    fabric = world.fabric
    receivers = world.core.request(name).current.receivers
    racks = sorted({fabric.hosts[host].rack for host in receivers})
    for count in range(1, min(than, len(racks))):
        for chosen in combinations(racks, count):
            yield tuple(host for host in receivers if fabric.hosts[host].rack in chosen)


@settings(max_examples=40, deadline=None)
@given(places, histories)
def test_smallest_change_starts_the_request_and_is_minimal(place, history):
    world = place.world()
    happen(world, history)
    for name in waiting(world):
        found = explanation_of(world, name)
        if found.leave_out:
            assert state_after_leaving_out(place, history, name, found.leave_out) is PartState.ACTIVE, found
        if world.core.view.kept_free_for not in (None, (name, 0)):
            # Explanations do not foresee resources that an overdue request leaves free.
            continue
        racks = len({world.fabric.hosts[host].rack for host in found.leave_out}) or RACKS
        for receivers in fewer_racks(world, name, racks):
            assert state_after_leaving_out(place, history, name, receivers) is not PartState.ACTIVE, (found, receivers)


# A warm tree that a lost ToR keeps from being released has handed its port over, and gets it back.
@example(
    Place((2,), 1, 1, False, None, None, 30.0, False),
    [
        ("ask", ("r1h1", frozenset({"r1h2", "r1h1", "r2h1"})), 10**9, 0),
        ("finish", 0),
        ("lose", 2),
        ("ask", ("r1h1", frozenset({"r1h2", "r1h1", "r3h1"})), 10**9, 0),
        ("ask", ("r1h1", frozenset({"r1h2", "r1h1", "r3h1"})), 10**9, 0),
    ],
)
@settings(max_examples=50, deadline=None)
@given(places, histories)
def test_lone_pending_request_starts_at_the_predicted_time(place, history):
    world = place.world()
    happen(world, history)
    names = waiting(world)
    for other in names[1:]:
        world.handle(WithdrawRequested(other))
    world.settle()
    if not names or world.core.request(names[0]).state is not PartState.PENDING:
        return
    found = explanation_of(world, names[0])
    assert found.blockers, found
    if found.start is None:
        world.advance_to(world.now + LONG_AFTER)
        assert world.core.request(names[0]).state is PartState.PENDING, found
        return
    start = world.now + found.start
    world.advance_to(max(world.now, start - 1e-3))
    assert world.core.request(names[0]).state is PartState.PENDING, found
    world.advance_to(start + 1e-9)
    assert world.core.request(names[0]).state is PartState.ACTIVE, found


@settings(max_examples=40, deadline=None)
@given(places, histories)
def test_explanation_reveals_no_names_of_other_tenants(place, history):
    seen = []
    for key in ("secret", "hidden"):
        world = place.world()
        happen(world, history, keys=("mine", key))
        mine = [name for name in world.core.requests if name[0] == TENANTS[0]]
        seen.append([explanation_of(world, name, TENANTS[0]) for name in mine])
        assert not any(word in repr(seen[-1]) for word in (key, TENANTS[1]))
    assert seen[0] == seen[1]

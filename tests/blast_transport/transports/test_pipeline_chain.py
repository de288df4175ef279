"""Whole chains of pure cores under faults: whoever lives ends with the same bytes, and the report names the dead."""

from __future__ import annotations

import itertools
import random
from functools import lru_cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blast_transport.transports.pipeline.protocol.core import SourceCore
from blast_transport.transports.pipeline.protocol.events import FromSuccessor, ProbeNodes, Started
from blast_transport.transports.pipeline.protocol.messages import Get, PipelineHeartbeat
from blast_transport.transports.pipeline.protocol.phase import ChainMember, NodeOutcome, PipelinePhase
from tests.support.pipeline_world import Faults, World

contents = st.integers(0, 300_000).map(lambda length: random.Random(length).randbytes(length))
times = st.floats(0, 2.5)
kills = st.builds(Faults, killed=times)
freezes = st.builds(Faults, frozen=times)
losses = st.builds(Faults, vanished=times)
sound = st.builds(Faults)
chains = st.lists(st.one_of(sound, kills, freezes), min_size=2, max_size=7)


def check(world: World) -> None:
    """Every live host is complete; the report names the faulty, and each of those that lacks something."""
    world.run()
    source = world.hosts[0]
    assert source.reported is not None
    named = set(source.reported)
    faulty = {f"n{host.place}" for host in world.hosts if host.faulty}
    assert named <= faulty, source.reported
    for host in world.hosts[1:]:
        if not host.faulty:
            assert world.complete(host), (host.place, host.ended, len(host.received))
        elif bytes(host.received) != world.content:
            assert f"n{host.place}" in named


@settings(max_examples=120, deadline=None)
@given(contents, st.lists(st.one_of(sound, sound, kills, freezes, losses), min_size=1, max_size=9))
def test_the_living_end_with_the_same_bytes(content: bytes, faults: list[Faults]) -> None:
    check(World(content, faults))


@settings(max_examples=60, deadline=None)
@given(contents, st.integers(1, 5), st.integers(1, 4), st.integers(0, 3), times, st.booleans())
def test_neighbors_that_fail_at_once(
    content: bytes, before: int, failing: int, after: int, when: float, frozen: bool
) -> None:
    fault = Faults(frozen=when) if frozen else Faults(killed=when)
    check(World(content, [Faults()] * before + [fault] * failing + [Faults()] * after))


@pytest.mark.parametrize("rate", [20.0, 5_000.0, 20_000.0])
@pytest.mark.parametrize("place", [1, 2, 4])
def test_a_slow_outgoing_link_costs_its_node_and_one_other(place: int, rate: float) -> None:
    """Its first successor is excluded: the link may be theirs. As the second one waits too, the node itself leaves."""
    content = random.Random(1).randbytes(1_500_000)
    honest = World(content, [Faults()] * 7)
    check(honest)
    faults = [Faults(link=rate) if number == place else Faults() for number in range(1, 8)]
    world = World(content, faults)
    world.run()
    left = [host.place for host in world.hosts[1:] if not world.complete(host)]
    assert left == [place, place + 1]
    assert "outgoing link" in world.hosts[place].ended.reason
    assert world.now < 3 * honest.now + 2


@pytest.mark.parametrize("first", [2, 4, 7])
def test_a_slow_path_between_racks_costs_two_nodes_at_most(first: int) -> None:
    """The sender serves those that left: if all before it did in turn, it would serve them all over the same path."""
    world = World(random.Random(1).randbytes(300_000), [Faults()] * 7, between_racks=(first, 4_000.0))
    world.run()
    assert sum(not world.complete(host) for host in world.hosts[1:]) <= 2


@settings(max_examples=60, deadline=None)
@given(contents, st.integers(1, 6), times, st.booleans())
def test_all_but_the_source_may_fail(content: bytes, nodes: int, when: float, frozen: bool) -> None:
    world = World(content, [Faults(frozen=when) if frozen else Faults(killed=when)] * nodes)
    check(world)
    ended = world.hosts[0].ended
    assert ended is not None
    assert ended.outcome in (NodeOutcome.FAILED, NodeOutcome.COMPLETE)


@settings(max_examples=60, deadline=None)
@given(contents, st.integers(2, 6), st.data())
def test_who_wakes_up_late_harms_nobody(content: bytes, nodes: int, data: st.DataObject) -> None:
    faults = [Faults() for _ in range(nodes)]
    place = data.draw(st.integers(0, nodes - 1))
    start = data.draw(times)
    faults[place] = Faults(frozen=start, thawed=start + data.draw(st.floats(0.01, 5)))
    world = World(content, faults)
    world.run()
    sleeper, source = world.hosts[place + 1], world.hosts[0]
    for host in world.hosts[1:]:
        if host is not sleeper:
            assert world.complete(host), (host.place, host.ended)
    assert sleeper.ended is not None
    assert source.reported is not None
    assert set(source.reported) <= {f"n{sleeper.place}"}
    if sleeper.ended.outcome is not NodeOutcome.COMPLETE:
        assert sleeper.ended.outcome in (NodeOutcome.EXCLUDED, NodeOutcome.FAILED)
        assert source.reported


@settings(max_examples=60, deadline=None)
@given(contents, st.integers(1, 6), st.data())
def test_rings_that_are_large_enough_lose_nothing(content: bytes, nodes: int, data: st.DataObject) -> None:
    """One failure needs twice what a node may be ahead of its successor."""
    faults = [Faults() for _ in range(nodes)]
    faults[data.draw(st.integers(0, nodes - 1))] = data.draw(st.one_of(kills, freezes))
    check(World(content, faults, rings=dict.fromkeys(range(1, nodes + 1), 100_000)))


@settings(max_examples=60, deadline=None)
@given(contents, chains)
def test_what_is_forgotten_is_fetched_from_the_source(content: bytes, faults: list[Faults]) -> None:
    check(World(content, faults, rings=dict.fromkeys(range(1, len(faults) + 1), 5_000)))


@settings(max_examples=80, deadline=None)
@given(contents, chains)
def test_what_the_source_forgot_too_ends_the_rest_of_the_chain(content: bytes, faults: list[Faults]) -> None:
    nodes = len(faults)
    world = World(content, faults, rings=dict.fromkeys(range(nodes + 1), 5_000), source_rate=300_000.0)
    world.run()
    source = world.hosts[0]
    lacking = [host for host in world.hosts[1:] if bytes(host.received) != content]
    assert {f"n{host.place}" for host in lacking} <= set(source.reported or {})
    # From the first that lives and lacks something on, nobody goes on.
    first = next((host.place for host in lacking if not host.faulty), nodes + 1)
    for host in world.hosts[1:]:
        assert host.faulty or world.complete(host) == (host.place < first), (host.place, host.ended)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.data())
def test_the_slow_one_is_excluded_and_no_other(nodes: int, data: st.DataObject) -> None:
    content = random.Random(3).randbytes(1_500_000)
    place = data.draw(st.integers(0, nodes - 1))
    faults = [Faults() for _ in range(nodes)]
    faults[place] = Faults(rate=20_000.0)
    rings = dict.fromkeys(range(1, nodes + 1), 100_000) if data.draw(st.booleans()) else {}
    world = World(content, faults, slowest_rate=100_000.0, rings=rings)
    check(world)
    assert set(world.hosts[0].reported or {}) == {f"n{place + 1}"}
    assert (world.hosts[0].reported or {})[f"n{place + 1}"].startswith("excluded: ")
    assert world.now < 12


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.data())
def test_one_that_takes_less_than_half_of_what_comes_is_excluded_without_being_told(
    nodes: int, data: st.DataObject
) -> None:
    """But for the first: the source of a file has nothing to compare it with."""
    place = data.draw(st.integers(1, nodes - 1))
    faults = [Faults() for _ in range(nodes)]
    faults[place] = Faults(rate=40_000.0)
    world = World(random.Random(3).randbytes(1_500_000), faults)
    check(world)
    assert list(world.hosts[0].reported or {}) == [f"n{place + 1}"]
    assert world.now < 12


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.data())
def test_behind_a_slow_way_one_is_excluded_and_not_everybody(nodes: int, data: st.DataObject) -> None:
    """All are slow from one on, as behind a slow way: the first of them is the only one that it can be put down to."""
    first = data.draw(st.integers(1, nodes - 1))
    faults = [Faults(rate=40_000.0) if place >= first else Faults() for place in range(nodes)]
    world = World(random.Random(3).randbytes(400_000), faults)
    check(world)
    assert len(world.hosts[0].reported or {}) <= 1


FAR_BEHIND = "excluded: its store is far behind"


def seconds_of(content: bytes, faults: list[Faults]) -> tuple[float, dict[str, str]]:
    """How long a phase takes for those without a fault, and what its report says."""
    world = World(content, faults)
    check(world)
    return max(host.ended_at for host in world.hosts if not host.faulty), world.hosts[0].reported or {}


@lru_cache(maxsize=16)
def calm_seconds(content: bytes, nodes: int) -> float:
    """How long it takes where nothing is wrong: the world has no chance in it."""
    seconds, reported = seconds_of(content, [Faults()] * nodes)
    assert reported == {}
    return seconds


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.data())
def test_whose_store_is_slow_makes_nobody_wait(nodes: int, data: st.DataObject) -> None:
    """The others are done as if it were not there: until it is excluded, what waits for it goes on from memory."""
    content = random.Random(3).randbytes(1_500_000)
    slow = Faults(store=data.draw(st.floats(20_000.0, 160_000.0)))
    place = data.draw(st.integers(0, nodes - 1))
    seconds, reported = seconds_of(content, [slow if other == place else Faults() for other in range(nodes)])
    assert reported == {f"n{place + 1}": FAR_BEHIND}
    assert seconds < calm_seconds(content, nodes) + 0.3


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(100_000, 1_500_000), st.floats(20_000, 200_000), st.data())
def test_where_all_stores_are_slow_nobody_is_excluded(nodes: int, size: int, rate: float, data: st.DataObject) -> None:
    faults = [Faults(store=data.draw(st.floats(0.95, 1.05)) * rate) for _ in range(nodes)]
    _, reported = seconds_of(random.Random(3).randbytes(size), faults)
    assert reported == {}


def test_the_only_one_is_waited_for_however_slow_it_is() -> None:
    content = random.Random(3).randbytes(60_000)
    assert seconds_of(content, [Faults(store=2_000.0)])[1] == {}
    _, reported = seconds_of(content, [Faults(store=2_000.0), Faults(killed=0.0), Faults(killed=0.1)])
    assert set(reported) == {"n2", "n3"}


@pytest.mark.parametrize("kind", ["killed", "frozen"])
def test_a_failure_costs_one_silence(kind: str) -> None:
    content = random.Random(4).randbytes(800_000)
    calm = World(content, [Faults()] * 7)
    check(calm)
    hit = World(content, [Faults(**{kind: 1.0}) if place == 2 else Faults() for place in range(7)])
    check(hit)
    assert hit.now - calm.now < (0.2 if kind == "killed" else 1.4)


@pytest.mark.parametrize("kind", ["frozen", "vanished"])
@pytest.mark.parametrize("number", [2, 26])
def test_those_that_fail_beside_each_other_cost_what_one_costs(kind: str, number: int) -> None:
    content = random.Random(5).randbytes(500_000)
    seconds = {}
    for failing in (1, number):
        faults = [Faults(**{kind: 1.0}) if 4 <= place < 4 + failing else Faults() for place in range(34)]
        world = World(content, faults)
        check(world)
        seconds[failing] = world.now
    assert seconds[number] - seconds[1] < 0.2


def test_who_is_silent_again_and_again_is_not_probed_each_time() -> None:
    core = SourceCore(
        PipelinePhase(1, 1, bytes(16), 0, tuple(ChainMember(f"n{i}", "h", 1) for i in range(40)), 0), 10**9
    )
    core.handle(Started(), 0.0)
    core.handle(FromSuccessor(Get(0)), 0.0)
    probed = []
    for turn in range(100):
        now = 0.6 * turn
        probed += [(now, command) for command in core.tick(now) if isinstance(command, ProbeNodes)]
        core.handle(FromSuccessor(PipelineHeartbeat(0, held_up=True)), now)
    assert 1 < len(probed) <= 60
    assert all(len(command.places) == 32 for _, command in probed)
    times = [when for when, _ in probed]
    assert all(later - earlier >= 1.0 for earlier, later in itertools.pairwise(times))


def test_who_is_silent_for_a_moment_makes_nobody_behind_it_fail() -> None:
    content = random.Random(5).randbytes(800_000)
    faults = [Faults(frozen=1.0, thawed=1.8) if place in (4, 5, 6) else Faults() for place in range(10)]
    world = World(content, faults)
    world.run()
    assert world.hosts[0].reported == {}
    assert all(world.complete(host) for host in world.hosts[1:])


@pytest.mark.parametrize(("share", "step"), [(2, 0.1), (5, 0.0), (10, 0.1), (10, 0.0)])
def test_the_papers_hundred_nodes(share: int, step: float) -> None:
    """Section IV-G: 2, 5 and 10 % of 100 nodes are killed, at once and one after the other."""
    places = {2: (29, 69), 5: (9, 29, 49, 69, 89), 10: (9, 19, 29, 39, 49, 59, 69, 79, 89, 99)}[share]
    content = random.Random(6).randbytes(400_000)
    faults = [Faults() for _ in range(100)]
    for number, place in enumerate(places):
        faults[place - 1] = Faults(killed=0.5 + number * step)
    world = World(content, faults)
    check(world)
    assert set(world.hosts[0].reported or {}) == {f"n{place}" for place in places}


@settings(max_examples=30, deadline=None)
@example(100_000, 2, 2, 1, 0.0625)
@given(st.integers(100_000, 300_000), st.integers(1, 4), st.integers(2, 4), st.integers(1, 3), st.floats(0.05, 0.6))
def test_neighbors_that_are_killed_at_once_cost_no_more_time_than_one(
    length: int, before: int, failing: int, after: int, share: float
) -> None:
    """Though the chain is young: who has got data knows that those behind it have heard of the phase."""
    content = random.Random(length).randbytes(length)

    def seconds(faults: list[Faults]) -> float:
        world = World(content, faults)
        check(world)
        return world.now

    nodes = before + failing + after
    when = share * seconds([Faults()] * nodes)
    one = seconds([Faults()] * before + [Faults(killed=when)] + [Faults()] * (failing + after - 1))
    all_of_them = seconds([Faults()] * before + [Faults(killed=when)] * failing + [Faults()] * after)
    assert all_of_them <= one + 0.3

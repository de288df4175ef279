"""Whole chains of pure cores under faults: live nodes complete, and the report names the failed ones."""

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
from tests.support.transport.pipeline_world import Faults, World

contents = st.integers(0, 300_000).map(lambda length: random.Random(length).randbytes(length))
times = st.floats(0, 2.5)
kills = st.builds(Faults, killed=times)
freezes = st.builds(Faults, frozen=times)
losses = st.builds(Faults, vanished=times)
sound = st.builds(Faults)
chains = st.lists(st.one_of(sound, kills, freezes), min_size=2, max_size=7)


def check(world: World) -> None:
    """Check that every live host is complete, and that the report names only faulty hosts and all incomplete ones."""
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
def test_live_nodes_complete_with_same_bytes(content: bytes, faults: list[Faults]) -> None:
    check(World(content, faults))


@settings(max_examples=60, deadline=None)
@given(contents, st.integers(1, 5), st.integers(1, 4), st.integers(0, 3), times, st.booleans())
def test_chain_survives_simultaneous_failure_of_neighbors(
    content: bytes, before: int, failing: int, after: int, when: float, frozen: bool
) -> None:
    fault = Faults(frozen=when) if frozen else Faults(killed=when)
    check(World(content, [Faults()] * before + [fault] * failing + [Faults()] * after))


@pytest.mark.parametrize("rate", [20.0, 5_000.0, 20_000.0])
@pytest.mark.parametrize("place", [1, 2, 4])
def test_slow_outgoing_link_excludes_its_node_and_successor(place: int, rate: float) -> None:
    """The first successor is excluded, since the link may be its own; as the second waits too, the node leaves."""
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
def test_slow_path_between_racks_excludes_two_nodes_or_fewer(first: int) -> None:
    """The sender serves excluded nodes; if all nodes left one by one, it would use the same path for all."""
    world = World(random.Random(1).randbytes(300_000), [Faults()] * 7, between_racks=(first, 4_000.0))
    world.run()
    assert sum(not world.complete(host) for host in world.hosts[1:]) <= 2


@settings(max_examples=60, deadline=None)
@given(contents, st.integers(1, 6), times, st.booleans())
def test_chain_ends_although_all_nodes_fail(content: bytes, nodes: int, when: float, frozen: bool) -> None:
    world = World(content, [Faults(frozen=when) if frozen else Faults(killed=when)] * nodes)
    check(world)
    ended = world.hosts[0].ended
    assert ended is not None
    assert ended.outcome in (NodeOutcome.FAILED, NodeOutcome.COMPLETE)


@settings(max_examples=60, deadline=None)
@given(contents, st.integers(2, 6), st.data())
def test_node_that_resumes_late_does_not_affect_others(content: bytes, nodes: int, data: st.DataObject) -> None:
    faults = [Faults() for _ in range(nodes)]
    place = data.draw(st.integers(0, nodes - 1))
    start = data.draw(times)
    faults[place] = Faults(frozen=start, thawed=start + data.draw(st.floats(0.01, 5)))
    world = World(content, faults)
    world.run()
    resumed, source = world.hosts[place + 1], world.hosts[0]
    for host in world.hosts[1:]:
        if host is not resumed:
            assert world.complete(host), (host.place, host.ended)
    assert resumed.ended is not None
    assert source.reported is not None
    assert set(source.reported) <= {f"n{resumed.place}"}
    if resumed.ended.outcome is not NodeOutcome.COMPLETE:
        assert resumed.ended.outcome in (NodeOutcome.EXCLUDED, NodeOutcome.FAILED)
        assert source.reported


@settings(max_examples=60, deadline=None)
@given(contents, st.integers(1, 6), st.data())
def test_sufficient_ring_buffers_lose_no_data(content: bytes, nodes: int, data: st.DataObject) -> None:
    """One failure requires twice the distance that a node may be ahead of its successor."""
    faults = [Faults() for _ in range(nodes)]
    faults[data.draw(st.integers(0, nodes - 1))] = data.draw(st.one_of(kills, freezes))
    check(World(content, faults, rings=dict.fromkeys(range(1, nodes + 1), 100_000)))


@settings(max_examples=60, deadline=None)
@given(contents, chains)
def test_forgotten_data_is_fetched_from_source(content: bytes, faults: list[Faults]) -> None:
    check(World(content, faults, rings=dict.fromkeys(range(1, len(faults) + 1), 5_000)))


@settings(max_examples=80, deadline=None)
@given(contents, chains)
def test_data_forgotten_by_source_ends_rest_of_chain(content: bytes, faults: list[Faults]) -> None:
    nodes = len(faults)
    world = World(content, faults, rings=dict.fromkeys(range(nodes + 1), 5_000), source_rate=300_000.0)
    world.run()
    source = world.hosts[0]
    lacking = [host for host in world.hosts[1:] if bytes(host.received) != content]
    assert {f"n{host.place}" for host in lacking} <= set(source.reported or {})
    # No node completes from the first live incomplete one on.
    first = next((host.place for host in lacking if not host.faulty), nodes + 1)
    for host in world.hosts[1:]:
        assert host.faulty or world.complete(host) == (host.place < first), (host.place, host.ended)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.data())
def test_only_slow_node_is_excluded(nodes: int, data: st.DataObject) -> None:
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
def test_node_below_half_of_incoming_rate_is_excluded(nodes: int, data: st.DataObject) -> None:
    """Except the first node: the source of a file has no incoming rate to compare it with."""
    place = data.draw(st.integers(1, nodes - 1))
    faults = [Faults() for _ in range(nodes)]
    faults[place] = Faults(rate=40_000.0)
    world = World(random.Random(3).randbytes(1_500_000), faults)
    check(world)
    assert list(world.hosts[0].reported or {}) == [f"n{place + 1}"]
    assert world.now < 12


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.data())
def test_slow_path_excludes_only_first_node_behind_it(nodes: int, data: st.DataObject) -> None:
    """All nodes from one on are slow, as behind a slow path, so only the first can be the cause."""
    first = data.draw(st.integers(1, nodes - 1))
    faults = [Faults(rate=40_000.0) if place >= first else Faults() for place in range(nodes)]
    world = World(random.Random(3).randbytes(400_000), faults)
    check(world)
    assert len(world.hosts[0].reported or {}) <= 1


FAR_BEHIND = "excluded: its store is far behind"


def seconds_of(content: bytes, faults: list[Faults]) -> tuple[float, dict[str, str]]:
    """Return the duration of a phase for the nodes without a fault, and its report."""
    world = World(content, faults)
    check(world)
    return max(host.ended_at for host in world.hosts if not host.faulty), world.hosts[0].reported or {}


@lru_cache(maxsize=16)
def calm_seconds(content: bytes, nodes: int) -> float:
    """Return the duration without faults, which is deterministic."""
    seconds, reported = seconds_of(content, [Faults()] * nodes)
    assert reported == {}
    return seconds


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.data())
def test_slow_store_does_not_delay_other_nodes(nodes: int, data: st.DataObject) -> None:
    """Until the node is excluded, it forwards unwritten data from memory."""
    content = random.Random(3).randbytes(1_500_000)
    slow = Faults(store=data.draw(st.floats(20_000.0, 160_000.0)))
    place = data.draw(st.integers(0, nodes - 1))
    seconds, reported = seconds_of(content, [slow if other == place else Faults() for other in range(nodes)])
    assert reported == {f"n{place + 1}": FAR_BEHIND}
    assert seconds < calm_seconds(content, nodes) + 0.3


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(100_000, 1_500_000), st.floats(20_000, 200_000), st.data())
def test_no_node_is_excluded_if_all_stores_are_slow(nodes: int, size: int, rate: float, data: st.DataObject) -> None:
    faults = [Faults(store=data.draw(st.floats(0.95, 1.05)) * rate) for _ in range(nodes)]
    _, reported = seconds_of(random.Random(3).randbytes(size), faults)
    assert reported == {}


def test_only_remaining_node_is_never_excluded_as_slow() -> None:
    content = random.Random(3).randbytes(60_000)
    assert seconds_of(content, [Faults(store=2_000.0)])[1] == {}
    _, reported = seconds_of(content, [Faults(store=2_000.0), Faults(killed=0.0), Faults(killed=0.1)])
    assert set(reported) == {"n2", "n3"}


@pytest.mark.parametrize("kind", ["killed", "frozen"])
def test_failed_node_delays_chain_by_one_timeout(kind: str) -> None:
    content = random.Random(4).randbytes(800_000)
    calm = World(content, [Faults()] * 7)
    check(calm)
    hit = World(content, [Faults(**{kind: 1.0}) if place == 2 else Faults() for place in range(7)])
    check(hit)
    assert hit.now - calm.now < (0.2 if kind == "killed" else 1.4)


@pytest.mark.parametrize("kind", ["frozen", "vanished"])
@pytest.mark.parametrize("number", [2, 26])
def test_adjacent_failures_delay_chain_like_one_failure(kind: str, number: int) -> None:
    content = random.Random(5).randbytes(500_000)
    seconds = {}
    for failing in (1, number):
        faults = [Faults(**{kind: 1.0}) if 4 <= place < 4 + failing else Faults() for place in range(34)]
        world = World(content, faults)
        check(world)
        seconds[failing] = world.now
    assert seconds[number] - seconds[1] < 0.2


def test_probes_of_repeatedly_silent_node_are_rate_limited() -> None:
    core = SourceCore(
        PipelinePhase(1, 1, bytes(16), 0, tuple(ChainMember(f"n{i}", "h", 1) for i in range(40)), 0), 10**9
    )
    core.handle(Started(), 0.0)
    core.handle(FromSuccessor(Get(0)), 0.0)
    probed = []
    for step in range(100):
        now = 0.6 * step
        probed += [(now, command) for command in core.tick(now) if isinstance(command, ProbeNodes)]
        core.handle(FromSuccessor(PipelineHeartbeat(0, held_up=True)), now)
    assert 1 < len(probed) <= 60
    assert all(len(command.places) == 32 for _, command in probed)
    times = [when for when, _ in probed]
    assert all(later - earlier >= 1.0 for earlier, later in itertools.pairwise(times))


def test_briefly_silent_nodes_fail_no_nodes_behind_them() -> None:
    content = random.Random(5).randbytes(800_000)
    faults = [Faults(frozen=1.0, thawed=1.8) if place in (4, 5, 6) else Faults() for place in range(10)]
    world = World(content, faults)
    world.run()
    assert world.hosts[0].reported == {}
    assert all(world.complete(host) for host in world.hosts[1:])


@pytest.mark.parametrize(("share", "step"), [(2, 0.1), (5, 0.0), (10, 0.1), (10, 0.0)])
def test_failures_among_100_nodes_as_in_paper(share: int, step: float) -> None:
    """Section IV-G: 2, 5 or 10 % of 100 nodes are killed, simultaneously or one by one."""
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
def test_simultaneously_killed_neighbors_delay_chain_like_one(
    length: int, before: int, failing: int, after: int, share: float
) -> None:
    """Also early in a phase: a node with data knows that the nodes behind it have joined the phase."""
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

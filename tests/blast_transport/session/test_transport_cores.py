"""Both cores on a simulated network in virtual time: whatever happens, who lives has the same bytes, and soon."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blast_transport.session.peers.peer import LISTENING, PeerState
from blast_transport.wire.messages import Nack
from blast_transport.wire.transports import OPTICAL, PIPELINE, UNICAST
from tests.support.transport_data import Data, data_of
from tests.support.transport_world import FOREVER, SPACING, Faults, Host, Spans, World

BLOCK = 40
shares = st.sampled_from([0.0, 0.01, 0.1, 0.5])
fault_sets = st.builds(Faults, loss=shares, duplication=shares, reordering=shares, corruption=shares)
sizes = st.sampled_from([0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK]) | st.integers(0, 100 * BLOCK)
datas = st.builds(data_of, sizes, seed=st.integers(0, 99))
seeds = st.integers(0, 2**32)
transports = st.sampled_from([OPTICAL, PIPELINE, UNICAST])
ways = st.builds(
    lambda first, later: [(0, first), *sorted(later)],
    transports,
    st.lists(st.tuples(st.integers(0, 100), transports), max_size=3),
)
windows = st.sampled_from([1, 2, 8, 50])
NONE = Faults()


def hosts(number: int, faults: Faults = NONE, **more: object) -> list[Host]:
    return [Host(f"h{index}", faults, **more) for index in range(number)]  # type: ignore[arg-type]


def all_complete(world: World, names: list[str] | None = None) -> None:
    for name in names or list(world.hosts):
        assert world.outcome(name) is PeerState.COMPLETE, world.sender.peers[name].reason
        assert world.hosts[name].result == world.data.content


@settings(max_examples=100)
@given(datas, ways, st.integers(1, 4), fault_sets, windows, st.booleans(), seeds)
def test_every_receiver_ends_with_the_same_bytes(
    data: Data, way: list[tuple[int, str]], number: int, faults: Faults, window: int, stream: bool, seed: int
) -> None:
    all_complete(World(data, hosts(number, faults), way, seed=seed, window=window, stream=stream).run())


@settings(max_examples=60)
@given(datas, ways, st.lists(fault_sets, min_size=2, max_size=3), windows, st.booleans(), seeds)
def test_commands_are_fed_all_of_it_beside_files(
    data: Data, way: list[tuple[int, str]], faults: list[Faults], window: int, stream: bool, seed: int
) -> None:
    there = [Host(f"h{index}", one, early=index > 0) for index, one in enumerate(faults)]
    all_complete(World(data, there, way, seed=seed, window=window, stream=stream).run())


@settings(max_examples=60)
@given(datas, ways, st.integers(1, 4), windows, st.booleans(), seeds)
@example(data_of(1), [(0, OPTICAL), (1, OPTICAL), (1, PIPELINE), (2, OPTICAL)], 4, 1, True, 0)
def test_without_loss_nothing_is_asked_for_and_nothing_comes_twice(
    data: Data, way: list[tuple[int, str]], number: int, window: int, stream: bool, seed: int
) -> None:
    world = World(data, hosts(number), way, seed=seed, window=window, stream=stream).run()
    all_complete(world)
    ends = [min(phase.first * data.layout.block_size, len(data.content)) for phase in world.phases] + [
        len(data.content)
    ]
    owed = sum(ends[phase.number] - ends[phase.number - 1] for phase in world.phases if phase.transport == UNICAST)
    for host in world.hosts.values():
        assert host.core is not None
        assert (host.core.assembly.duplicates, host.core.assembly.refused, host.core.repaired) == (0, 0, owed)
        # Where light is left after the short end of a stream, no receiver knows yet that it was the end.
        assert host.nacked < data.layout.block_segments if stream else host.nacked == 0
    assert world.sender.shared_repairs < data.layout.block_segments if stream else world.sender.shared_repairs == 0


@settings(max_examples=60)
@given(datas, ways, fault_sets, seeds)
def test_what_a_pipeline_still_brings_is_not_asked_for(
    data: Data, way: list[tuple[int, str]], faults: Faults, seed: int
) -> None:
    world = World(data, hosts(3, faults), way, seed=seed).run()
    assert [host.rushed for host in world.hosts.values()] == [0, 0, 0]


@settings(max_examples=40)
@given(st.integers(1, 100).map(lambda blocks: data_of(BLOCK * blocks)), shares, seeds)
def test_orderly_loss_is_repaired_once(data: Data, loss: float, seed: int) -> None:
    world = World(data, hosts(1, Faults(loss=loss)), seed=seed).run()
    all_complete(world)
    host = world.hosts["h0"]
    assert host.core is not None
    assert host.core.assembly.duplicates == 0
    assert world.sender.shared_repairs == 0, "one loser is repaired over its own connection"
    assert world.sender.peers["h0"].repaired_bytes == host.core.repaired
    assert world.light_segments == sum(data.layout.segments(block) for block in range(data.blocks))


@settings(max_examples=4)
@given(seeds)
def test_what_several_lose_is_repaired_by_light(seed: int) -> None:
    """Whatever at least two receivers miss of the first half leaves once more by light, not once for each."""
    world = World(data_of(80 * BLOCK), hosts(8, Faults(loss=0.3)), seed=seed).run()
    all_complete(world)
    unicast = sum(peer.repairs for peer in world.sender.peers.values())
    lost = sum(host.nacked for host in world.hosts.values())
    assert world.sender.shared_repairs > 0
    assert unicast < lost / 2


@settings(max_examples=80)
@given(datas, ways, fault_sets, st.floats(0, 0.3), st.sampled_from([0.2, 3.0, FOREVER]), st.booleans(), seeds)
def test_a_frozen_receiver_harms_no_other(
    data: Data, way: list[tuple[int, str]], faults: Faults, when: float, for_: float, stream: bool, seed: int
) -> None:
    there = hosts(3, faults)
    there[1].frozen = ((when, when + for_),)
    world = World(data, there, way, seed=seed, stream=stream).run()
    all_complete(world, ["h0", "h2"])
    state, frozen = world.outcome("h1"), world.hosts["h1"]
    assert state in (PeerState.COMPLETE, PeerState.FAILED)
    if state is PeerState.FAILED:
        assert world.sender.peers["h1"].reason
        assert for_ > 0.2
    else:
        assert frozen.result == data.content
    if faults in (Faults(), Faults(duplication=faults.duplication)):
        # The patience of one invitation, or of one freeze, whatever it was that it did not do.
        patience = 3.2 if when < 0.02 else 1.2
        assert max(world.hosts[name].complete_at for name in ("h0", "h2")) < 0.5 + patience


deaths = st.lists(st.tuples(st.floats(0, 0.2), st.sampled_from([0.01, 0.1, 1.0, FOREVER])), min_size=1, max_size=2)


def lives(first: float, deaths: list[tuple[float, float]]) -> Spans:
    """Up from `first` on, down after some time and for some time, and so on."""
    spans, start = [], first
    for after, down in deaths:
        if start < FOREVER:
            spans.append((start, start + after))
            start += after + down
    return [*spans, (start, FOREVER)] if start < FOREVER else spans


@settings(max_examples=100)
@given(datas, ways, fault_sets, deaths, st.booleans(), st.booleans(), seeds)
def test_a_receiver_that_crashes_may_come_back_with_what_it_holds(
    data: Data,
    way: list[tuple[int, str]],
    faults: Faults,
    falls: list[tuple[float, float]],
    stream: bool,
    early: bool,
    seed: int,
) -> None:
    there = hosts(3, faults)
    there[1].up, there[1].early = lives(0.0, falls), early
    world = World(data, there, way, seed=seed, stream=stream).run()
    all_complete(world, ["h0", "h2"])
    state = world.outcome("h1")
    assert state in (PeerState.COMPLETE, PeerState.FAILED)
    if state is PeerState.COMPLETE:
        assert there[1].result == data.content
    else:
        assert world.sender.peers["h1"].reason


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("transport", [OPTICAL, PIPELINE, UNICAST])
def test_what_was_held_before_a_crash_is_not_sent_again(transport: str, stream: bool) -> None:
    """By light, 200 blocks take 0.2 s; half of them are there when it crashes, and 0.04 s of light pass without it."""
    data, there = data_of(200 * BLOCK), hosts(3)
    there[1].up = ((0.0, 0.1), (0.14, FOREVER))
    world = World(data, there, [(0, transport)], stream=stream).run()
    all_complete(world, ["h0", "h2"])
    if transport == UNICAST:
        return
    all_complete(world)
    peer = world.sender.peers["h1"]
    assert 0 < peer.repairs < (70 if transport == OPTICAL else 130) * data.layout.block_segments
    assert there[1].core is not None and there[1].core.assembly.duplicates <= data.layout.block_segments


@settings(max_examples=60)
@given(datas, ways, fault_sets, st.floats(0.001, 0.3), st.booleans(), seeds)
def test_who_comes_late_gets_all_or_hears_why_not(
    data: Data, way: list[tuple[int, str]], faults: Faults, when: float, stream: bool, seed: int
) -> None:
    there = hosts(3, faults)
    there[0].up = ((when, FOREVER),)
    world = World(data, there, way, seed=seed, stream=stream).run()
    all_complete(world, ["h1", "h2"])
    if world.outcome("h0") is PeerState.FAILED:
        assert world.sender.peers["h0"].reason == "the host is down"
    else:
        all_complete(world)


def test_who_comes_late_gets_nothing_twice() -> None:
    there = hosts(2)
    there[0].up = ((0.1, FOREVER),)
    world = World(data_of(200 * BLOCK), there).run()
    all_complete(world)
    assert there[0].core is not None
    assert there[0].core.assembly.duplicates <= 4
    assert world.sender.peers["h0"].repairs < 120 * 4
    assert max(host.complete_at for host in there) < 0.6


@given(ways, seeds)
def test_nobody_at_all_is_soon_over(way: list[tuple[int, str]], seed: int) -> None:
    there = hosts(2, up=())
    world = World(data_of(10 * BLOCK), there, way, seed=seed).run()
    assert [world.outcome(name) for name in world.hosts] == [PeerState.FAILED] * 2
    assert world.now < 3


@settings(max_examples=60)
@given(datas, ways, st.lists(st.integers(0, 100), max_size=2), fault_sets, st.booleans(), st.booleans(), seeds)
def test_a_chain_that_breaks_is_made_up_for(
    data: Data, way: list[tuple[int, str]], breaks: list[int], faults: Faults, stream: bool, early: bool, seed: int
) -> None:
    there = hosts(3, faults)
    there[2].early = early
    all_complete(World(data, there, way, seed=seed, stream=stream, chains_break=breaks).run())


@pytest.mark.parametrize("number", [2, 5])
def test_a_slow_receiver_is_served_later_and_the_others_keep_their_rate(number: int) -> None:
    """A store that is throttled to a tenth of the light's rate; the socket's buffer is two windows."""
    data, there = data_of(1000 * BLOCK), hosts(number, buffer=16 * BLOCK)
    there[0].pace = 10 * SPACING
    world = World(data, there).run()
    all_complete(world)
    assert "slower" in world.sender.peers["h0"].demoted
    assert not any(world.sender.peers[host.name].demoted for host in there[1:])
    assert max(host.complete_at for host in there[1:]) < 1000 * SPACING / 0.85


def test_receivers_that_are_all_slow_are_waited_for() -> None:
    data, there = data_of(300 * BLOCK), hosts(4, buffer=16 * BLOCK, pace=4 * SPACING)
    world = World(data, there).run()
    all_complete(world)
    assert not any(peer.demoted for peer in world.sender.peers.values())
    assert [host.nacked for host in there] == [0] * 4, "a window that is kept loses nothing"


@settings(max_examples=12)
@given(st.lists(st.sampled_from([0.0, 1.5, 4.0, 10.0]), min_size=2, max_size=5), seeds)
def test_never_more_than_half_are_demoted_for_being_slow(paces: list[float], seed: int) -> None:
    there = [Host(f"h{index}", pace=pace * SPACING, buffer=16 * BLOCK) for index, pace in enumerate(paces)]
    world = World(data_of(100 * BLOCK), there, seed=seed).run()
    all_complete(world)
    assert world.max_demoted <= max(1, len(paces) // 2)


def test_a_window_of_one_block_works_block_by_block() -> None:
    world = World(data_of(50 * BLOCK), hosts(3), window=1).run()
    all_complete(world)
    assert [host.nacked for host in world.hosts.values()] == [0, 0, 0]


def test_light_that_reaches_nobody_costs_no_more_than_packets_do() -> None:
    """Nothing shows a loss then but the sender's own word, which comes soon when it waits."""
    world = World(data_of(100 * BLOCK), hosts(2, Faults(loss=1.0))).run()
    all_complete(world)
    assert world.now < 12


@settings(max_examples=60)
@given(datas, ways, st.booleans(), st.booleans(), seeds)
def test_forged_datagrams_never_pass_as_the_data(
    data: Data, way: list[tuple[int, str]], stream: bool, early: bool, seed: int
) -> None:
    there = hosts(2)
    there[1].early = early
    world = World(data, there, way, seed=seed, stream=stream)
    chance = random.Random(seed)

    def forge() -> None:
        for host in there:
            block = chance.choice([chance.randrange(data.blocks + 3), chance.randrange(1 << 27), chance.randrange(64)])
            number = chance.randint(1, 5)
            segment = block * 4 + chance.randrange(4)
            world.datagrams(host, segment, number, chance.randbytes(chance.choice([number * 10, number * 10 - 3])))

    for step in range(40):
        world.at(step * 0.004, forge)
    world.run()
    all_complete(world)


@settings(max_examples=60)
@given(
    datas, ways, st.lists(st.tuples(st.integers(0, 1 << 33), st.integers(1, 1 << 33)), min_size=1, max_size=5), seeds
)
def test_forged_questions_cost_only_who_asks(
    data: Data, way: list[tuple[int, str]], ranges: list[tuple[int, int]], seed: int
) -> None:
    world = World(data, hosts(3), way, seed=seed)

    def ask() -> None:
        if world.sender.peers["h1"].state in LISTENING:
            world.sender.receive("h1", Nack(9, tuple(ranges)), world.now)

    for step in range(60):
        world.at(step * 0.005, ask)
    world.run()
    all_complete(world, ["h0", "h2"])
    peer = world.sender.peers["h1"]
    assert peer.state is PeerState.COMPLETE or "4 times" in peer.reason

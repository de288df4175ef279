"""Both cores on a simulated network in virtual time: every live receiver completes in bounded time."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blast_transport.session.peers.peer import LISTENING, PeerState
from blast_transport.wire.messages import Nack
from blast_transport.wire.transports import OPTICAL, PIPELINE, UNICAST
from tests.support.transport.transport_data import Data, data_of
from tests.support.transport.transport_world import FOREVER, SPACING, Faults, Host, Spans, World

BLOCK = 40
shares = st.sampled_from([0.0, 0.01, 0.1, 0.5])
fault_sets = st.builds(Faults, loss=shares, duplication=shares, reordering=shares, corruption=shares)
sizes = st.sampled_from([0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK]) | st.integers(0, 100 * BLOCK)
datas = st.builds(data_of, sizes, seed=st.integers(0, 99))
seeds = st.integers(0, 2**32)
transports = st.sampled_from([OPTICAL, PIPELINE, UNICAST])
schedules = st.builds(
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
@given(datas, schedules, st.integers(1, 4), fault_sets, windows, st.booleans(), seeds)
def test_every_receiver_ends_with_the_same_bytes(
    data: Data, schedule: list[tuple[int, str]], number: int, faults: Faults, window: int, stream: bool, seed: int
) -> None:
    all_complete(World(data, hosts(number, faults), schedule, seed=seed, window=window, stream=stream).run())


@settings(max_examples=60)
@given(datas, schedules, st.lists(fault_sets, min_size=2, max_size=3), windows, st.booleans(), seeds)
def test_commands_and_files_receive_all_data(
    data: Data, schedule: list[tuple[int, str]], faults: list[Faults], window: int, stream: bool, seed: int
) -> None:
    receivers = [Host(f"h{index}", one, early=index > 0) for index, one in enumerate(faults)]
    all_complete(World(data, receivers, schedule, seed=seed, window=window, stream=stream).run())


@settings(max_examples=60)
@given(datas, schedules, st.integers(1, 4), windows, st.booleans(), seeds)
@example(data_of(1), [(0, OPTICAL), (1, OPTICAL), (1, PIPELINE), (2, OPTICAL)], 4, 1, True, 0)
def test_lossless_transfer_has_no_repairs_and_no_duplicates(
    data: Data, schedule: list[tuple[int, str]], number: int, window: int, stream: bool, seed: int
) -> None:
    world = World(data, hosts(number), schedule, seed=seed, window=window, stream=stream).run()
    all_complete(world)
    ends = [min(phase.first * data.layout.block_size, len(data.content)) for phase in world.phases] + [
        len(data.content)
    ]
    unicast_bytes = sum(
        ends[phase.number] - ends[phase.number - 1] for phase in world.phases if phase.transport == UNICAST
    )
    for host in world.hosts.values():
        assert host.core is not None
        assert (host.core.assembly.duplicates, host.core.assembly.refused, host.core.repaired) == (0, 0, unicast_bytes)
        # If optical transport stops after the last block of a stream, no receiver knows yet that it was the last.
        assert host.nacked < data.layout.block_segments if stream else host.nacked == 0
    assert world.sender.shared_repairs < data.layout.block_segments if stream else world.sender.shared_repairs == 0


@settings(max_examples=60)
@given(datas, schedules, fault_sets, seeds)
def test_receiver_requests_no_data_that_pipeline_still_delivers(
    data: Data, schedule: list[tuple[int, str]], faults: Faults, seed: int
) -> None:
    world = World(data, hosts(3, faults), schedule, seed=seed).run()
    assert [host.rushed for host in world.hosts.values()] == [0, 0, 0]


@settings(max_examples=40)
@given(st.integers(1, 100).map(lambda blocks: data_of(BLOCK * blocks)), shares, seeds)
def test_loss_of_one_receiver_is_repaired_once(data: Data, loss: float, seed: int) -> None:
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
def test_losses_of_several_receivers_are_repaired_by_multicast(seed: int) -> None:
    """The sender repeats segments that at least two receivers miss once for all, not once for each."""
    world = World(data_of(80 * BLOCK), hosts(8, Faults(loss=0.3)), seed=seed).run()
    all_complete(world)
    unicast = sum(peer.repairs for peer in world.sender.peers.values())
    lost = sum(host.nacked for host in world.hosts.values())
    assert world.sender.shared_repairs > 0
    assert unicast < lost / 2


@settings(max_examples=80)
@given(datas, schedules, fault_sets, st.floats(0, 0.3), st.sampled_from([0.2, 3.0, FOREVER]), st.booleans(), seeds)
def test_frozen_receiver_does_not_affect_others(
    data: Data, schedule: list[tuple[int, str]], faults: Faults, when: float, for_: float, stream: bool, seed: int
) -> None:
    receivers = hosts(3, faults)
    receivers[1].frozen = ((when, when + for_),)
    world = World(data, receivers, schedule, seed=seed, stream=stream).run()
    all_complete(world, ["h0", "h2"])
    state, frozen = world.outcome("h1"), world.hosts["h1"]
    assert state in (PeerState.COMPLETE, PeerState.FAILED)
    if state is PeerState.FAILED:
        assert world.sender.peers["h1"].reason
        assert for_ > 0.2
    else:
        assert frozen.result == data.content
    if faults in (Faults(), Faults(duplication=faults.duplication)):
        # The timeout of one invitation, or of one freeze.
        timeout = 3.2 if when < 0.02 else 1.2
        assert max(world.hosts[name].complete_at for name in ("h0", "h2")) < 0.5 + timeout


deaths = st.lists(st.tuples(st.floats(0, 0.2), st.sampled_from([0.01, 0.1, 1.0, FOREVER])), min_size=1, max_size=2)


def lives(first: float, deaths: list[tuple[float, float]]) -> Spans:
    """Return the spans in which a host is up, which alternate with spans in which it is down."""
    spans, start = [], first
    for after, down in deaths:
        if start < FOREVER:
            spans.append((start, start + after))
            start += after + down
    return [*spans, (start, FOREVER)] if start < FOREVER else spans


@settings(max_examples=100)
@given(datas, schedules, fault_sets, deaths, st.booleans(), st.booleans(), seeds)
def test_crashed_receiver_resumes_with_stored_blocks(
    data: Data,
    schedule: list[tuple[int, str]],
    faults: Faults,
    falls: list[tuple[float, float]],
    stream: bool,
    early: bool,
    seed: int,
) -> None:
    receivers = hosts(3, faults)
    receivers[1].up, receivers[1].early = lives(0.0, falls), early
    world = World(data, receivers, schedule, seed=seed, stream=stream).run()
    all_complete(world, ["h0", "h2"])
    state = world.outcome("h1")
    assert state in (PeerState.COMPLETE, PeerState.FAILED)
    if state is PeerState.COMPLETE:
        assert receivers[1].result == data.content
    else:
        assert world.sender.peers["h1"].reason


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("transport", [OPTICAL, PIPELINE, UNICAST])
def test_blocks_stored_before_crash_are_not_sent_again(transport: str, stream: bool) -> None:
    """Optical transport takes 0.2 s for 200 blocks; the receiver has half of them when it crashes for 0.04 s."""
    data, receivers = data_of(200 * BLOCK), hosts(3)
    receivers[1].up = ((0.0, 0.1), (0.14, FOREVER))
    world = World(data, receivers, [(0, transport)], stream=stream).run()
    all_complete(world, ["h0", "h2"])
    if transport == UNICAST:
        return
    all_complete(world)
    peer = world.sender.peers["h1"]
    assert 0 < peer.repairs < (70 if transport == OPTICAL else 130) * data.layout.block_segments
    assert receivers[1].core is not None and receivers[1].core.assembly.duplicates <= data.layout.block_segments


@settings(max_examples=60)
@given(datas, schedules, fault_sets, st.floats(0.001, 0.3), st.booleans(), seeds)
def test_late_receiver_completes_or_fails_with_reason(
    data: Data, schedule: list[tuple[int, str]], faults: Faults, when: float, stream: bool, seed: int
) -> None:
    receivers = hosts(3, faults)
    receivers[0].up = ((when, FOREVER),)
    world = World(data, receivers, schedule, seed=seed, stream=stream).run()
    all_complete(world, ["h1", "h2"])
    if world.outcome("h0") is PeerState.FAILED:
        assert world.sender.peers["h0"].reason == "the host is down"
    else:
        all_complete(world)


def test_late_receiver_gets_no_duplicates() -> None:
    receivers = hosts(2)
    receivers[0].up = ((0.1, FOREVER),)
    world = World(data_of(200 * BLOCK), receivers).run()
    all_complete(world)
    assert receivers[0].core is not None
    assert receivers[0].core.assembly.duplicates <= 4
    assert world.sender.peers["h0"].repairs < 120 * 4
    assert max(host.complete_at for host in receivers) < 0.6


@given(schedules, seeds)
def test_session_without_reachable_receiver_ends_soon(schedule: list[tuple[int, str]], seed: int) -> None:
    receivers = hosts(2, up=())
    world = World(data_of(10 * BLOCK), receivers, schedule, seed=seed).run()
    assert [world.outcome(name) for name in world.hosts] == [PeerState.FAILED] * 2
    assert world.now < 3


@settings(max_examples=60)
@given(datas, schedules, st.lists(st.integers(0, 100), max_size=2), fault_sets, st.booleans(), st.booleans(), seeds)
def test_broken_chain_is_repaired(
    data: Data, schedule: list[tuple[int, str]], breaks: list[int], faults: Faults, stream: bool, early: bool, seed: int
) -> None:
    receivers = hosts(3, faults)
    receivers[2].early = early
    all_complete(World(data, receivers, schedule, seed=seed, stream=stream, chains_break=breaks).run())


@pytest.mark.parametrize("number", [2, 5])
def test_slow_receiver_is_served_later_and_others_keep_rate(number: int) -> None:
    """The store is throttled to a tenth of the optical rate; the socket buffer holds two windows."""
    data, receivers = data_of(1000 * BLOCK), hosts(number, buffer=16 * BLOCK)
    receivers[0].pace = 10 * SPACING
    world = World(data, receivers).run()
    all_complete(world)
    assert "slower" in world.sender.peers["h0"].demoted
    assert not any(world.sender.peers[host.name].demoted for host in receivers[1:])
    assert max(host.complete_at for host in receivers[1:]) < 1000 * SPACING / 0.85


def test_sender_adapts_to_uniformly_slow_receivers() -> None:
    data, receivers = data_of(300 * BLOCK), hosts(4, buffer=16 * BLOCK, pace=4 * SPACING)
    world = World(data, receivers).run()
    all_complete(world)
    assert not any(peer.demoted for peer in world.sender.peers.values())
    assert [host.nacked for host in receivers] == [0] * 4, "respecting the window prevents loss"


@settings(max_examples=12)
@given(st.lists(st.sampled_from([0.0, 1.5, 4.0, 10.0]), min_size=2, max_size=5), seeds)
def test_no_more_than_half_of_receivers_are_demoted_as_slow(paces: list[float], seed: int) -> None:
    receivers = [Host(f"h{index}", pace=pace * SPACING, buffer=16 * BLOCK) for index, pace in enumerate(paces)]
    world = World(data_of(100 * BLOCK), receivers, seed=seed).run()
    all_complete(world)
    assert world.max_demoted <= max(1, len(paces) // 2)


def test_window_of_one_block_causes_no_loss() -> None:
    world = World(data_of(50 * BLOCK), hosts(3), window=1).run()
    all_complete(world)
    assert [host.nacked for host in world.hosts.values()] == [0, 0, 0]


def test_optical_transport_without_delivery_falls_back_to_repairs() -> None:
    """Only the heartbeats of the sender reveal the loss; a waiting sender sends them soon."""
    world = World(data_of(100 * BLOCK), hosts(2, Faults(loss=1.0))).run()
    all_complete(world)
    assert world.now < 12


@settings(max_examples=60)
@given(datas, schedules, st.booleans(), st.booleans(), seeds)
def test_forged_datagrams_never_pass_as_data(
    data: Data, schedule: list[tuple[int, str]], stream: bool, early: bool, seed: int
) -> None:
    receivers = hosts(2)
    receivers[1].early = early
    world = World(data, receivers, schedule, seed=seed, stream=stream)
    chance = random.Random(seed)

    def forge() -> None:
        for host in receivers:
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
    datas,
    schedules,
    st.lists(st.tuples(st.integers(0, 1 << 33), st.integers(1, 1 << 33)), min_size=1, max_size=5),
    seeds,
)
def test_forged_nacks_affect_only_their_sender(
    data: Data, schedule: list[tuple[int, str]], ranges: list[tuple[int, int]], seed: int
) -> None:
    world = World(data, hosts(3), schedule, seed=seed)

    def ask() -> None:
        if world.sender.peers["h1"].state in LISTENING:
            world.sender.receive("h1", Nack(9, tuple(ranges)), world.now)

    for step in range(60):
        world.at(step * 0.005, ask)
    world.run()
    all_complete(world, ["h0", "h2"])
    peer = world.sender.peers["h1"]
    assert peer.state is PeerState.COMPLETE or "4 times" in peer.reason

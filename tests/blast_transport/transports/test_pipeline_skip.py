"""A source forgets data that all nodes hold; nodes skip data that they received by another transport."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.transports.pipeline.protocol.core import NodeCore
from blast_transport.transports.pipeline.protocol.events import (
    BytesArrived,
    BytesSent,
    CloseDownstream,
    CloseFetch,
    CloseUpstream,
    Command,
    Complete,
    Connect,
    FromPredecessor,
    FromSource,
    FromSuccessor,
    Joined,
    Notify,
    SendUpstream,
    Skip,
    Started,
)
from blast_transport.transports.pipeline.protocol.messages import End, Forget, Get, Held, PipelineHeartbeat, Quit
from blast_transport.transports.pipeline.protocol.phase import ChainMember, PipelinePhase
from blast_transport.transports.pipeline.protocol.skips import Skips

CHAIN = tuple(ChainMember(f"n{place}", "h", 1) for place in range(4))


def node(predecessor: int) -> NodeCore:
    """Return a node that requested the data from byte 100 on from its predecessor."""
    core = NodeCore(PipelinePhase(1, 1, bytes(16), 0, CHAIN, 3), 100)
    core.handle(Started(), 0.0)
    assert SendUpstream(Get(100)) in core.handle(Joined(predecessor), 0.0)
    return core


def actions(commands: list[Command]) -> list[Command]:
    return [command for command in commands if not isinstance(command, Notify)]


@pytest.mark.parametrize("predecessor", [0, 2])
def test_forgotten_data_that_is_stored_is_skipped(predecessor: int) -> None:
    core = node(predecessor)
    core.node.stored_before = 300
    commands = actions(core.handle(FromPredecessor(Forget(200)), 0.1))
    assert commands == [Skip(300), SendUpstream(Get(300))]
    assert core.up.receiving


def test_fetch_is_closed_if_data_arrived_meanwhile() -> None:
    core = node(2)
    core.handle(FromPredecessor(Forget(200)), 0.1)
    assert core.up.fetching
    core.node.stored_before = 200
    commands = actions(core.handle(FromSource(Forget(150)), 0.2))
    assert commands == [CloseFetch(), Skip(200), SendUpstream(Get(200))]
    assert core.up.receiving


def test_forgotten_data_that_is_missing_ends_node() -> None:
    core = node(0)
    core.node.stored_before = 199
    commands = actions(core.handle(FromPredecessor(Forget(200)), 0.1))
    assert any(isinstance(command, SendUpstream) and isinstance(command.message, Quit) for command in commands)
    assert not core.up.receiving


def test_data_held_by_all_is_skipped_and_does_not_count() -> None:
    core = node(2)
    commands = actions(core.handle(FromPredecessor(Held(1 << 40)), 0.1))
    assert commands == [Skip(1 << 40), SendUpstream(PipelineHeartbeat(1 << 40, held_up=False))]
    assert core.up.receiving and core.node.begun
    assert core.node.position == 1 << 40
    assert core.down.ahead(core.node.position) == 0


@pytest.mark.parametrize("stop", [0, 100])
def test_held_message_without_progress_closes_predecessor(stop: int) -> None:
    core = node(2)
    assert CloseUpstream() in core.handle(FromPredecessor(Held(stop)), 0.1)
    assert core.node.position == 100


def test_phase_may_end_after_data_held_by_all() -> None:
    core = node(2)
    core.handle(FromPredecessor(Held(500)), 0.1)
    assert Complete(500, True) in core.handle(FromPredecessor(End(500, True)), 0.2)


def test_successor_that_has_not_reached_hole_is_not_slow() -> None:
    """Rates count data only: a hole of a terabyte is skipped at once."""
    core = NodeCore(PipelinePhase(1, 1, bytes(16), 0, CHAIN, 1), 0)
    core.handle(Started(), 0.0)
    core.handle(Joined(0), 0.0)
    core.handle(FromSuccessor(Get(0)), 0.0)
    position = 0
    for step in range(100):
        now = 0.1 * step
        position += 1000
        core.handle(BytesArrived(position), now)
        if step % 10 == 9:
            position += 1 << 40
            core.handle(FromPredecessor(Held(position)), now)
        core.handle(BytesSent(position), now)
        # It has received the data before the last hole, but not yet the message about the hole.
        taken = position - ((1 << 40) if step % 10 == 9 else 0) - 500
        commands = core.handle(FromSuccessor(PipelineHeartbeat(max(0, taken), held_up=False)), now)
        assert not any(isinstance(command, Connect | CloseDownstream) for command in commands)
        assert not core.down.lagging


@given(st.data(), st.integers(1, 8))
def test_skips_cover_whole_blocks(draw: st.DataObject, block_size: int) -> None:
    size = draw.draw(st.integers(0, 200))
    blocks = -(-size // block_size)
    left_out = draw.draw(st.sets(st.integers(0, max(0, blocks - 1)))) if blocks else set()
    skips = Skips(block_size)
    for block in sorted(left_out):
        skips.add(block * block_size, min(size, (block + 1) * block_size))
    passed = {place for place in range(size) if place // block_size in left_out}
    for limit in {0, size, draw.draw(st.integers(0, size))}:
        for offset in range(limit + 1):
            stop, end = skips.pass_over(offset, limit), skips.data_stop(offset, limit)
            assert offset <= stop <= limit and passed.issuperset(range(offset, stop))
            assert stop in (offset, size) or stop % block_size == 0
            if stop == offset and offset % block_size == 0 and offset < limit:
                # Data follows, unless the limit lies within a skipped block.
                assert end > offset or (offset in passed and limit < min(size, offset + block_size))
                assert passed.isdisjoint(range(offset, end))
        assert skips.within(limit) == len([place for place in passed if place < limit])
        assert skips.data_before(limit) == limit - skips.within(limit)

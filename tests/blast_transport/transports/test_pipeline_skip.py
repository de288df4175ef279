"""A source forgets what everybody has, by whatever way: a node that has it by now goes on behind it."""

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
    """One that asked its predecessor for what comes from byte 100 on."""
    core = NodeCore(PipelinePhase(1, 1, bytes(16), 0, CHAIN, 3), 100)
    core.handle(Started(), 0.0)
    assert SendUpstream(Get(100)) in core.handle(Joined(predecessor), 0.0)
    return core


def said(commands: list[Command]) -> list[Command]:
    return [command for command in commands if not isinstance(command, Notify)]


@pytest.mark.parametrize("predecessor", [0, 2])
def test_what_was_brought_by_others_is_not_missed(predecessor: int) -> None:
    core = node(predecessor)
    core.node.stored_before = 300
    commands = said(core.handle(FromPredecessor(Forget(200)), 0.1))
    assert commands == [Skip(300), SendUpstream(Get(300))]
    assert core.up.receiving


def test_it_may_come_while_the_source_is_asked() -> None:
    core = node(2)
    core.handle(FromPredecessor(Forget(200)), 0.1)
    assert core.up.fetching
    core.node.stored_before = 200
    commands = said(core.handle(FromSource(Forget(150)), 0.2))
    assert commands == [CloseFetch(), Skip(200), SendUpstream(Get(200))]
    assert core.up.receiving


def test_what_nobody_brought_is_gone() -> None:
    core = node(0)
    core.node.stored_before = 199
    commands = said(core.handle(FromPredecessor(Forget(200)), 0.1))
    assert any(isinstance(command, SendUpstream) and isinstance(command.message, Quit) for command in commands)
    assert not core.up.receiving


def test_what_everybody_held_is_passed_over_and_is_no_data() -> None:
    core = node(2)
    commands = said(core.handle(FromPredecessor(Held(1 << 40)), 0.1))
    assert commands == [Skip(1 << 40), SendUpstream(PipelineHeartbeat(1 << 40, held_up=False))]
    assert core.up.receiving and core.node.begun
    assert core.node.position == 1 << 40
    assert core.down.ahead(core.node.position) == 0


@pytest.mark.parametrize("stop", [0, 100])
def test_who_says_that_what_came_is_held_is_no_predecessor(stop: int) -> None:
    core = node(2)
    assert CloseUpstream() in core.handle(FromPredecessor(Held(stop)), 0.1)
    assert core.node.position == 100


def test_phase_may_end_behind_what_everybody_held() -> None:
    core = node(2)
    core.handle(FromPredecessor(Held(500)), 0.1)
    assert Complete(500, True) in core.handle(FromPredecessor(End(500, True)), 0.2)


def test_successor_that_has_not_heard_of_a_hole_is_not_slow() -> None:
    """A rate is of data: a hole of a terabyte is passed over at once."""
    core = NodeCore(PipelinePhase(1, 1, bytes(16), 0, CHAIN, 1), 0)
    core.handle(Started(), 0.0)
    core.handle(Joined(0), 0.0)
    core.handle(FromSuccessor(Get(0)), 0.0)
    position = 0
    for turn in range(100):
        now = 0.1 * turn
        position += 1000
        core.handle(BytesArrived(position), now)
        if turn % 10 == 9:
            position += 1 << 40
            core.handle(FromPredecessor(Held(position)), now)
        core.handle(BytesSent(position), now)
        # It has taken what came before the last hole, and not yet heard of that.
        taken = position - ((1 << 40) if turn % 10 == 9 else 0) - 500
        commands = core.handle(FromSuccessor(PipelineHeartbeat(max(0, taken), held_up=False)), now)
        assert not any(isinstance(command, Connect | CloseDownstream) for command in commands)
        assert not core.down.lagging


@given(st.data(), st.integers(1, 8))
def test_skips_are_ranges_of_whole_blocks(draw: st.DataObject, block_size: int) -> None:
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
                # Data comes next, unless of the block that is left out only a part may go.
                assert end > offset or (offset in passed and limit < min(size, offset + block_size))
                assert passed.isdisjoint(range(offset, end))
        assert skips.within(limit) == len([place for place in passed if place < limit])
        assert skips.data_before(limit) == limit - skips.within(limit)

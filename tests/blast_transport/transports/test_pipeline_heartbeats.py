"""Heartbeats of a node: they report that it waits for data, or that its store is slow."""

from __future__ import annotations

import pytest

from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.transports.pipeline.protocol.core import NodeCore, SourceCore
from blast_transport.transports.pipeline.protocol.events import (
    BytesArrived,
    BytesSent,
    Command,
    Connect,
    DataStored,
    FromPredecessor,
    FromSuccessor,
    Joined,
    SendUpstream,
    Started,
)
from blast_transport.transports.pipeline.protocol.messages import (
    End,
    Get,
    Passed,
    PipelineHeartbeat,
    Quit,
    QuitReason,
    Report,
)
from blast_transport.transports.pipeline.protocol.phase import ChainMember, PipelinePhase

CHAIN = tuple(ChainMember(name, "h", 1) for name in "abcd")
BEAT = PipelinePhase(1, 1, bytes(16), 0, CHAIN, 1).timings.heartbeat
KEEPS_UP, BEHIND, SLOW, ALONE = StorePace


def node_in_the_middle() -> NodeCore:
    """Return a node that serves its successor, the last but one of the chain."""
    core = NodeCore(PipelinePhase(1, 1, bytes(16), 0, CHAIN, 1), 0)
    core.handle(Started(), 0.0)
    core.handle(Joined(0), 0.0)
    core.handle(FromSuccessor(Get(0)), 0.0)
    return core


def alive_in(commands: list[Command]) -> list[PipelineHeartbeat]:
    messages = [command.message for command in commands if isinstance(command, SendUpstream)]
    return [message for message in messages if isinstance(message, PipelineHeartbeat)]


def test_node_that_waits_more_than_half_of_interval_is_starved() -> None:
    core = node_in_the_middle()
    starved = []
    for step, share in enumerate((0.0, 0.6, 0.4, 1.0, 0.0)):
        core.waited(share * BEAT / 2)
        core.waited(share * BEAT / 2)
        core.handle(FromSuccessor(PipelineHeartbeat(0, held_up=False)), step * BEAT * 1.01)
        (alive,) = alive_in(core.tick(step * BEAT * 1.01))
        starved.append(alive.starved)
    assert starved == [False, True, False, True, False]


def handle_heartbeat(core: NodeCore | SourceCore, store: StorePace, now: float) -> list[Command]:
    """Handle a heartbeat with the pace of the successor's store, and return the commands."""
    return core.handle(FromSuccessor(PipelineHeartbeat(0, held_up=False, store=store)), now)


@pytest.mark.parametrize(
    ("ours", "successors", "reported"),
    [
        (KEEPS_UP, BEHIND, KEEPS_UP),
        (BEHIND, KEEPS_UP, BEHIND),
        (SLOW, KEEPS_UP, ALONE),
        (SLOW, BEHIND, SLOW),
        (SLOW, SLOW, SLOW),
        (SLOW, ALONE, ALONE),
    ],
)
def test_slow_store_is_reported_alone_if_successor_is_faster(
    ours: StorePace, successors: StorePace, reported: StorePace
) -> None:
    core = node_in_the_middle()
    core.store_does(ours, 0.0, 0.0)
    handle_heartbeat(core, successors, BEAT)
    core.store_does(ours, 0.0, BEAT)
    (alive,) = alive_in(core.tick(BEAT))
    assert alive.store is reported


@pytest.mark.parametrize("slow", [SLOW, ALONE])
def test_node_excludes_only_first_successor_with_slow_store(slow: StorePace) -> None:
    core = node_in_the_middle()
    handle_heartbeat(core, BEHIND, 0.1)
    assert core.down.serving
    assert Connect(3) in handle_heartbeat(core, slow, 0.1)
    assert core.node.named_failures() == {"c": "excluded: its store is far behind"}
    core.handle(FromSuccessor(Get(0)), 0.1)
    handle_heartbeat(core, slow, 0.2)
    assert core.down.serving


def test_node_with_lagging_store_excludes_no_successor() -> None:
    core = node_in_the_middle()
    core.store_does(BEHIND, 0.0, 0.1)
    handle_heartbeat(core, ALONE, 0.2)
    assert core.down.serving
    assert not core.node.failed


@pytest.mark.parametrize(("slow", "left_out"), [(SLOW, set()), (ALONE, {"b"})])
def test_source_excludes_successor_only_if_its_store_is_slow_alone(slow: StorePace, left_out: set[str]) -> None:
    core = SourceCore(PipelinePhase(1, 1, bytes(16), 0, CHAIN, 0), 100)
    core.handle(Started(), 0.0)
    core.handle(FromSuccessor(Get(0)), 0.0)
    handle_heartbeat(core, slow, 0.1)
    assert set(core.node.named_failures()) == left_out


def test_complete_node_waits_limited_time_for_slow_successor() -> None:
    core = node_in_the_middle()
    core.handle(BytesArrived(5), 0.1)
    core.handle(BytesSent(5), 0.1)
    core.handle(FromPredecessor(End(5, True)), 0.1)
    core.handle(FromPredecessor(Report({})), 0.1)
    core.handle(DataStored(), 3.0)
    reported = PipelineHeartbeat(5, held_up=False, store=SLOW)
    core.handle(FromSuccessor(reported), 5.8)
    assert not core.node.failed
    core.handle(FromSuccessor(reported), 6.0)
    assert set(core.node.named_failures()) == {"c"}


def test_node_that_stores_received_data_slowly_is_slow() -> None:
    core = node_in_the_middle()
    core.handle(BytesArrived(5), 0.1)
    core.handle(BytesSent(5), 0.1)
    core.handle(FromPredecessor(End(5, True)), 1.0)
    seen = []
    for now in (1.1, 2.4, 2.6):
        core.store_does(BEHIND, 0.0, now)
        seen.append(core.node.store)
    core.handle(FromPredecessor(Report({})), 2.7)
    core.handle(FromSuccessor(Passed({})), 3.0)
    for now in (4.9, 5.1):
        core.store_does(BEHIND, 0.0, now)
        seen.append(core.node.store)
    assert seen == [BEHIND, BEHIND, SLOW, SLOW, ALONE]


def test_node_leaves_if_its_store_accepts_no_data() -> None:
    core = node_in_the_middle()
    assert core.store_does(BEHIND, 1.4, 1.4) == []
    reason = "its store has accepted nothing for 1.5 s"
    assert SendUpstream(Quit(QuitReason.LEFT, reason)) in core.store_does(BEHIND, 1.6, 1.6)
    assert core.node.over


def test_only_node_of_chain_stays_despite_slow_store() -> None:
    core = NodeCore(PipelinePhase(1, 1, bytes(16), 0, CHAIN[:2], 1), 0)
    core.handle(Started(), 0.0)
    core.handle(Joined(0), 0.0)
    assert core.store_does(SLOW, 9.0, 9.0) == []
    assert core.node.store is SLOW


def test_data_stored_after_quit_is_no_error() -> None:
    core = NodeCore(PipelinePhase(1, 1, bytes(16), 0, CHAIN, 1), 0)
    core.handle(Started(), 0.0)
    core.handle(Joined(0), 0.0)
    core.handle(FromPredecessor(Quit(QuitReason.LOST, "gone")), 0.1)
    core.handle(DataStored(), 0.2)
    assert core.node.stored

"""Fuzz tests of pipeline connections: the result is a message that a core can handle, or the one typed error."""

from __future__ import annotations

import random
from typing import Any

from blast_transport.base.errors import LocalProtocolError, RemoteProtocolError
from blast_transport.transports.pipeline.protocol.core import NodeCore, SourceCore
from blast_transport.transports.pipeline.protocol.downstream import Downstream, DownstreamState
from blast_transport.transports.pipeline.protocol.events import (
    BytesArrived,
    BytesLost,
    FetchLost,
    FromPredecessor,
    FromSource,
    FromSuccessor,
    Joined,
    PredecessorLost,
    Started,
    SuccessorLost,
)
from blast_transport.transports.pipeline.protocol.messages import (
    Data,
    End,
    Forget,
    Get,
    Held,
    Message,
    Passed,
    Pget,
    PipelineDecoder,
    PipelineHeartbeat,
    Quit,
    QuitReason,
    Report,
    encode,
)
from blast_transport.transports.pipeline.protocol.node_state import NodeState
from blast_transport.transports.pipeline.protocol.phase import ChainMember, PipelinePhase
from blast_transport.transports.pipeline.protocol.upstream import Upstream, UpstreamState
from tests.blast_transport.transports.test_pipeline_messages import SAMPLES
from tests.support.fuzzing import inputs
from tests.support.transport.transport_data import mutated

INPUTS = inputs(20_000)
ODD_BYTES = (0, 1, 2, 0x24, 0x7F, 0x80, 0xFF)


def decoded(stream: bytes, step: int) -> list[Message | str]:
    """Return the messages of a stream that arrives `step` bytes at a time, with an error as the last entry."""
    decoder, found = PipelineDecoder(), list[Message | str]()
    try:
        while stream:
            if decoder.payload:
                count = min(step, decoder.payload, len(stream))
                decoder.passed(count)
            else:
                count = min(step, decoder.needed, len(stream))
                message = decoder.feed(stream[:count])
                if message is not None:
                    found.append(message)
            stream = stream[count:]
    except RemoteProtocolError:
        found.append("refused")
    return found


def body_of(message: Message) -> bytes:
    return encode(message) + (bytes(message.length) if isinstance(message, Data) else b"")


def test_message_streams_are_decoded_or_rejected() -> None:
    chance = random.Random(1)
    accepted = refused = 0
    for number in range(INPUTS):
        valid = b"".join(body_of(message) for message in chance.choices(SAMPLES, k=chance.randint(1, 3)))
        stream = chance.randbytes(chance.randrange(60)) if number % 5 == 0 else mutated(chance, valid, ODD_BYTES)
        found = decoded(stream, len(stream) + 1)
        assert found == decoded(stream, chance.randint(1, 3))
        refused += found[-1:] == ["refused"]
        accepted += len(found) > 0 and found[0] != "refused"
        if found and isinstance(found[0], Get | Pget | Forget | End | PipelineHeartbeat):
            assert stream.startswith(encode(found[0]))
        if found and isinstance(found[0], Report):
            # Control characters of its reasons are replaced.
            assert decoded(encode(found[0]), 1) == found[:1]
    assert accepted > INPUTS // 10
    assert refused > INPUTS // 10


def phase(index: int) -> PipelinePhase:
    return PipelinePhase(1, 1, bytes(16), 0, tuple(ChainMember(f"n{place}", "h", 1) for place in range(4)), index)


def any_message(chance: random.Random) -> Message:
    number = chance.choice([0, 1, 50, 100, 101, 1 << 60])
    return chance.choice(
        [
            *SAMPLES,
            Get(number),
            Forget(number),
            Held(number),
            End(number, chance.random() < 0.5),
            Quit(chance.choice(list(QuitReason)), "why"),
            Report({chance.randrange(1 << 16): "x"}),
            Passed({chance.randrange(6): "x"}),
            PipelineHeartbeat(number, False),
        ]
    )


def test_node_ends_whatever_its_neighbors_send() -> None:
    chance = random.Random(2)
    ends = set()
    for _ in range(INPUTS // 10):
        core, now = NodeCore(phase(2), 0), 0.0
        core.handle(Started(), now)
        for _ in range(25):
            now += chance.random() * 0.3
            match chance.randrange(7):
                case 0 if core.up.linked:
                    core.handle(FromPredecessor(any_message(chance)), now)
                case 1 if core.down.linked or core.down.state in (DownstreamState.CONNECTING, DownstreamState.PASSED):
                    core.handle(FromSuccessor(any_message(chance)), now)
                case 2:
                    core.handle(Joined(chance.randrange(2)), now)
                case 3 if core.up.linked:
                    core.handle(PredecessorLost(), now)
                case 4 if core.down.linked or core.down.state is DownstreamState.CONNECTING:
                    core.handle(BytesLost() if core.down.serving else SuccessorLost("x"), now)
                case 5 if core.up.receiving or core.up.fetching:
                    core.handle(BytesArrived(core.node.position + 25), now)
                case 6 if core.up.fetching:
                    core.handle(chance.choice([FetchLost("x"), FromSource(any_message(chance))]), now)
                case _:
                    core.tick(now)
            assert core.node.over or core.deadline() >= 0
        core.tick(now + 100)
        core.tick(now + 200)
        core.tick(now + 300)
        assert core.node.over, (core.up.state, core.down.state)
        ends.add((core.up.state, core.down.state))
    assert len(ends) > 5


def test_source_ends_whatever_its_successor_sends() -> None:
    chance = random.Random(3)
    for _ in range(INPUTS // 10):
        core, now = SourceCore(phase(0), 0), 0.0
        core.handle(Started(), now)
        for _ in range(15):
            now += chance.random() * 0.5
            if core.node.over:
                break
            if core.down.linked or core.down.state is DownstreamState.CONNECTING:
                core.handle(chance.choice([FromSuccessor(any_message(chance)), SuccessorLost("x")]), now)
            core.tick(now)
        for later in range(20):
            core.tick(now + later)
        assert core.node.over


ODD: list[Any] = [
    *SAMPLES,
    BytesArrived(5),
    Joined(1),
    PredecessorLost(),
    SuccessorLost("x"),
    Started(),
    FetchLost("x"),
]


def test_each_state_handles_or_rejects_each_event() -> None:
    for state in DownstreamState:
        for event in ODD:
            down = Downstream(NodeState(phase(2), 0), lambda now: None)
            down.state = state
            try:
                down.handle(event, 1.0)
            except (LocalProtocolError, RemoteProtocolError) as error:
                assert str(error)
    for place in UpstreamState:
        for event in ODD:
            node = NodeState(phase(2), 0)
            node.quit = Quit(QuitReason.LOST, "gone")
            up = Upstream(node, lambda now: None, lambda: None)
            up.state = place
            try:
                up.handle(event, 1.0)
            except (LocalProtocolError, RemoteProtocolError) as error:
                assert str(error)

"""Only the sender determines the bytes that a receiver keeps or reports: optically, in a chain, and at the end."""

from __future__ import annotations

import random
import socket
import threading
from pathlib import Path

import pytest

from blast_transport.blocks.layout import BlockLayout
from blast_transport.datagrams.interface import open_group_socket, open_sender_socket
from blast_transport.session.receiver_core import ReceiverCore, ReceiverState
from blast_transport.session.route import Route
from blast_transport.store.blocks import assembly
from blast_transport.store.blocks.assembly import Assembly
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.blocks.store import SessionStore
from blast_transport.store.targets.memory_target import MemoryTarget
from blast_transport.transports.choices import Chain
from blast_transport.transports.pipeline import node
from blast_transport.transports.pipeline.connections.outlets import FileOutlet, open_outlet
from blast_transport.transports.pipeline.node import PipelineNode
from blast_transport.transports.pipeline.protocol.messages import (
    Data,
    End,
    Held,
    Message,
    Passed,
    PipelineDecoder,
    PipelineHeartbeat,
    Report,
    encode,
)
from blast_transport.transports.pipeline.protocol.phase import ChainMember, PipelinePhase
from blast_transport.wire.datagram import HEADER
from blast_transport.wire.messages import EndOfData, Hello, Nack
from tests.support.transport.pipeline_chain import SEGMENT, SUITE, content_of, digests_of, file_store
from tests.support.transport.transport_data import InOrder
from tests.support.transport.transport_hosts import LOOPBACK, TIMEOUT, agent, agents, datagram, light, sender_to
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("every_engine")

SIZE = 2 << 20
LAYOUT = BlockLayout(SIZE, 1456)
FOREIGN = (10, 15, 20, 25)
"""Blocks that are forged."""


@pytest.fixture(scope="module")
def forged(content: bytes) -> bytes:
    """Return the same file with four foreign blocks."""
    chance, result = random.Random(78), bytearray(content)
    for block in FOREIGN:
        begin = LAYOUT.offset(block)
        result[begin : begin + LAYOUT.block_size] = chance.randbytes(LAYOUT.block_size)
    return bytes(result)


def test_receiver_refuses_forged_blocks_of_chain_neighbor(
    tmp_path: Path, file: Path, content: bytes, forged: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = 0

    class Liar(FileOutlet):
        """An outlet that sends forged blocks to the next node."""

        def give(self, sock: socket.socket, offset: int, limit: int) -> int:
            nonlocal given
            sent = sock.send(forged[offset : offset + limit])
            given = max(given, offset + sent)
            return sent

    def outlet(engine: str, descriptor: int) -> FileOutlet:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        return Liar(descriptor) if path.parent.name == there[0].name else open_outlet(engine, descriptor)

    monkeypatch.setattr(node, "open_outlet", outlet)
    with agents(tmp_path, 2) as there, sender_to(there) as sender:
        result = sender.send_file(file, Route(Chain()))
        assert [one.files() for one in there] == [{file.name: content}] * 2
        assert (result.complete, there[0].received().refused) == (2, 0)
        # On a machine that is too busy for a chain, no forged block is sent.
        assert there[1].received().refused == len(FOREIGN) or given < SIZE


def test_chain_neighbor_cannot_set_end_of_stream(tmp_path: Path) -> None:
    content = content_of(100_000)
    store = file_store(tmp_path / "out", "f", None)
    chain = (ChainMember("", "", 0), ChainMember("liar", "", 0), ChainMember("us", "", 0))
    receiver = PipelineNode(PipelinePhase(1, 1, bytes(16), 0, chain, 2), store, lambda _: None)
    ours, theirs = socket.socketpair()
    with theirs:
        receiver.start()
        receiver.accept(ours, "liar")
        theirs.sendall(encode(Data(len(content))) + content + encode(End(len(content) - 1000, True)))
        theirs.sendall(encode(Report({})))
        blocks = -(-len(content) // BlockLayout(None, SEGMENT).block_size)
        eventually(lambda: store.position == blocks, event="the node has stored the stream")
        receiver.stop("the test is over")
        assert receiver.join(TIMEOUT)
    core = ReceiverCore(Hello(1, None, SEGMENT, 44, SUITE.name, "file", "f"), Assembly(store), 0.0)
    digests = digests_of(content)
    store.expect(0, digests)
    core.assembly.settle(len(content))
    core.end_of_data(EndOfData(1, len(content), SUITE.whole(digests)), 0.0)
    assert core.state is ReceiverState.COMMITTING
    store.commit(core.digest)
    assert (tmp_path / "out" / "f").read_bytes() == content


def replies_to(store: BlockStore, *messages: Message) -> list[Message]:
    """Return the node's messages to a predecessor that sends `messages`, until the node ends the connection."""
    chain = (ChainMember("", "", 0), ChainMember("liar", "", 0), ChainMember("us", "", 0))
    receiver = PipelineNode(PipelinePhase(1, 1, bytes(16), 0, chain, 2), store, lambda _: None)
    ours, theirs = socket.socketpair()
    decoder, replies = PipelineDecoder(), list[Message]()
    with theirs:
        theirs.settimeout(TIMEOUT)
        receiver.start()
        receiver.accept(ours, "liar")
        theirs.sendall(b"".join(map(encode, messages)))
        while data := theirs.recv(decoder.needed):
            if (message := decoder.feed(data)) is not None:
                replies.append(message)
            if isinstance(message, Passed):
                break
        receiver.stop("the test is over")
        assert receiver.join(TIMEOUT)
    return replies


@pytest.mark.parametrize("stop", [1, LAYOUT.block_size + 1, SIZE + 1, SIZE + LAYOUT.block_size])
def test_neighbor_cannot_make_node_skip_parts_of_blocks(tmp_path: Path, stop: int) -> None:
    store = file_store(tmp_path / "out", "f", SIZE)
    replies = replies_to(store, Held(stop))
    assert not any(isinstance(message, PipelineHeartbeat) and message.position for message in replies)


def test_neighbor_cannot_make_node_skip_in_order_data() -> None:
    for target in (InOrder(), MemoryTarget("m", SIZE)):
        replies = replies_to(SessionStore(LAYOUT, SUITE, target), Held(LAYOUT.block_size))
        assert not any(isinstance(message, PipelineHeartbeat) and message.position for message in replies)


def test_blocks_falsely_reported_as_held_are_requested_at_end(tmp_path: Path) -> None:
    store = file_store(tmp_path / "out", "f", SIZE)
    replies = replies_to(store, Held(LAYOUT.block_size), Held(SIZE), End(SIZE, True), Report({}))
    assert isinstance(replies[-1], Passed)
    assert store.held.held == 0
    core = ReceiverCore(Hello(1, SIZE, 1456, 44, SUITE.name, "file", "f"), Assembly(store), 0.0)
    core.end_of_data(EndOfData(1, SIZE, bytes(32)), 0.0)
    core.tick(1.0)
    asked = [message.ranges for message in core.outbox if isinstance(message, Nack)]
    assert asked == [((0, -(-SIZE // 1456)),)]
    store.discard(resumable=False)


def test_forged_datagrams_do_not_force_unicast_repair(
    tmp_path: Path, file: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forged datagrams open more blocks all over the file than may be open, before the sender reaches them."""
    monkeypatch.setattr(assembly, "MAX_OPEN_BYTES", 8 * LAYOUT.block_size)
    way, stop, observed = light(20e6), threading.Event(), threading.Event()

    def disturb() -> None:
        with (
            open_group_socket(LOOPBACK, way.group, way.port) as ear,
            open_sender_socket(LOOPBACK, way.group, way.port) as mouth,
        ):
            ear.settimeout(TIMEOUT)
            session = HEADER.unpack_from(ear.recv(65536))[0]
            observed.set()
            while not stop.wait(0.001):
                for block in range(LAYOUT.blocks - 20, LAYOUT.blocks - 1):
                    mouth.send(datagram(session, 44 * block + 43, bytes(LAYOUT.segment_size)))

    with agent(tmp_path / "r") as there, sender_to([there]) as sender:
        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            result = sender.send_file(file, Route(way))
        finally:
            stop.set()
            thread.join(TIMEOUT)
        assert observed.is_set()
        # Datagrams that are dropped for lack of room count as refused.
        assert (result.complete, there.received().refused) == (1, 0)
        assert there.files() == {file.name: content}

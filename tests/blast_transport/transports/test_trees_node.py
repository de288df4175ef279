"""A host of a tree over real sockets: connections of valid and invalid parents, and edges to children."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from blast_transport.store.blocks.store import SessionStore
from blast_transport.transports.trees.edge import ChildPath, Edge
from blast_transport.transports.trees.events import Event, ReportReady, Settled, TreesEnded
from blast_transport.transports.trees.node import TreeNode
from blast_transport.transports.trees.parcel import BufferSpace, Parcel
from blast_transport.transports.trees.plan import PlacedTree, TreesPhase, TreeTimings
from blast_transport.transports.trees.protocol.messages import (
    BlockHeld,
    EdgeCredit,
    EdgeEnd,
    Have,
    Message,
    Open,
    TreeAbort,
    TreeBlock,
    TreeDecoder,
    TreeHeartbeat,
    encode,
)
from blast_transport.wire.codec import FRAME, VERSION
from tests.support.transport.pipeline_chain import SUITE, content_of, memory_store
from tests.support.waiting import HANGING, eventually

BLOCK = 44 * 1456
BLOCKS = 10
CONTENT = content_of(BLOCKS * BLOCK - 5)
MEMBERS = (("", "", 0), ("a", "127.0.0.1", 9), ("b", "127.0.0.1", 9))
FROM_A, FROM_SENDER, NOT_US = PlacedTree(1e9, (0, 1)), PlacedTree(1e9, (-1, 0)), PlacedTree(1e9, (0, -1))
LONG_TIMINGS = TreeTimings(silence=HANGING, answer=HANGING)


def block(number: int) -> TreeBlock:
    return TreeBlock(number, bytearray(CONTENT[number * BLOCK : (number + 1) * BLOCK]))


class Parent:
    """A scripted peer that has connected under a name."""

    def __init__(self, node: TreeNode, name: str) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(HANGING)
        self._reader = TreeDecoder(lambda number, size: None)
        self._received: list[Message] = []
        node.accept(theirs, name)

    def send(self, *messages: Message) -> None:
        self.socket.sendall(b"".join(map(encode, messages)))

    def receive(self, kind: type[Message]) -> Message:
        """Return the next message of this kind; skip others."""
        while True:
            for place, message in enumerate(self._received):
                if isinstance(message, kind):
                    del self._received[: place + 1]
                    return message
            self._received += self._reader.filled(self.socket.recvmsg_into(self._reader.room())[0])

    def is_closed(self) -> bool:
        """Read until the other side has closed the connection, and return True."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionError:
            pass
        return True


class Running:
    """Node b of a phase, and its events."""

    def __init__(self, store: SessionStore, *trees: PlacedTree, timings: TreeTimings = LONG_TIMINGS) -> None:
        self.events: list[Event] = []
        phase = TreesPhase(1, 1, bytes(16), 0, MEMBERS, trees, 2, timings)
        self.node = TreeNode(phase, store, self.events.append)
        self.store = store
        self._parents: list[Parent] = []

    def parent(self, name: str) -> Parent:
        """Connect a peer under this name."""
        self._parents.append(Parent(self.node, name))
        return self._parents[-1]

    def close(self) -> None:
        """Stop the node and close the connections."""
        self.node.stop("the test is over")
        assert self.node.join(HANGING)
        for parent in self._parents:
            parent.socket.close()

    def lost(self) -> list[tuple[int, int, str]]:
        """Return the edges that the node reports as lost."""
        return [edge for event in self.events if isinstance(event, ReportReady) for edge in event.word.lost]


@contextmanager
def running(*trees: PlacedTree, timings: TreeTimings = LONG_TIMINGS) -> Iterator[Running]:
    one = Running(memory_store(len(CONTENT)), *trees, timings=timings)
    one.node.start()
    try:
        yield one
    finally:
        one.close()
        assert isinstance(one.events[-1], TreesEnded)


def test_node_receives_and_counts_blocks_of_two_trees() -> None:
    with running(FROM_A, FROM_SENDER) as one:
        a, sender = one.parent("a"), one.parent("")
        a.send(Open(0, 0))
        sender.send(Open(1, 0), block(9), *map(block, range(1, 5)), EdgeEnd(5))
        assert a.receive(Have) == Have(())
        a.send(block(0), *map(block, range(5, 9)), EdgeEnd(5))
        eventually(lambda: a.receive(EdgeCredit) == EdgeCredit(5, full=False))
        eventually(lambda: sender.receive(EdgeCredit) == EdgeCredit(5, full=False))
        eventually(lambda: Settled() in one.events)
        assert one.store.position == BLOCKS
        assert not one.lost()


def test_node_reports_held_blocks_and_parent_only_names_them() -> None:
    with running(FROM_A) as one:
        for number in (2, 3, 9):
            one.store.put(number, block(number).data)
        a = one.parent("a")
        a.send(Open(0, 0))
        assert a.receive(Have) == Have(((2, 2), (9, 1)))
        a.send(BlockHeld(3), block(0), BlockHeld(9), EdgeEnd(3))
        eventually(lambda: a.receive(EdgeCredit) == EdgeCredit(3, full=False))


def test_blocks_of_one_edge_arrive_over_several_streams() -> None:
    with running(FROM_A) as one:
        first, second = one.parent("a"), one.parent("a")
        first.send(Open(0, 0))
        first.receive(Have)
        second.send(Open(0, 1), *map(block, range(5)))
        first.send(*map(block, range(5, 10)), EdgeEnd(10))
        eventually(lambda: first.receive(EdgeCredit) == EdgeCredit(10, full=False))
        assert one.store.position == BLOCKS


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("", Open(0, 0)),
        ("b", Open(0, 0)),
        ("x", Open(0, 0)),
        ("a", Open(7, 0)),
        ("a", Open(1, 0)),
        ("a", Open(0, 1)),
        ("a", TreeHeartbeat()),
        ("a", block(0)),
    ],
)
def test_node_rejects_peer_that_is_not_its_parent(name: str, first: Message) -> None:
    with running(FROM_A, NOT_US) as one:
        other = one.parent(name)
        other.send(first)
        assert other.is_closed()
        # The rejected peer occupies no place.
        a = one.parent("a")
        a.send(Open(0, 0), block(0), EdgeEnd(1))
        eventually(lambda: a.receive(EdgeCredit) == EdgeCredit(1, full=False))
        assert not one.lost()


def test_node_rejects_second_parent_of_same_name() -> None:
    with running(FROM_A) as one:
        a, other = one.parent("a"), one.parent("a")
        a.send(Open(0, 0))
        a.receive(Have)
        other.send(Open(0, 0))
        assert other.is_closed()
        a.send(block(0), EdgeEnd(1))
        eventually(lambda: a.receive(EdgeCredit) == EdgeCredit(1, full=False))


@pytest.mark.parametrize(
    "wrong",
    [
        encode(TreeBlock(BLOCKS, bytearray(5))),
        encode(TreeBlock(3, bytearray(BLOCK - 1))),
        encode(TreeBlock(9, bytearray(BLOCK))),
        encode(TreeBlock(0, bytearray())),
        encode(EdgeCredit(1, full=False)),
        encode(Have(())),
        encode(Open(0, 0)),
        encode(EdgeEnd(0)) + encode(block(1)),
        encode(EdgeEnd(5)) + encode(EdgeEnd(5)),
        FRAME.pack(1 << 30, 50, VERSION) + bytes(8),
        FRAME.pack(0, 99, VERSION),
        FRAME.pack(0, 54, VERSION + 1),
    ],
)
def test_parent_with_invalid_message_is_lost(wrong: bytes) -> None:
    with running(FROM_A) as one:
        a = one.parent("a")
        a.send(Open(0, 0))
        a.receive(Have)
        with suppress(ConnectionError):  # The node may close on the head of a message, before the rest is sent.
            a.socket.sendall(wrong)
        assert a.is_closed()
        if not wrong.startswith(encode(EdgeEnd(0))):
            # After the end of the tree, the edge is not lost.
            eventually(one.lost)
            assert one.lost()[0][:2] == (1, 2)


@pytest.mark.parametrize(
    "last", [TreeAbort("done"), EdgeEnd(3), Open(0, 0)], ids=["leaves", "ends twice", "opens again"]
)
def test_parent_that_ends_early_is_lost_without_affecting_others(last: Message) -> None:
    with running(FROM_A, FROM_SENDER) as one:
        a, sender = one.parent("a"), one.parent("")
        a.send(Open(0, 0), EdgeEnd(0), last)
        assert a.is_closed()
        sender.send(Open(1, 0), *map(block, range(BLOCKS)), EdgeEnd(BLOCKS))
        eventually(lambda: sender.receive(EdgeCredit) == EdgeCredit(BLOCKS, full=False))
        assert one.store.position == BLOCKS


def test_silent_new_connection_is_closed() -> None:
    with running(FROM_A, timings=TreeTimings(answer=0.05)) as one:
        assert one.parent("a").is_closed()


def test_number_of_silent_connections_is_limited() -> None:
    with running(FROM_A) as one:
        crowd = [one.parent("a") for _ in range(8 + 20)]
        assert all(peer.is_closed() for peer in crowd[8:])
        one.node.stop("enough")
        assert all(peer.is_closed() for peer in crowd[:8])


def test_silent_parent_is_lost() -> None:
    with running(FROM_A, timings=TreeTimings(silence=0.2)) as one:
        a = one.parent("a")
        a.send(Open(0, 0), block(0))
        eventually(one.lost)
        assert "no message" in one.lost()[0][2]
        assert a.is_closed()


def test_slow_store_pauses_parent_and_reports_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node reads no more than its buffer holds, and sends heartbeats."""
    put = SessionStore.put_all
    gate: list[bool] = []

    def slow(store: SessionStore, first: int, row: list[bytearray]) -> int:
        while not gate:
            time.sleep(0.002)  # a store that takes nothing, until the test lets it
        return put(store, first, row)

    monkeypatch.setattr("blast_transport.store.blocks.eager_writer._is_slow", lambda *_: True)
    monkeypatch.setattr("blast_transport.transports.trees.node._STORE_BYTES", 2 * BLOCK)
    with running(FROM_A) as one:
        a = one.parent("a")
        # The first write marks the store as slow; from then on a thread writes.
        a.send(Open(0, 0), block(0))
        eventually(lambda: a.receive(EdgeCredit) == EdgeCredit(1, full=False))
        monkeypatch.setattr(SessionStore, "put_all", slow)
        # Sending all blocks blocks until the node reads them.
        sending = threading.Thread(target=a.send, args=(*map(block, range(1, 10)), EdgeEnd(10)))
        sending.start()
        eventually(lambda: a.receive(EdgeCredit) == EdgeCredit(1, full=True))
        a.receive(TreeHeartbeat)
        gate.append(True)
        sending.join()
        eventually(lambda: a.receive(EdgeCredit) == EdgeCredit(10, full=False))
        assert one.store.position == BLOCKS


def test_block_with_wrong_digest_is_not_held() -> None:
    with running(FROM_A) as one:
        digests = b"".join(SUITE.block(block(number).data) for number in range(BLOCKS))
        one.store.expect(0, digests)
        a = one.parent("a")
        a.send(Open(0, 0), TreeBlock(4, bytearray(BLOCK)), block(5), EdgeEnd(2))
        eventually(lambda: a.receive(EdgeCredit) == EdgeCredit(2, full=False))
        assert list(one.store.held.ranges()) == [(5, 1)]
        assert one.store.take_wrong() == [(4, 1)]


# ------------------------------------------------------------------------------------------------------------ edges


class Child:
    """An edge opened at time 0, and the other end of its connection. The host has forgotten all blocks."""

    def __init__(self) -> None:
        self.socket, self._theirs = socket.socketpair()
        self._reader = TreeDecoder(lambda number, size: None)
        self.edge = Edge(ChildPath(0, 1, 1e9), TreeTimings(), lambda number: None, 0.0)
        self.edge.connected(self._theirs, 0, b"", 0.0)
        self.work(0.0)
        assert self.received() == [Open(0, 0)]
        self.socket.sendall(encode(Have(((7, 1),))))
        self.work(0.0)

    def work(self, now: float) -> None:
        self.edge.work({self._theirs.fileno(): select.POLLIN}, now)

    def received(self) -> list[Message]:
        return list(self._reader.filled(self.socket.recvmsg_into(self._reader.room())[0]))


@pytest.fixture
def child() -> Iterator[Child]:
    one = Child()
    with one.socket:
        yield one
        one.edge.lose("the test is over")


def test_edge_names_held_blocks_and_omits_forgotten_ones(child: Child) -> None:
    for number in (5, 7):
        child.edge.name(number)
    child.edge.end()
    child.work(1.0)
    assert child.received() == [BlockHeld(7), EdgeEnd(1)]
    assert child.edge.taken == 1


def test_lost_edge_releases_its_buffer_space(child: Child) -> None:
    room = BufferSpace(100)
    child.edge.push(Parcel(1, bytes(10), 1, room))
    child.edge.name(2)
    child.edge.lose("for a test")
    assert (room.taken, child.edge.backlog) == (0, 0)


def test_edge_sends_no_second_heartbeat_while_one_waits(child: Child) -> None:
    child.edge.tick(1.0, 0.0)
    child.edge.tick(2.0, 0.0)
    child.work(2.0)
    assert child.received() == [TreeHeartbeat()]

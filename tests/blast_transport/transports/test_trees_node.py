"""What a host of a tree bears of those that connect to it, on real sockets, and its edges to its children."""

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
from tests.support.pipeline_chain import SUITE, content_of, memory_store
from tests.support.waiting import HANGING, eventually

BLOCK = 44 * 1456
BLOCKS = 10
CONTENT = content_of(BLOCKS * BLOCK - 5)
MEMBERS = (("", "", 0), ("a", "127.0.0.1", 9), ("b", "127.0.0.1", 9))
FROM_A, FROM_SENDER, NOT_US = PlacedTree(1e9, (0, 1)), PlacedTree(1e9, (-1, 0)), PlacedTree(1e9, (0, -1))
PATIENT = TreeTimings(silence=HANGING, answer=HANGING)


def block(number: int) -> TreeBlock:
    return TreeBlock(number, bytearray(CONTENT[number * BLOCK : (number + 1) * BLOCK]))


class Parent:
    """Whoever has connected under a name."""

    def __init__(self, node: TreeNode, name: str) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(HANGING)
        self._reader = TreeDecoder(lambda number, size: None)
        self._heard: list[Message] = []
        node.accept(theirs, name)

    def say(self, *messages: Message) -> None:
        self.socket.sendall(b"".join(map(encode, messages)))

    def hear(self, kind: type[Message]) -> Message:
        """Return the next message of this kind; skip others."""
        while True:
            for place, message in enumerate(self._heard):
                if isinstance(message, kind):
                    del self._heard[: place + 1]
                    return message
            self._heard += self._reader.filled(self.socket.recvmsg_into(self._reader.room())[0])

    def is_closed(self) -> bool:
        """Whether the other side has ended the connection, whatever it says before."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionError:
            pass
        return True


class Running:
    """Node b of a phase, and what it tells."""

    def __init__(self, store: SessionStore, *trees: PlacedTree, timings: TreeTimings = PATIENT) -> None:
        self.events: list[Event] = []
        phase = TreesPhase(1, 1, bytes(16), 0, MEMBERS, trees, 2, timings)
        self.node = TreeNode(phase, store, self.events.append)
        self.store = store
        self._parents: list[Parent] = []

    def parent(self, name: str) -> Parent:
        """Somebody connects."""
        self._parents.append(Parent(self.node, name))
        return self._parents[-1]

    def close(self) -> None:
        """Nobody is connected any more, and the node has ended."""
        self.node.stop("the test is over")
        assert self.node.join(HANGING)
        for parent in self._parents:
            parent.socket.close()

    def lost(self) -> list[tuple[int, int, str]]:
        """Return the edges that the node reports as lost."""
        return [edge for event in self.events if isinstance(event, ReportReady) for edge in event.word.lost]


@contextmanager
def running(*trees: PlacedTree, timings: TreeTimings = PATIENT) -> Iterator[Running]:
    one = Running(memory_store(len(CONTENT)), *trees, timings=timings)
    one.node.start()
    try:
        yield one
    finally:
        one.close()
        assert isinstance(one.events[-1], TreesEnded)


def test_blocks_come_by_two_trees_and_are_counted() -> None:
    with running(FROM_A, FROM_SENDER) as one:
        a, sender = one.parent("a"), one.parent("")
        a.say(Open(0, 0))
        sender.say(Open(1, 0), block(9), *map(block, range(1, 5)), EdgeEnd(5))
        assert a.hear(Have) == Have(())
        a.say(block(0), *map(block, range(5, 9)), EdgeEnd(5))
        eventually(lambda: a.hear(EdgeCredit) == EdgeCredit(5, full=False))
        eventually(lambda: sender.hear(EdgeCredit) == EdgeCredit(5, full=False))
        eventually(lambda: Settled() in one.events)
        assert one.store.position == BLOCKS
        assert not one.lost()


def test_what_it_holds_it_says_and_is_named() -> None:
    with running(FROM_A) as one:
        for number in (2, 3, 9):
            one.store.put(number, block(number).data)
        a = one.parent("a")
        a.say(Open(0, 0))
        assert a.hear(Have) == Have(((2, 2), (9, 1)))
        a.say(BlockHeld(3), block(0), BlockHeld(9), EdgeEnd(3))
        eventually(lambda: a.hear(EdgeCredit) == EdgeCredit(3, full=False))


def test_blocks_of_one_edge_come_in_several_streams() -> None:
    with running(FROM_A) as one:
        first, second = one.parent("a"), one.parent("a")
        first.say(Open(0, 0))
        first.hear(Have)
        second.say(Open(0, 1), *map(block, range(5)))
        first.say(*map(block, range(5, 10)), EdgeEnd(10))
        eventually(lambda: first.hear(EdgeCredit) == EdgeCredit(10, full=False))
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
def test_who_is_not_our_parent_there_is_not_let_in(name: str, first: Message) -> None:
    with running(FROM_A, NOT_US) as one:
        stranger = one.parent(name)
        stranger.say(first)
        assert stranger.is_closed()
        # And takes nobody's place.
        a = one.parent("a")
        a.say(Open(0, 0), block(0), EdgeEnd(1))
        eventually(lambda: a.hear(EdgeCredit) == EdgeCredit(1, full=False))
        assert not one.lost()


def test_a_second_parent_of_the_same_name_is_refused() -> None:
    with running(FROM_A) as one:
        a, other = one.parent("a"), one.parent("a")
        a.say(Open(0, 0))
        a.hear(Have)
        other.say(Open(0, 0))
        assert other.is_closed()
        a.say(block(0), EdgeEnd(1))
        eventually(lambda: a.hear(EdgeCredit) == EdgeCredit(1, full=False))


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
def test_a_parent_that_says_what_it_may_not_is_lost(wrong: bytes) -> None:
    with running(FROM_A) as one:
        a = one.parent("a")
        a.say(Open(0, 0))
        a.hear(Have)
        with suppress(ConnectionError):  # It may know by the head of a message, and be gone before the rest.
            a.socket.sendall(wrong)
        assert a.is_closed()
        if not wrong.startswith(encode(EdgeEnd(0))):
            # Who has had the whole tree misses nothing.
            eventually(one.lost)
            assert one.lost()[0][:2] == (1, 2)


@pytest.mark.parametrize(
    "last", [TreeAbort("done"), EdgeEnd(3), Open(0, 0)], ids=["leaves", "ends twice", "opens again"]
)
def test_a_parent_that_is_through_with_its_first_words_is_lost_and_nobody_else(last: Message) -> None:
    with running(FROM_A, FROM_SENDER) as one:
        a, sender = one.parent("a"), one.parent("")
        a.say(Open(0, 0), EdgeEnd(0), last)
        assert a.is_closed()
        sender.say(Open(1, 0), *map(block, range(BLOCKS)), EdgeEnd(BLOCKS))
        eventually(lambda: sender.hear(EdgeCredit) == EdgeCredit(BLOCKS, full=False))
        assert one.store.position == BLOCKS


def test_who_joins_and_says_nothing_is_let_go() -> None:
    with running(FROM_A, timings=TreeTimings(answer=0.05)) as one:
        assert one.parent("a").is_closed()


def test_many_that_say_nothing_are_bounded() -> None:
    with running(FROM_A) as one:
        crowd = [one.parent("a") for _ in range(8 + 20)]
        assert all(stranger.is_closed() for stranger in crowd[8:])
        one.node.stop("enough")
        assert all(stranger.is_closed() for stranger in crowd[:8])


def test_a_parent_that_falls_silent_is_lost() -> None:
    with running(FROM_A, timings=TreeTimings(silence=0.2)) as one:
        a = one.parent("a")
        a.say(Open(0, 0), block(0))
        eventually(one.lost)
        assert "no message" in one.lost()[0][2]
        assert a.is_closed()


def test_a_slow_store_makes_the_parent_wait_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads no more than it may keep, and lives."""
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
        # The first write makes the store a slow one; from then on a thread waits for it.
        a.say(Open(0, 0), block(0))
        eventually(lambda: a.hear(EdgeCredit) == EdgeCredit(1, full=False))
        monkeypatch.setattr(SessionStore, "put_all", slow)
        # Who says all of it waits until it is read.
        saying = threading.Thread(target=a.say, args=(*map(block, range(1, 10)), EdgeEnd(10)))
        saying.start()
        eventually(lambda: a.hear(EdgeCredit) == EdgeCredit(1, full=True))
        a.hear(TreeHeartbeat)
        gate.append(True)
        saying.join()
        eventually(lambda: a.hear(EdgeCredit) == EdgeCredit(10, full=False))
        assert one.store.position == BLOCKS


def test_what_is_known_not_to_be_what_was_sent_is_not_held() -> None:
    with running(FROM_A) as one:
        digests = b"".join(SUITE.block(block(number).data) for number in range(BLOCKS))
        one.store.expect(0, digests)
        a = one.parent("a")
        a.say(Open(0, 0), TreeBlock(4, bytearray(BLOCK)), block(5), EdgeEnd(2))
        eventually(lambda: a.hear(EdgeCredit) == EdgeCredit(2, full=False))
        assert list(one.store.held.ranges()) == [(5, 1)]
        assert one.store.take_wrong() == [(4, 1)]


# ------------------------------------------------------------------------------------------------------------ edges


class Child:
    """An edge that was opened at time 0, and the other end of its connection. The host holds no block any more."""

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


def test_child_is_told_of_what_it_holds_and_block_that_is_gone_is_left_out(child: Child) -> None:
    for number in (5, 7):
        child.edge.name(number)
    child.edge.end()
    child.work(1.0)
    assert child.received() == [BlockHeld(7), EdgeEnd(1)]
    assert child.edge.taken == 1


def test_lost_edge_gives_back_what_waits(child: Child) -> None:
    room = BufferSpace(100)
    child.edge.push(Parcel(1, bytes(10), 1, room))
    child.edge.name(2)
    child.edge.lose("for a test")
    assert (room.taken, child.edge.backlog) == (0, 0)


def test_sign_of_life_is_left_out_while_something_waits(child: Child) -> None:
    child.edge.tick(1.0, 0.0)
    child.edge.tick(2.0, 0.0)
    child.work(2.0)
    assert child.received() == [TreeHeartbeat()]

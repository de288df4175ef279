"""A receiver's connection to its sender: loss, reconnection, and rejection of other senders."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from blast_transport.agent.sessions import RunningSessions
from blast_transport.base.errors import RemoteError, RemoteProtocolError
from blast_transport.blocks.digests import suite_named
from blast_transport.links.sender_link import SenderLink
from blast_transport.links.verdict import SessionVerdict
from blast_transport.standalone.receiver import Receiver, ReceiverSettings
from blast_transport.wire.codec import ControlDecoder, encode
from blast_transport.wire.messages import (
    Abort,
    Credit,
    Digests,
    EndOfData,
    Fin,
    Heartbeat,
    Hello,
    Message,
    Phase,
    PhaseReady,
    Ready,
    Repair,
)
from blast_transport.wire.transports import UNICAST

HELLO = Hello(7, None, 1456, 44, "sha256", "file", "data", owner=b"o" * 16)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def pair(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = stack.enter_context(socket.create_connection(listener.getsockname()))
        far = stack.enter_context(listener.accept()[0])
    far.settimeout(30)
    return near, far


def link_of(stack: ExitStack, timeout: float) -> tuple[SenderLink, socket.socket, selectors.BaseSelector]:
    selector = stack.enter_context(selectors.DefaultSelector())
    near, far = pair(stack)
    return SenderLink(near, selector, lambda: None, timeout), far, selector


def read(link: SenderLink, selector: selectors.BaseSelector) -> list[Message]:
    assert selector.select(5)
    return link.receive()


def test_link_continues_after_sender_reconnects(stack):
    link, far, selector = link_of(stack, 5.0)
    far.sendall(encode(Heartbeat(7, 1)))
    assert read(link, selector) == [Heartbeat(7, 1)]
    far.close()
    assert read(link, selector) == [] and link.awaited
    assert not selector.select(0), "nothing of the lost connection is watched"
    link.check(time.monotonic())
    near, far = pair(stack)
    link.change(near)
    link.send([Credit(7, 1, 1, 1)])
    assert not link.awaited and link.deadline() is None
    assert ControlDecoder().feed(far.recv(100)) == [Credit(7, 1, 1, 1)]
    far.sendall(encode(Heartbeat(7, 2)))
    assert read(link, selector) == [Heartbeat(7, 2)]


def test_early_reconnection_replaces_old_connection(stack):
    link, old, _ = link_of(stack, 5.0)
    near, far = pair(stack)
    link.change(near)
    assert old.recv(1) == b""
    link.send([Heartbeat(7, 3)])
    assert ControlDecoder().feed(far.recv(100)) == [Heartbeat(7, 3)]


def test_link_fails_when_reconnection_timeout_expires(stack):
    link, far, selector = link_of(stack, 5.0)
    far.close()
    read(link, selector)
    deadline = link.deadline()
    assert deadline is not None
    link.check(deadline - 0.001)
    with pytest.raises(RemoteError, match="closed by the other side"):
        link.check(deadline)


def test_link_fails_at_once_without_timeout_or_on_invalid_data(stack):
    link, far, selector = link_of(stack, 0.0)
    far.close()
    with pytest.raises(RemoteError, match="closed by the other side"):
        read(link, selector)
    link, far, selector = link_of(stack, 5.0)
    far.sendall(b"\xff" * 20)
    with pytest.raises(RemoteProtocolError):
        read(link, selector)
    assert not link.awaited


class Sender:
    """A scripted sender with its own connection."""

    def __init__(self, receiver: Receiver, hello: Hello, stack: ExitStack) -> None:
        self.sock = stack.enter_context(socket.create_connection(receiver.address))
        self.sock.settimeout(30)
        self._decoder, self._waiting = ControlDecoder(), list[Message]()
        self.send(hello)

    def send(self, *messages: Message) -> None:
        self.sock.sendall(b"".join(map(encode, messages)))

    def receive(self, kind: type[Message]) -> Message:
        """Return the next message of this kind; skip others."""
        while True:
            while self._waiting:
                if isinstance(message := self._waiting.pop(0), kind):
                    return message
            data = self.sock.recv(1 << 16)
            assert data, "the receiver has closed"
            self._waiting += self._decoder.feed(data)


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    made = Receiver(ReceiverSettings(("127.0.0.1", 0), tmp_path), lambda event: None)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.stop()
    thread.join(30)
    assert not thread.is_alive()


def test_reconnected_sender_resumes_session(stack, receiver):
    first = Sender(receiver, HELLO, stack)
    assert first.receive(Ready).phase == 0
    first.send(Phase(7, 1, UNICAST, 0), Repair(7, ((0, bytes(44 * 1456)),)))
    first.receive(PhaseReady)
    while first.receive(Credit).written < 1:
        continue
    second = Sender(receiver, HELLO, stack)
    ready = second.receive(Ready)
    assert (ready.held, ready.phase) == (((0, 1),), 1)
    assert second.receive(Credit).written == 1
    second.send(Abort(7, "enough"))
    assert second.receive(Fin).reason == "enough"
    second.send(replace(HELLO, session=8))
    assert second.receive(Ready).session == 8, "the connection can carry another session"


def test_receiver_rejects_session_number_of_other_owner(stack, receiver):
    first = Sender(receiver, HELLO, stack)
    first.receive(Ready)
    for owner in (b"", b"x" * 16):
        refused = Sender(receiver, replace(HELLO, owner=owner), stack).receive(Abort)
        assert refused.reason == "session 7 runs here already; another sender may be using its number"
    first.send(Abort(7, "enough"))
    assert first.receive(Fin).reason == "enough", "it is not disturbed"


def test_receiver_repeats_verdict_of_ended_session(stack, receiver, tmp_path):
    data = bytes(100)
    first = Sender(receiver, HELLO, stack)
    first.receive(Ready)
    suite = suite_named(HELLO.suite)
    block = bytes(suite.block(data))
    digest = bytes(suite.whole(block))
    end = EndOfData(7, len(data), digest)
    first.send(Phase(7, 1, UNICAST, 0), Repair(7, ((0, data),)), Digests(7, 0, block), end)
    fin = first.receive(Fin)
    assert (fin.reason, fin.digest) == ("", digest)
    first.sock.close()
    for _ in range(2):
        again = Sender(receiver, HELLO, stack)
        assert again.receive(Ready).phase == 1
        assert again.receive(Fin) == fin
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [data], "nothing was received again"


class Ending:
    """A session whose sender reconnects at the moment of its removal."""

    hello = HELLO

    def __init__(self, sessions: RunningSessions) -> None:
        self._sessions, self._pool = sessions, ThreadPoolExecutor()

    @property
    def verdict(self) -> SessionVerdict:
        self.begun = self._pool.submit(self._sessions.begun, HELLO)
        wait([self.begun], 0.1)  # the answer must wait for the verdict
        return SessionVerdict(HELLO.owner, ())


def test_reconnection_during_removal_receives_verdict():
    """Otherwise the registry starts a new session, which receives everything again."""
    sessions = RunningSessions(1)
    ending = Ending(sessions)
    assert sessions.reserve(HELLO.session)
    sessions.add(HELLO.session, ending)
    sessions.remove(HELLO.session)
    assert ending.begun.result(30) == SessionVerdict(HELLO.owner, ())

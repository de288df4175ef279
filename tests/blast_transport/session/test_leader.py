"""A leader between a scripted sender and scripted members, over real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from blast_transport.links.dialling import Address
from blast_transport.links.leader import Leader
from blast_transport.wire.codec import ControlDecoder, encode
from blast_transport.wire.messages import Abort, Credit, Demoted, Heartbeat, Hello, Message, Nack, Phase, Ready, Repair
from blast_transport.wire.relaying import (
    Envelope,
    GroupCredit,
    Member,
    MemberCredits,
    Relay,
    RelayCredit,
    RelayDecoder,
    RelayMessage,
    encode_relay,
)

HELLO = Hello(7, 10, 1456, 44, "fast", "file", "name")
REPAIR = Repair(7, ((0, bytes(60_000)),))
TIMEOUT = 30.0
NOT_THERE = "cannot connect to c:3: Connection refused"


def tcp_pair(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = stack.enter_context(socket.create_connection(listener.getsockname()))
        far = stack.enter_context(listener.accept()[0])
    near.settimeout(TIMEOUT)
    return near, far


class Stage:
    """A leader of h0, h1 and the unreachable h2; `members` are the far ends of its connections."""

    def __init__(self, stack: ExitStack) -> None:
        self.members: dict[str, socket.socket] = {}
        self._stack, self._decoder, self._waiting = stack, RelayDecoder(), list[RelayMessage]()
        self.sender, far = tcp_pair(stack)
        relay = Relay((("h0", "a", 1), ("h1", "b", 2), ("h2", "c", 3)))
        self._leader = Leader(far, relay, self._dial)
        self._thread = threading.Thread(target=self._leader.run)
        self._thread.start()
        first = [self.receive(Member) for _ in range(3)]
        assert sorted(first, key=lambda member: member.number) == [Member(0), Member(1), Member(2, NOT_THERE)]

    def _dial(self, address: Address, seconds: float) -> socket.socket:
        if address[0] == "h2":
            raise ConnectionRefusedError(111, "Connection refused")
        self.members[address[0]], near = tcp_pair(self._stack)
        return near

    def send(self, message: Message, *members: int) -> None:
        self.sender.sendall(encode_relay(Envelope(members, encode(message))))

    def receive(self, kind: type[RelayMessage]) -> RelayMessage:
        """Return the next message of this kind; skip others."""
        while True:
            while self._waiting:
                message = self._waiting.pop(0)
                if isinstance(message, kind):
                    return message
            data = self.sender.recv(1 << 16)
            assert data, "the leader has ended"
            self._waiting += self._decoder.feed(data)

    def end(self) -> None:
        self._leader.stop()
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()


@pytest.fixture
def stage() -> Iterator[Stage]:
    with ExitStack() as stack:
        made = Stage(stack)
        try:
            yield made
        finally:
            made.end()


def received_at(sock: socket.socket, count: int) -> list[Message]:
    decoder, found = ControlDecoder(), list[Message]()
    while len(found) < count:
        data = sock.recv(1 << 16)
        assert data
        found += decoder.feed(data)
    return found


def test_leader_fans_out_frames_and_forwards_answers(stage):
    stage.send(HELLO, 0, 1, 2)
    stage.send(Heartbeat(7, 3), 1)
    assert received_at(stage.members["h0"], 1) == [HELLO]
    assert received_at(stage.members["h1"], 2) == [HELLO, Heartbeat(7, 3)]
    stage.members["h1"].sendall(encode(Ready(7)) + encode(Nack(7, ((1, 2),))))
    assert stage.receive(Envelope) == Envelope((1,), encode(Ready(7)))
    assert stage.receive(Envelope) == Envelope((1,), encode(Nack(7, ((1, 2),))))


def test_leader_aggregates_credits_without_demoted_members(stage):
    stage.send(HELLO, 0, 1)
    stage.send(Phase(7, 1, "optical", 0, credit=2), 0, 1)
    for name in ("h0", "h1"):
        stage.members[name].sendall(encode(Ready(7)))
        stage.receive(Envelope)
    stage.members["h1"].sendall(encode(Credit(7, 4, 4, 4)))
    assert stage.receive(MemberCredits) == MemberCredits(7, ((1, 4, 4, 4),))
    stage.members["h0"].sendall(encode(Credit(7, 2, 2, 2)))
    assert stage.receive(GroupCredit) == GroupCredit(7, 2, 2)
    stage.send(Demoted(7), 0)
    assert stage.receive(GroupCredit) == GroupCredit(7, 4, 4)


def test_member_that_does_not_read_is_lost_without_blocking_others(stage):
    for _ in range(400):
        stage.send(REPAIR, 0)
    lost = stage.receive(Member)
    assert lost == Member(0, "does not accept the data sent to it")
    stage.send(Heartbeat(7, 1), 0, 1)
    assert received_at(stage.members["h1"], 1) == [Heartbeat(7, 1)]


def test_leader_reports_bytes_that_member_accepts(stage):
    for _ in range(4):
        stage.send(REPAIR, 0)
    assert received_at(stage.members["h0"], 4) == [REPAIR] * 4
    reported = 0
    while reported < 3 * len(encode(REPAIR)):
        taken = stage.receive(RelayCredit)
        assert taken.member == 0
        reported += taken.count
    assert reported <= 4 * len(encode(REPAIR))


def test_leader_sends_heartbeats_until_every_member_answers(stage):
    stage.send(HELLO, 0, 1)
    stage.members["h0"].sendall(encode(Ready(7)))
    reported = [stage.receive(RelayCredit) for _ in range(3)]
    assert {taken.member for taken in reported[1:]} == {1}
    assert sum(taken.count for taken in reported if taken.member == 1) == len(encode(HELLO))
    stage.members["h1"].sendall(encode(Ready(7)))
    while stage.receive(Envelope) != Envelope((1,), encode(Ready(7))):
        continue
    stage.sender.settimeout(0.5)
    with pytest.raises(TimeoutError):
        stage.receive(RelayCredit)


def test_leader_stops_reading_members_while_sender_does_not_read(stage):
    """The leader's memory is bounded: unread data stays in the sockets of the members."""
    member, sent = stage.members["h0"], 0
    nack = encode(Nack(7, tuple((number, 1) for number in range(1000))))
    member.settimeout(0.5)
    with pytest.raises(TimeoutError):
        while sent < 1 << 27:
            sent += member.send(nack)
    assert sent < 1 << 26
    stage.send(HELLO, 1)
    assert received_at(stage.members["h1"], 1) == [HELLO], "the other direction continues"


def test_leader_reports_member_that_rejects_its_invitation(stage):
    stage.send(HELLO, 0)
    stage.members["h0"].sendall(encode(Abort(7, "a client with the role neighbor may not start sessions")))
    assert stage.receive(Member) == Member(0, "a client with the role neighbor may not start sessions")


def test_failed_member_is_reported_without_losing_others(stage):
    stage.members["h0"].sendall(b"\xff" * 20)
    lost = stage.receive(Member)
    assert lost.number == 0 and "protocol version 65535" in lost.reason
    stage.members["h1"].close()
    assert stage.receive(Member) == Member(1, "control connection closed by the other side")


def test_leader_disconnects_member_on_request_of_sender(stage):
    stage.sender.sendall(encode_relay(Member(0, "is no longer served")))
    assert stage.members["h0"].recv(1) == b""
    stage.send(Heartbeat(7, 1), 0, 1)
    assert received_at(stage.members["h1"], 1) == [Heartbeat(7, 1)]


@pytest.mark.parametrize("data", [b"", b"garbage garbage", encode_relay(RelayCredit(0, 1))])
def test_leader_disconnects_members_when_sender_fails(stage, data):
    stage.sender.sendall(data)
    # The leader may close the connection before all of the invalid data is sent.
    with suppress(OSError):
        stage.sender.shutdown(socket.SHUT_WR)
    for member in stage.members.values():
        assert member.recv(1) == b""

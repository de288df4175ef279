"""The agent's server over real sockets: sessions, joins, refusals and their reasons."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from blast_base.endpoint import Endpoint
from blast_transport.agent.reporting import RefusalReason, Reporter
from blast_transport.agent.server import AgentServer
from blast_transport.agent.settings import AgentClientSection, AgentSection, LimitsSection, Settings
from blast_transport.base.errors import AuthenticationError, CannotListenError, RemoteProtocolError, UnsafeNameError
from blast_transport.credentials.admission import Admission, AgentConnection, dialer
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.credentials.roles import NEIGHBOR
from blast_transport.credentials.tls import TlsFiles
from blast_transport.transports.pipeline.protocol.messages import encode as encode_join
from blast_transport.wire.codec import ControlDecoder, encode
from blast_transport.wire.joining import TOKEN_BYTES, Join
from blast_transport.wire.messages import Abort, Heartbeat, Hello, Readmitted
from tests.support.certificates import Authority
from tests.support.waiting import eventually

SECRET = SharedSecret(b"s" * 32)
ANYWHERE = Settings(agent=AgentSection(listen=Endpoint("127.0.0.1", 0)))


def hello(session: int, name: str = "file") -> Hello:
    return Hello(session=session, size=10, segment_size=1456, block_segments=44, suite="fast", kind="file", name=name)


def join(session: int, name: str = "h2") -> bytes:
    return encode_join(Join(session, 1, b"t" * TOKEN_BYTES, name))


class ScriptedSession:
    """Session that sends r, then reads a command: + keeps the connection, ! fails, any other byte ends both."""

    def __init__(self, connection: AgentConnection, message: Hello) -> None:
        if message.name == "forbidden":
            raise UnsafeNameError("the name 'forbidden' is not safe")
        self.connection, self.hello = connection, message
        self.joined: list[tuple[AgentConnection, Join]] = []
        self.reason = ""

    def run(self) -> bool:
        self.connection.sock.sendall(b"r")
        read = self.connection.sock.recv(1)
        if self.reason:
            self.connection.sock.sendall(encode(Abort(self.hello.session, self.reason)))
        if read == b"!":
            raise ZeroDivisionError
        return read == b"+"

    def join(self, connection: AgentConnection, message: Join) -> None:
        if message.name == "uninvited":
            raise RemoteProtocolError("uninvited does not belong to this chain")
        self.joined.append((connection, message))

    def stop(self, reason: str) -> None:
        self.reason = reason
        with suppress(OSError):
            self.connection.sock.shutdown(socket.SHUT_RD)


class Harness:
    """A running server, its sessions, and clients of it."""

    def __init__(
        self, settings: Settings, credentials: Credentials, clients: tuple[AgentClientSection, ...] = ()
    ) -> None:
        self.sessions: list[ScriptedSession] = []
        seconds = settings.access.handshake_timeout_ms / 1000
        admission = Admission(credentials, clients, seconds)
        self.server = AgentServer(settings, admission, self._make, Reporter())
        self.credentials = credentials
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()

    def _make(self, connection: AgentConnection, message: Hello) -> ScriptedSession:
        self.sessions.append(ScriptedSession(connection, message))
        return self.sessions[-1]

    def connect(self, credentials: Credentials | str = "") -> socket.socket:
        used = self.credentials if isinstance(credentials, str) else credentials
        sock = dialer(used)(("localhost", *self.server.endpoint), 5.0)
        sock.settimeout(30)
        return sock

    def plain(self) -> socket.socket:
        return socket.create_connection(self.server.endpoint, 30)

    def begin(self, session: int, name: str = "file") -> socket.socket:
        """Start the session of a client, and return its socket."""
        sock = self.connect()
        sock.sendall(encode(hello(session, name)))
        assert sock.recv(1) == b"r"
        return sock

    def refused(self, category: RefusalReason, number: int = 1) -> None:
        eventually(lambda: self.server.refusals.totals[category] == number)

    def end(self) -> None:
        self.server.stop("the test is over")
        self.thread.join(30)
        assert not self.thread.is_alive()


def is_closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def quit_reason(sock: socket.socket) -> str:
    """Return the reason that the agent sends before it closes."""
    with sock:
        received = b""
        while piece := sock.recv(4096):
            received += piece
    (message,) = ControlDecoder().feed(received)
    assert isinstance(message, Abort)
    return message.reason


@contextmanager
def running(settings: Settings = ANYWHERE, credentials: Credentials = SECRET, **more: object) -> Iterator[Harness]:
    harness = Harness(settings, credentials, **more)
    try:
        yield harness
    finally:
        harness.end()


@pytest.fixture
def harness() -> Iterator[Harness]:
    with running() as made:
        yield made


def limited(**limits: int) -> Settings:
    return replace(ANYWHERE, limits=LimitsSection(**{"unauthenticated_per_host": 1, "unauthenticated": 1, **limits}))


def test_hello_starts_session(harness):
    with harness.begin(7) as sock:
        sock.sendall(b".")
        assert sock.recv(1) == b"", "it is over, and the connection with it"
    assert harness.sessions[0].hello == hello(7)
    assert not harness.server.refusals.totals


def test_connection_carries_consecutive_sessions(harness):
    with harness.begin(1) as sock:
        sock.sendall(b"+" + encode(hello(2)))
        assert sock.recv(1) == b"r"
        sock.sendall(b"+")
        sock.sendall(encode(hello(1)))
        assert sock.recv(1) == b"r"
    assert [session.hello.session for session in harness.sessions] == [1, 2, 1]


def test_server_ignores_late_messages_of_ended_session(harness):
    """A sender that has not yet received the end of a session still sends heartbeats."""
    with harness.begin(1) as sock:
        sock.sendall(b"+" + encode(Heartbeat(1, 3)) + encode(Readmitted(1)) + encode(hello(2)))
        assert sock.recv(1) == b"r"
        sock.sendall(b"+" + encode(Heartbeat(1, 3)))
        assert is_closed(sock), "of the last session only"
    harness.refused(RefusalReason.PROTOCOL)
    assert [session.hello.session for session in harness.sessions] == [1, 2]


def test_server_rejects_session_message_before_hello(harness):
    with harness.connect() as sock:
        sock.sendall(encode(Heartbeat(1, 3)) + encode(hello(1)))
        assert is_closed(sock)
    harness.refused(RefusalReason.PROTOCOL)
    assert not harness.sessions


def test_rejected_sender_receives_reason_and_may_retry_at_once(harness, monkeypatch):
    """The session number is free before the refusal is sent, since the sender may retry by then."""
    running_sessions, really_refuse = [], AgentServer._refuse

    def refuse(server, *arguments):
        running_sessions.append(len(server._sessions))
        return really_refuse(server, *arguments)

    monkeypatch.setattr(AgentServer, "_refuse", refuse)
    sock = harness.connect()
    sock.sendall(encode(hello(7, "forbidden")))
    assert quit_reason(sock) == "the name 'forbidden' is not safe"
    assert running_sessions == [0]
    harness.refused(RefusalReason.TARGET)
    harness.begin(7).close()


def test_neighbor_joins_session_without_loss_of_following_bytes(harness):
    with harness.begin(7), harness.connect() as neighbor:
        neighbor.sendall(join(7) + b"GET")
        eventually(lambda: bool(harness.sessions[0].joined))
        connection, message = harness.sessions[0].joined[0]
        assert message.name == "h2" and message.token == b"t" * TOKEN_BYTES
        assert connection.sock.recv(100) == b"GET"
        connection.close()


@pytest.mark.parametrize(
    ("number", "name", "reason"),
    [(8, "h2", "session 8, which is to be joined, does not run here"), (7, "uninvited", "does not belong")],
)
def test_server_rejects_join_of_unknown_session_or_host(harness, caplog, number, name, reason):
    with harness.begin(7) as sender, harness.connect() as neighbor:
        neighbor.sendall(join(number, name))
        assert neighbor.recv(1) == b""
        harness.refused(RefusalReason.JOIN)
        sender.sendall(b".")
    assert reason in caplog.text


def test_incomplete_first_message_has_deadline():
    settings = replace(ANYWHERE, access=replace(ANYWHERE.access, handshake_timeout_ms=2000.0))
    with running(settings) as harness, harness.connect() as sock:
        sock.sendall(encode(hello(7))[:20])
        assert sock.recv(1) == b""
        harness.refused(RefusalReason.PROTOCOL)


def test_one_host_cannot_occupy_all_connections():
    settings = limited(unauthenticated=5)
    settings = replace(settings, agent=AgentSection(listen=Endpoint("0.0.0.0", 0)))
    with running(settings) as harness, harness.plain():
        eventually(lambda: harness.server._admission.unauthenticated == 1)
        with pytest.raises(AuthenticationError, match="1 connections of your host"):
            harness.connect()
        from_elsewhere = socket.create_connection(("127.0.0.1", harness.server.endpoint.port), 5, ("127.0.0.77", 0))
        with from_elsewhere:
            eventually(lambda: harness.server._admission.unauthenticated == 2)


def test_stopping_server_sends_reason_to_senders(harness):
    sock = harness.begin(7)
    harness.server.stop("the agent is ending (SIGTERM)")
    assert quit_reason(sock) == "the agent is ending (SIGTERM)"
    harness.thread.join(30)
    assert not harness.thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        harness.plain()


def test_silent_connections_do_not_delay_stop(harness):
    with harness.plain(), harness.connect(), harness.connect():
        eventually(lambda: harness.server._admission.guests == 2)
        harness.end()


def test_hanging_session_delays_stop_for_bounded_time(monkeypatch, caplog):
    monkeypatch.setattr(ScriptedSession, "stop", lambda self, reason: None)
    with running(replace(ANYWHERE, agent=replace(ANYWHERE.agent, stop_timeout_ms=100.0))) as harness, harness.begin(7):
        harness.end()
    assert "did not end in time" in caplog.text


def test_failed_session_does_not_affect_others(harness, caplog):
    with harness.begin(1) as other, harness.begin(2) as failing:
        failing.sendall(b"!")
        assert failing.recv(1) == b""
        assert "ZeroDivisionError" in caplog.text
        other.sendall(b"+" + encode(hello(2)))
        assert other.recv(1) == b"r", "its number is free again"


def test_neighbor_certificate_may_join_session_of_sender(tmp_path):
    authority = Authority(tmp_path, "ca")

    def files(subject: str, alternatives: str = "") -> TlsFiles:
        pair = authority.issue(subject, alternatives)
        return TlsFiles(pair.cert, pair.key, authority.cert)

    clients = (AgentClientSection(common_name="h2", role=NEIGHBOR), AgentClientSection(common_name="head"))
    with (
        running(credentials=files("/CN=h1", "DNS:localhost"), clients=clients) as harness,
        harness.connect(files("/CN=head")) as sender,
        harness.connect(files("/CN=h2")) as joining,
    ):
        sender.sendall(encode(hello(7)))
        assert sender.recv(1) == b"r"
        joining.sendall(join(7))
        eventually(lambda: bool(harness.sessions[0].joined))
        harness.sessions[0].joined[0][0].close()


def test_port_in_use_is_named_in_error(harness):
    with pytest.raises(CannotListenError, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already in use; change"):
        Harness(replace(ANYWHERE, agent=AgentSection(listen=harness.server.endpoint)), SECRET)


def test_server_listens_on_ipv6():
    if not socket.has_ipv6:
        pytest.skip("needs IPv6")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("needs IPv6 on loopback")
    with running(replace(ANYWHERE, agent=AgentSection(listen=Endpoint("::1", 0)))) as harness:
        harness.begin(1).close()

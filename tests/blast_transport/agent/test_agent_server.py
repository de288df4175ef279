"""The agent's server over real sockets: who gets a session, who joins one, who is refused and how that is told."""

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


class PlaySession:
    """Says r, then obeys what it reads: + keeps the connection for another session, ! fails, anything else ends it."""

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
        if message.name == "stranger":
            raise RemoteProtocolError("stranger does not belong to this chain")
        self.joined.append((connection, message))

    def stop(self, reason: str) -> None:
        self.reason = reason
        with suppress(OSError):
            self.connection.sock.shutdown(socket.SHUT_RD)


class Play:
    """A running server, its sessions, and clients of it."""

    def __init__(
        self, settings: Settings, credentials: Credentials, clients: tuple[AgentClientSection, ...] = ()
    ) -> None:
        self.sessions: list[PlaySession] = []
        seconds = settings.access.handshake_timeout_ms / 1000
        admission = Admission(credentials, clients, seconds)
        self.server = AgentServer(settings, admission, self._make, Reporter())
        self.credentials = credentials
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()

    def _make(self, connection: AgentConnection, message: Hello) -> PlaySession:
        self.sessions.append(PlaySession(connection, message))
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

    def refused(self, why: RefusalReason, number: int = 1) -> None:
        eventually(lambda: self.server.refusals.totals[why] == number)

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
        said = b""
        while piece := sock.recv(4096):
            said += piece
    (message,) = ControlDecoder().feed(said)
    assert isinstance(message, Abort)
    return message.reason


@contextmanager
def playing(settings: Settings = ANYWHERE, credentials: Credentials = SECRET, **more: object) -> Iterator[Play]:
    play = Play(settings, credentials, **more)
    try:
        yield play
    finally:
        play.end()


@pytest.fixture
def play() -> Iterator[Play]:
    with playing() as made:
        yield made


def limited(**limits: int) -> Settings:
    return replace(ANYWHERE, limits=LimitsSection(**{"unauthenticated_per_host": 1, "unauthenticated": 1, **limits}))


def test_a_hello_makes_a_session(play):
    with play.begin(7) as sock:
        sock.sendall(b".")
        assert sock.recv(1) == b"", "it is over, and the connection with it"
    assert play.sessions[0].hello == hello(7)
    assert not play.server.refusals.totals


def test_a_connection_may_carry_one_session_after_the_other(play):
    with play.begin(1) as sock:
        sock.sendall(b"+" + encode(hello(2)))
        assert sock.recv(1) == b"r"
        sock.sendall(b"+")
        sock.sendall(encode(hello(1)))
        assert sock.recv(1) == b"r"
    assert [session.hello.session for session in play.sessions] == [1, 2, 1]


def test_words_of_a_session_that_has_ended_may_come_late(play):
    """A sender that has not heard yet that we are through still gives signs of life."""
    with play.begin(1) as sock:
        sock.sendall(b"+" + encode(Heartbeat(1, 3)) + encode(Readmitted(1)) + encode(hello(2)))
        assert sock.recv(1) == b"r"
        sock.sendall(b"+" + encode(Heartbeat(1, 3)))
        assert is_closed(sock), "of the last session only"
    play.refused(RefusalReason.PROTOCOL)
    assert [session.hello.session for session in play.sessions] == [1, 2]


def test_no_connection_begins_with_words_of_a_session(play):
    with play.connect() as sock:
        sock.sendall(encode(Heartbeat(1, 3)) + encode(hello(1)))
        assert is_closed(sock)
    play.refused(RefusalReason.PROTOCOL)
    assert not play.sessions


def test_refused_sender_hears_the_reason_and_may_come_again_at_once(play, monkeypatch):
    """It may use another way while the thread that sent the refusal still works."""
    told, begun = [], AgentServer._refuse

    def refuse(server, *words):
        told.append(len(server._sessions))
        return begun(server, *words)

    monkeypatch.setattr(AgentServer, "_refuse", refuse)
    sock = play.connect()
    sock.sendall(encode(hello(7, "forbidden")))
    assert quit_reason(sock) == "the name 'forbidden' is not safe"
    assert told == [0]
    play.refused(RefusalReason.TARGET)
    play.begin(7).close()


def test_a_neighbor_joins_a_session_and_nothing_of_its_words_is_lost(play):
    with play.begin(7), play.connect() as neighbor:
        neighbor.sendall(join(7) + b"GET")
        eventually(lambda: bool(play.sessions[0].joined))
        connection, message = play.sessions[0].joined[0]
        assert message.name == "h2" and message.token == b"t" * TOKEN_BYTES
        assert connection.sock.recv(100) == b"GET"
        connection.close()


@pytest.mark.parametrize(
    ("number", "name", "reason"),
    [(8, "h2", "session 8, which is to be joined, does not run here"), (7, "stranger", "does not belong")],
)
def test_who_does_not_belong_to_a_session_is_shut_out(play, caplog, number, name, reason):
    with play.begin(7) as sender, play.connect() as neighbor:
        neighbor.sendall(join(number, name))
        assert neighbor.recv(1) == b""
        play.refused(RefusalReason.JOIN)
        sender.sendall(b".")
    assert reason in caplog.text


def test_a_message_that_is_never_finished_has_a_deadline():
    settings = replace(ANYWHERE, access=replace(ANYWHERE.access, handshake_timeout_ms=2000.0))
    with playing(settings) as play, play.connect() as sock:
        sock.sendall(encode(hello(7))[:20])
        assert sock.recv(1) == b""
        play.refused(RefusalReason.PROTOCOL)


def test_one_host_does_not_take_every_place():
    settings = limited(unauthenticated=5)
    settings = replace(settings, agent=AgentSection(listen=Endpoint("0.0.0.0", 0)))
    with playing(settings) as play, play.plain():
        eventually(lambda: play.server._admission.unauthenticated == 1)
        with pytest.raises(AuthenticationError, match="1 connections of your host"):
            play.connect()
        from_elsewhere = socket.create_connection(("127.0.0.1", play.server.endpoint.port), 5, ("127.0.0.77", 0))
        with from_elsewhere:
            eventually(lambda: play.server._admission.unauthenticated == 2)


def test_an_end_is_told_to_senders(play):
    sock = play.begin(7)
    play.server.stop("the agent is ending (SIGTERM)")
    assert quit_reason(sock) == "the agent is ending (SIGTERM)"
    play.thread.join(30)
    assert not play.thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        play.plain()


def test_who_is_silent_does_not_hold_up_the_end(play):
    with play.plain(), play.connect(), play.connect():
        eventually(lambda: play.server._admission.guests == 2)
        play.end()


def test_a_session_that_does_not_end_holds_up_the_end_for_a_bounded_time(monkeypatch, caplog):
    monkeypatch.setattr(PlaySession, "stop", lambda self, reason: None)
    with playing(replace(ANYWHERE, agent=replace(ANYWHERE.agent, stop_timeout_ms=100.0))) as play, play.begin(7):
        play.end()
    assert "did not end in time" in caplog.text


def test_a_session_that_fails_harms_no_other(play, caplog):
    with play.begin(1) as other, play.begin(2) as failing:
        failing.sendall(b"!")
        assert failing.recv(1) == b""
        assert "ZeroDivisionError" in caplog.text
        other.sendall(b"+" + encode(hello(2)))
        assert other.recv(1) == b"r", "its number is free again"


def test_certificate_of_a_neighbor_joins_the_session_of_a_sender(tmp_path):
    authority = Authority(tmp_path, "ca")

    def files(subject: str, alternatives: str = "") -> TlsFiles:
        pair = authority.issue(subject, alternatives)
        return TlsFiles(pair.cert, pair.key, authority.cert)

    clients = (AgentClientSection(common_name="h2", role=NEIGHBOR), AgentClientSection(common_name="head"))
    with (
        playing(credentials=files("/CN=h1", "DNS:localhost"), clients=clients) as play,
        play.connect(files("/CN=head")) as sender,
        play.connect(files("/CN=h2")) as joining,
    ):
        sender.sendall(encode(hello(7)))
        assert sender.recv(1) == b"r"
        joining.sendall(join(7))
        eventually(lambda: bool(play.sessions[0].joined))
        play.sessions[0].joined[0][0].close()


def test_ports_in_use_are_named(play):
    with pytest.raises(CannotListenError, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already in use; change"):
        Play(replace(ANYWHERE, agent=AgentSection(listen=play.server.endpoint)), SECRET)


def test_ipv6_is_served():
    if not socket.has_ipv6:
        pytest.skip("needs IPv6")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("needs IPv6 on loopback")
    with playing(replace(ANYWHERE, agent=AgentSection(listen=Endpoint("::1", 0)))) as play:
        play.begin(1).close()

"""Unauthenticated and rejected peers do not exhaust descriptors, threads, connections, leaders or the log."""

from __future__ import annotations

import errno
import gc
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from blast_base.endpoint import Endpoint
from blast_transport.agent.permissions import Permissions
from blast_transport.agent.reporting import RefusalReason, Reporter
from blast_transport.agent.server import AgentServer
from blast_transport.agent.settings import (
    NEIGHBOR,
    AgentClientSection,
    AgentSection,
    CommandSection,
    FolderSection,
    LimitsSection,
    Settings,
)
from blast_transport.agent.targets import Targets, session_factory
from blast_transport.base.errors import AuthenticationError
from blast_transport.credentials.admission import Admission, dialer
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.credentials.tls import TlsFiles
from blast_transport.links.connection_limits import ConnectionLimiter
from blast_transport.links.dialling import MAX_DIALS, Dialling
from blast_transport.session.receiver_session import HostResources
from blast_transport.store.targets.file_target import FileRules
from blast_transport.transports.pipeline.protocol.messages import encode as encode_join
from blast_transport.wire.codec import ControlDecoder, encode
from blast_transport.wire.joining import TOKEN_BYTES, Join
from blast_transport.wire.messages import Abort, Fin, Hello, Ready
from blast_transport.wire.relaying import Relay, encode_relay
from tests.support.certificates import Authority
from tests.support.transport.transport_hosts import serving
from tests.support.waiting import eventually

SECRET = SharedSecret(b"s" * 32)
REFUSED = 50
"""Connections of each kind, enough to make a leak of one descriptor for each visible."""


def hello(session: int, **more: object) -> Hello:
    fields = {"size": 10, "segment_size": 1456, "block_segments": 44, "suite": "sha256", "kind": "file", "name": "f"}
    return Hello(session=session, **{**fields, **more})  # type: ignore[arg-type]


@dataclass
class Host:
    """An agent in this process that writes below `folder`."""

    folder: Path
    server: AgentServer
    credentials: Credentials

    def connect(self, credentials: Credentials | str = "") -> socket.socket:
        used = self.credentials if isinstance(credentials, str) else credentials
        sock = dialer(used)(("localhost", *self.server.endpoint), 10.0)
        sock.settimeout(10)
        return sock

    def ask(self, data: bytes, credentials: Credentials | str = "") -> bytes:
        """Send this on its own connection, and return everything that the agent sends before it closes."""
        with self.connect(credentials) as sock:
            sock.sendall(data)
            return read_all(sock)

    def refusal(self, message: Hello) -> str:
        (answer,) = ControlDecoder().feed(self.ask(encode(message)))
        assert isinstance(answer, Abort), answer
        return answer.reason

    def invite(self, message: Hello) -> socket.socket:
        """Start the session of a sender, and return its socket."""
        sock = self.connect()
        sock.sendall(encode(message))
        decoder = ControlDecoder()
        answer = decoder.feed(sock.recv(4096))
        assert isinstance(answer[0], Ready), answer
        return sock


def read_all(sock: socket.socket) -> bytes:
    received = b""
    with suppress(ConnectionResetError):
        while piece := sock.recv(4096):
            received += piece
    return received


@contextmanager
def hosting(
    folder: Path, credentials: Credentials = SECRET, clients: tuple[AgentClientSection, ...] = (), **limits: int
) -> Iterator[Host]:
    settings = Settings(
        AgentSection(Endpoint("127.0.0.1", 0)),
        folder=(FolderSection("in", folder),),
        command=(CommandSection("gone", ("/nonexistent/program",)),),
        limits=LimitsSection(**limits),
    )
    surroundings = HostResources(
        Targets(Permissions(settings), FileRules(settings.limits.file_bytes)), lambda _: None, None
    )
    admission = Admission(credentials, clients)
    server = AgentServer(settings, admission, session_factory(surroundings), Reporter())
    host = Host(folder, server, credentials)
    with serving(server):
        if credentials is SECRET:
            # After this connection the agent has opened all the descriptors that it needs for itself.
            host.connect().close()
            eventually(lambda: not server.busy, "an agent that serves")
        yield host


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def constant_descriptors() -> Iterator[None]:
    """Check that no descriptors stay open, without help from the garbage collector."""
    gc.collect()
    before = descriptors()
    gc.disable()
    try:
        yield
        eventually(lambda: descriptors() <= before, f"{before} open descriptors again")
    finally:
        gc.enable()


REFUSALS: dict[str, tuple[dict[str, int], Hello | None, Hello, str, RefusalReason]] = {
    "link": ({}, None, hello(1, name="link"), "symbolic link", RefusalReason.TARGET),
    "below a link": ({}, None, hello(1, name="link/f"), "symbolic link", RefusalReason.TARGET),
    "no folder": ({}, None, hello(1, folder="other"), "no folder", RefusalReason.TARGET),
    "too large": ({"file_bytes": 10_000}, None, hello(1, size=10_001), "more than the 10000", RefusalReason.TARGET),
    "no room": ({}, None, hello(1, size=1 << 42), "do not fit", RefusalReason.TARGET),
    "no program": ({}, None, hello(1, kind="command", name="gone"), "No such file", RefusalReason.TARGET),
    "memory": ({}, None, hello(1, kind="memory"), "keeps nothing in memory", RefusalReason.TARGET),
    "kind of digests": ({}, None, hello(1, suite="md4"), "md4", RefusalReason.TARGET),
    "same file": (
        {},
        hello(1, content="same"),
        hello(2, content="same"),
        "another session is writing",
        RefusalReason.TARGET,
    ),
    "number taken": (
        {},
        hello(1),
        hello(1),
        "runs here already; another sender may be using its number",
        RefusalReason.TAKEN,
    ),
    "too many sessions": (
        {"sessions": 1},
        hello(1),
        hello(2),
        "runs 1 sessions, as many as it takes",
        RefusalReason.FULL,
    ),
}
"""Limits, the running session, the rejected message, part of the reason, and its category."""


@pytest.mark.parametrize(("limits", "runs", "message", "reason", "category"), REFUSALS.values(), ids=REFUSALS)
def test_rejected_target_leaks_no_descriptor(
    tmp_path: Path, limits: dict[str, int], runs: Hello | None, message: Hello, reason: str, category: RefusalReason
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with hosting(tmp_path, **limits) as host, host.invite(runs) if runs else nullcontext():
        assert reason in host.refusal(message)
        with constant_descriptors():
            for _ in range(REFUSED):
                host.refusal(message)
        assert host.server.refusals.totals == {category: REFUSED + 1}


def test_unauthenticated_client_leaks_no_descriptor(tmp_path: Path) -> None:
    with hosting(tmp_path) as host, constant_descriptors():
        for _ in range(REFUSED):
            with pytest.raises(AuthenticationError):
                host.connect(SharedSecret(b"t" * 32))
    assert host.server.refusals.totals == {RefusalReason.AUTHENTICATION: REFUSED}


def test_connections_beyond_limit_leak_no_descriptor(tmp_path: Path) -> None:
    with hosting(tmp_path, connections=1) as host, host.invite(hello(1)), constant_descriptors():
        for _ in range(REFUSED):
            with pytest.raises(AuthenticationError, match="as many as it takes"):
                host.connect()
    assert host.server.refusals.totals == {RefusalReason.CROWD: REFUSED}


@pytest.mark.parametrize(
    ("data", "category"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", RefusalReason.PROTOCOL),
        (encode(Fin(1)), RefusalReason.PROTOCOL),
        (encode_join(Join(7, 1, b"t" * TOKEN_BYTES, "h2")), RefusalReason.JOIN),
    ],
    ids=["no message", "no first message", "a join of a phase that does not run"],
)
def test_invalid_first_message_leaks_no_descriptor(tmp_path: Path, data: bytes, category: RefusalReason) -> None:
    with hosting(tmp_path) as host, host.invite(hello(7)):
        with constant_descriptors():
            for _ in range(REFUSED):
                assert host.ask(data) == b""
        assert host.server.refusals.totals == {category: REFUSED}


def test_neighbor_that_exceeds_its_role_leaks_no_descriptor(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    host_pair, pair = authority.issue("/CN=h1", "DNS:localhost"), authority.issue("/CN=h2")
    files = TlsFiles(host_pair.cert, host_pair.key, authority.cert)
    neighbor = TlsFiles(pair.cert, pair.key, authority.cert)
    clients = (AgentClientSection(common_name="h2", role=NEIGHBOR),)
    relay = encode_relay(Relay((("h3", "127.0.0.1", 9),)))
    with hosting(tmp_path, files, clients) as host:
        host.connect(neighbor).close()
        with constant_descriptors():
            for _ in range(REFUSED // 4):
                assert b"may not start sessions" in host.ask(encode(hello(1)), neighbor)
                assert host.ask(relay, neighbor) == b""
    assert host.server.refusals.totals == {RefusalReason.ROLE: 2 * (REFUSED // 4)}


# ------------------------------------------------------------------------------------------------------ threads


@contextmanager
def without_threads(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[None]:
    """Let the system start no more threads whose names begin with one of `names`."""

    class Refusing(threading.Thread):
        def start(self) -> None:
            if self.name.startswith(names):
                raise RuntimeError("can't start new thread")
            super().start()

    with monkeypatch.context() as patch:
        patch.setattr(threading, "Thread", Refusing)
        yield


def test_agent_survives_thread_limit_and_reports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hosting(tmp_path) as host:
        with without_threads(monkeypatch, "connection"), constant_descriptors():
            for _ in range(REFUSED):
                with pytest.raises(AuthenticationError, match="no more threads"):
                    host.connect()
        assert host.server.refusals.totals == {RefusalReason.RESOURCES: REFUSED}
        host.invite(hello(1)).close()


def test_session_reports_missing_thread_for_completion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty file is complete at once; nothing else of the session needs a thread."""
    from blast_transport.blocks.digests import suite_named
    from blast_transport.wire.messages import EndOfData

    digest = suite_named("sha256").whole(b"")
    with hosting(tmp_path) as host, without_threads(monkeypatch, "completing"), host.invite(hello(1, size=0)) as sock:
        sock.sendall(encode(EndOfData(1, 0, digest)))
        decoder, fins = ControlDecoder(), list[Fin]()
        while not fins:
            fins += [message for message in decoder.feed(sock.recv(4096)) if isinstance(message, Fin)]
    assert "no more threads" in fins[0].reason
    assert [path.name for path in tmp_path.iterdir()] == []


def test_dialing_many_hosts_uses_bounded_threads() -> None:
    running, peak, go = 0, 0, threading.Event()
    counting = threading.Lock()

    def dial(address: object, seconds: float) -> socket.socket:
        nonlocal running, peak
        with counting:
            running += 1
            peak = max(peak, running)
        go.wait(30)
        with counting:
            running -= 1
        raise OSError(errno.ECONNREFUSED, "refused")

    before = threading.active_count()
    dialling: Dialling[int] = Dialling(dial, lambda: None)
    for number in range(4 * MAX_DIALS):
        dialling.begin(number, ("h", "127.0.0.1", 9), 1.0)
    assert threading.active_count() <= before + MAX_DIALS
    go.set()
    found: list[object] = []

    def all_ended() -> bool:
        found.extend(dialling.take())
        return len(found) == 4 * MAX_DIALS

    eventually(all_ended, "the end of every attempt")
    assert peak <= MAX_DIALS and not dialling


def test_dialing_reports_missing_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[int] = []
    dialling: Dialling[int] = Dialling(lambda *_: socket.socket(), lambda: woken.append(1))
    with without_threads(monkeypatch, "dial"):
        dialling.begin(1, ("h", "127.0.0.1", 9), 1.0)
    ((key, outcome),) = dialling.take()
    assert key == 1 and isinstance(outcome, str) and "no more threads" in outcome
    assert woken and not dialling


# ------------------------------------------------------------------------------------------- places, log, leaders


def test_agent_bounds_leaders_by_session_limit(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, hosting(tmp_path, sessions=2) as host:
        relay = encode_relay(Relay((("h3", *silent.getsockname()),)))
        leading = [host.connect() for _ in range(2)]
        for sock in leading:
            sock.sendall(relay)
        eventually(lambda: len(host.server._leaders) == 2, "two leaders")
        assert host.ask(relay) == b""
        assert host.server.refusals.totals == {RefusalReason.FULL: 1}
        for sock in leading:
            sock.close()
        eventually(lambda: not host.server._leaders, "the end of both")
        again = host.connect()
        again.sendall(relay)
        eventually(lambda: len(host.server._leaders) == 1, "a released place")
        again.close()


def test_unexpected_admission_fault_releases_connection_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    with hosting(tmp_path, unauthenticated=2, unauthenticated_per_host=2) as host:
        monkeypatch.setattr(Admission, "admit", fail)
        with constant_descriptors(), caplog.at_level(logging.CRITICAL, "blast.agent"):
            for _ in range(50):
                with socket.create_connection(host.server.endpoint, 10) as sock:
                    assert sock.recv(1) == b""
                eventually(lambda: not host.server.busy, "no connection left")
        tracebacks = [record for record in caplog.records if record.exc_info]
        assert 1 <= len(tracebacks) < 50, "logged, but not once for each connection"
        assert host.server.refusals.totals[RefusalReason.FAULT] == 50


def test_agent_without_descriptors_rejects_sessions_with_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with hosting(tmp_path) as host:
        with monkeypatch.context() as patch:
            patch.setattr("blast_transport.session.receiver_session.selectors.DefaultSelector", fail)
            assert "no room for a session: Too many open files" in host.refusal(hello(1))
        assert host.server.refusals.totals == {RefusalReason.RESOURCES: 1}
        host.invite(hello(1)).close()


def test_limiter_counts_ipv6_network_as_one_host() -> None:
    limiter = ConnectionLimiter(unauthenticated=4, unauthenticated_per_host=2)
    assert not limiter.enter("2001:db8::1") and not limiter.enter("2001:db8::2:2")
    assert "connections of your host" in limiter.enter("2001:db8::3")
    assert not limiter.enter("2001:db8:0:1::1"), "another network"
    assert not limiter.enter("::ffff:10.0.0.1")
    limiter.leave("2001:db8::1", guest=False)
    assert not limiter.enter("2001:db8::4")

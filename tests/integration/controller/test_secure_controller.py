"""The controller as a process: access, reloads, and crowds of unauthenticated clients and switches."""

from __future__ import annotations

import contextlib
import json
import resource
import selectors
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from blast_api import BlastOperator
from blast_client import Client, ControllerUnreachableError, Denied, MulticastRequest, TlsSettings
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import new_token, token_line
from tests.integration.controller.openflow_harness import FakeSwitch
from tests.support.certificates import Authority
from tests.support.waiting import eventually

BLAST = str(Path(sys.executable).with_name("blast"))
TIMEOUT = 60.0
MIB = 1 << 20
FABRIC = dedent("""
    [controller]
    thrift = "127.0.0.1:0"
    openflow = "127.0.0.1:0"
    [journal]
    in_memory = true
    [[rack]]
    name = "r1"
    datapath = "0000000000000001"
    optical_ports = []
    hosts = [{ name = "h1", port = 1, ip = "10.0.0.1" }, { name = "h2", port = 2, ip = "10.0.0.2" }]
    [[tenant]]
    name = "physics"
    max_pending = 1
    """)
OPTICAL_SWITCH = dedent("""
    [[optical_switch]]
    name = "ocs1"
    address = "127.0.0.1:{port}"
    inputs = 8
    outputs = 8
    """)
OPTICAL_PORT = '[{ port = 9, optical_switch = "ocs1", input = 1, output = 1 }]'


class Controller:
    """A controller's process, its files and its clients."""

    def __init__(self, folder: Path) -> None:
        self.config, self.log, self.tokens = folder / "blast.toml", folder / "log", folder / "tokens"
        self.user, self.operator = new_token(), new_token()
        self.allow_all()
        self.tls: TlsSettings | None = None
        self.address = self.openflow = ""

    def allow(self, *pairs: tuple[str, Identity]) -> None:
        self.tokens.write_text("".join(token_line(*pair) + "\n" for pair in pairs))
        self.tokens.chmod(0o600)

    def allow_all(self) -> None:
        self.allow((self.user, Identity("physics", Role.USER)), (self.operator, Identity("default", Role.OPERATOR)))

    @contextlib.contextmanager
    def running(self, text: str, *wrapper: str) -> Iterator[Controller]:
        """Run with this configuration, by a wrapper if there is one, until the end of the block."""
        self.config.write_text(text)
        with self.log.open("w") as log:
            command = [*wrapper, BLAST, "controller", "run", "--config", str(self.config)]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert self.process.stdout is not None
            ready = self.process.stdout.readline()
            assert ready, self.log.read_text()
            self.address, self.openflow = json.loads(ready)["thrift"], json.loads(ready)["openflow"]
            yield self
        finally:
            self.process.kill()
            self.process.communicate()

    @property
    def access(self) -> str:
        return f'[access]\ntoken_file = "{self.tokens}"\n'

    def client(self, token: str | None) -> Client:
        return Client(self.address, tls=self.tls, token=token, timeout=TIMEOUT)

    def reload(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", int(self.address.rpartition(":")[2])), TIMEOUT)

    def resident(self) -> int:
        """Bytes of memory that the process has."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024


# --------------------------------------------------------------------------------------------------- access and reload


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "ca")


@pytest.fixture(scope="module")
def protected(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """Yield a controller that serves clients and switches by TLS, and identifies clients by tokens."""
    controller = Controller(tmp_path_factory.mktemp("protected"))
    pair, shown = (authority.issue("/CN=controller", "IP:127.0.0.1") for _ in range(2))
    controller.tls, controller.shown = TlsSettings(authority.cert), shown
    clients = f'certificate = "{pair.cert}"\nprivate_key = "{pair.key}"\n'
    switches = f'certificate = "{shown.cert}"\nprivate_key = "{shown.key}"\nswitch_ca = "{authority.cert}"\n'
    with controller.running(f"{FABRIC}{controller.access}{clients}[openflow]\n{switches}"):
        yield controller


def test_protected_controller_enforces_role_of_each_client(protected: Controller) -> None:
    with pytest.raises(ControllerUnreachableError):
        Client(protected.address).ping()
    with protected.client(None) as anonymous:
        assert {"login", "tls", "tenants"} <= set(anonymous.version().features)
        with pytest.raises(Denied, match="log in"):
            anonymous.fabric()
        with pytest.raises(Denied):
            anonymous.login(new_token())
    with protected.client(protected.user) as user, protected.client(protected.operator) as operator:
        assert user.submit(MulticastRequest("k", "h1", ["h2"], 10**6)).tenant == "physics"
        assert operator.status("physics/k").tenant == "physics"
        for denied in (lambda: user.drain(True), user.journal):
            with pytest.raises(Denied, match="operator"):
                denied()
    eventually(lambda: "failed login" in protected.log.read_text(), "the failed login in the log")
    log = protected.log.read_text()
    assert "TLS handshake failed" in log
    assert protected.user not in log and protected.operator not in log


def test_reload_revokes_token_of_open_connections(protected: Controller) -> None:
    with protected.client(protected.user) as user, protected.client(protected.operator) as operator:
        user.fabric()
        protected.allow((protected.operator, Identity("default", Role.OPERATOR)))
        protected.reload()
        with pytest.raises(Denied, match="not authenticated"):
            eventually(lambda: user.fabric() is None, "the new rights")
        operator.fabric()
        protected.allow_all()
        protected.reload()
        eventually(lambda: _is_served(user), "the old rights")


def _is_served(client: Client) -> bool:
    try:
        return client.fabric() is not None
    except Denied:
        return False


def test_tor_cannot_connect_with_certificate_of_another_tor(protected: Controller, authority: Authority) -> None:
    """Otherwise the holder of one switch's key could claim to be any switch."""
    port, context = _openflow(protected, authority, "/CN=0000000000000002")
    with FakeSwitch(port, 1, tls=context) as switch:
        switch.until_closed()
    with protected.client(protected.operator) as operator:
        assert not operator.fabric().racks[0].connected
    eventually(lambda: "but its certificate is not 0000000000000001" in protected.log.read_text(), "the refusal")


def test_reload_presents_new_certificate_to_switches(protected: Controller, authority: Authority) -> None:
    port, context = _openflow(protected, authority, "/CN=tor", "DNS:0000000000000001")
    with FakeSwitch(port, 1, tls=context) as switch:
        switch.prepare()
        with protected.client(protected.operator) as operator:
            eventually(lambda: operator.fabric().racks[0].connected, "the ToR to be connected")
        assert _shown(switch) == protected.shown.cert.read_text()
    second = authority.issue("/CN=controller", "IP:127.0.0.1")
    protected.shown.cert.write_text(second.cert.read_text())
    protected.shown.key.write_text(second.key.read_text())
    protected.reload()
    eventually(lambda: _certificate_at(port, context) == second.cert.read_text(), "the new certificate")


def _openflow(controller: Controller, authority: Authority, *subject: str) -> tuple[int, ssl.SSLContext]:
    """Return the OpenFlow port, and the TLS context of a switch with a certificate of this subject."""
    pair = authority.issue(*subject)
    context = ssl.create_default_context(cafile=str(authority.cert))
    context.load_cert_chain(pair.cert, pair.key)
    return int(controller.openflow.rpartition(":")[2]), context


def _certificate_at(port: int, context: ssl.SSLContext) -> str:
    with FakeSwitch(port, 1, tls=context) as switch:
        return _shown(switch)


def _shown(switch: FakeSwitch) -> str:
    assert isinstance(switch.stream, ssl.SSLSocket)
    return ssl.DER_cert_to_PEM_cert(switch.stream.getpeercert(binary_form=True) or b"")


def test_controller_does_not_start_with_world_readable_secrets(tmp_path: Path) -> None:
    controller = Controller(tmp_path)
    controller.tokens.chmod(0o644)
    controller.config.write_text(FABRIC + controller.access)
    command = [BLAST, "controller", "run", "--config", str(controller.config)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert ended.returncode == 2
    assert "chmod o=" in ended.stderr and ended.stdout == "" and len(ended.stderr.splitlines()) == 1


# ------------------------------------------------------------------------------------- crowds that have not logged in


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """Yield a controller that accepts tokens over plain TCP."""
    controller = Controller(tmp_path_factory.mktemp("crowded"))
    with controller.running(FABRIC + controller.access):
        yield controller


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open thousands of sockets for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_unauthenticated_clients_do_not_exhaust_descriptors(tmp_path: Path) -> None:
    controller = Controller(tmp_path)
    with (
        controller.running(FABRIC + controller.access, "prlimit", "--nofile=256:256"),
        contextlib.ExitStack() as crowd,
    ):
        for _ in range(300):
            crowd.enter_context(controller.connect())
        port = int(controller.openflow.rpartition(":")[2])
        for _ in range(100):
            crowd.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT))
        with controller.client(controller.operator) as client:
            assert client.fabric().racks
        assert len(list(Path(f"/proc/{controller.process.pid}/fd").iterdir())) < 240


def frame(method: str, *arguments: object) -> bytes:
    buffer = TMemoryBuffer()
    getattr(BlastOperator.Client(TBinaryProtocolAccelerated(buffer)), f"send_{method}")(*arguments)
    body = buffer.getvalue()
    return struct.pack("!i", len(body)) + body


def answers_of(connection: socket.socket, count: int = 1) -> list[bytes]:
    """Return the bodies of the next replies; an empty one if the connection is closed."""
    with connection.makefile("rb") as stream:
        lengths = (stream.read(4) for _ in range(count))
        return [stream.read(struct.unpack("!i", length)[0]) if length else b"" for length in lengths]


def push(connections: list[socket.socket], each: int, data: bytes) -> None:
    """Send `data` again and again on every connection until it took `each` bytes, is closed, or takes no more."""
    left = {}
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            connection.setblocking(False)
            left[connection] = each
            selector.register(connection, selectors.EVENT_WRITE)
        while left and (ready := selector.select(2.0)):
            for key, _ in ready:
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                try:
                    left[connection] -= connection.send(data)
                except BlockingIOError:
                    continue
                except OSError:
                    left[connection] = 0
                if left[connection] <= 0:
                    selector.unregister(connection)
                    del left[connection]


def test_unauthenticated_clients_use_little_memory(crowded: Controller) -> None:
    before = crowded.resident()
    # Calls as large as the interface allows, as fast as they are taken.
    call = frame("login", "x" * (MIB - 100))
    with ExitStack() as stack:
        connections = [stack.enter_context(crowded.connect()) for _ in range(16)]
        push(connections, 12 * MIB, call)
        grown = crowded.resident() - before
    assert grown < 48 * MIB, f"{grown / MIB:.0f} MiB"


def test_only_authenticated_client_may_send_large_frame(crowded: Controller) -> None:
    large = struct.pack("!i", 20_000) + frame("login", "x")[4:].ljust(20_000, b"\0")
    with crowded.connect() as anonymous:
        anonymous.sendall(large)
        refused, end = answers_of(anonymous, 2)
        assert b"exceeds the cap of 16384 bytes" in refused and end == b""
    with crowded.connect() as known:
        # Also where both are on their way before the login has been looked at.
        known.sendall(frame("login", crowded.operator) + frame("quarantine", "port:r1/9", "x" * 20_000))
        login, quarantine = answers_of(known, 2)
        assert b"login" in login and b"unknown_element" in quarantine


def test_authenticated_client_survives_crowd_of_new_connections(crowded: Controller) -> None:
    with crowded.connect() as known, ExitStack() as stack:
        known.sendall(frame("login", crowded.operator))
        assert b"login" in answers_of(known)[0]
        connections = [stack.enter_context(crowded.connect()) for _ in range(300)]
        assert connections[0].recv(1) == b"", "the longest connected unauthenticated client is closed"
        known.sendall(frame("drain", None))
        assert b"drain" in answers_of(known)[0]


def enters(controller: Controller) -> bool:
    """Connect as the operator; return whether its login and its call are answered before its place is taken."""
    with controller.connect() as operator, contextlib.suppress(OSError):
        operator.sendall(frame("login", controller.operator) + frame("drain", None))
        answers = answers_of(operator, 2)
        return len(answers) == 2 and b"login" in answers[0] and b"drain" in answers[1]
    return False


@pytest.mark.usefixtures("many_files")
def test_operator_logs_in_despite_thousands_of_connections(crowded: Controller) -> None:
    """They exceed the maximum number of clients, have the operator's address, and keep connecting."""
    stop = threading.Event()
    crowd: list[socket.socket] = []

    def come_and_stay() -> None:
        while not stop.is_set():
            if len(crowd) > 8000:
                crowd.pop(0).close()
            with contextlib.suppress(OSError):
                crowd.append(crowded.connect())

    thread = threading.Thread(target=come_and_stay)
    thread.start()
    try:
        eventually(lambda: len(crowd) >= 4200, "the crowd to be connected", TIMEOUT)
        # A new connection takes the place of the longest connected unauthenticated client. Until its login arrives, the
        # operator is one of them: on a busy machine it may lose its place, and tries again like every client.
        assert sum(enters(crowded) for _ in range(20)) >= 5, "the operator is crowded out"
    finally:
        stop.set()
        thread.join()
        for one in crowd:
            one.close()


# ----------------------------------------------------------------------------------- optical switches that flood

ENOUGH = 48 * MIB
"""Bytes of one connection, after which the flood stops by itself."""
ALARM = b'\r\n\r\n   ocs 26-01-01 00:00:00\r\n*C 7 REPT ALM EQPT\r\n   "10101:CR,LOS,SA,,,RCV"\r\n;\r\n'
NONSENSE = b"this is not TL1, and there is very much of it, line after line after line after line\r\n"


class Flood:
    """An optical switch that sends `text` on each connection until it is closed or has taken enough."""

    def __init__(self, text: bytes) -> None:
        self._text = text * (65_536 // len(text))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.sent: list[int] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                with connection:
                    self.sent.append(self._send_to(connection))

    def _send_to(self, connection: socket.socket) -> int:
        sent = 0
        with contextlib.suppress(OSError):
            while sent < ENOUGH:
                sent += connection.send(self._text)
        return sent

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.mark.parametrize("text", [ALARM, NONSENSE], ids=["alarms", "nonsense"])
def test_optical_switch_that_floods_the_controller_is_disconnected(text: bytes, tmp_path: Path) -> None:
    flood, controller = Flood(text), Controller(tmp_path)
    config = FABRIC.replace("optical_ports = []", f"optical_ports = {OPTICAL_PORT}")
    with contextlib.closing(flood), controller.running(config + OPTICAL_SWITCH.format(port=flood.port)):
        eventually(lambda: len(flood.sent) >= 3, "three connections", TIMEOUT)
        with controller.client(None) as client:
            (switch,) = client.fabric().opticalSwitches
        assert not switch.connected
        # Bytes in the sockets' buffers count as sent, too.
        assert max(flood.sent) < ENOUGH / 2
        assert controller.log.stat().st_size < MIB

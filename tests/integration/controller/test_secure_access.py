"""TLS, certificates, logins and tenants over the loopback, with the real clients, server, handler and core."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from blast_api import BlastOperator, ttypes
from blast_client import (
    AsyncClient,
    Client,
    ControllerUnreachableError,
    CredentialsError,
    Denied,
    MulticastRequest,
    PartState,
    TlsSettings,
)
from blast_client.api.calls import TlsError
from blast_client.cli.command import main
from blast_controller.rpc.clients.access import AccessPolicy, CertificateRule
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import digest_of, new_token
from blast_controller.rpc.connections.framed_server import FramedServer, Security
from blast_controller.rpc.connections.server_state import ServerLimits
from blast_controller.rpc.methods import ROLES
from blast_controller.serving import tls
from tests.support.certificates import Authority, Pair
from tests.support.controller.core import make_fabric
from tests.support.controller.memory_controller import MemoryController
from tests.support.controller.runtime import running
from tests.support.waiting import eventually

TIMEOUT = 30.0


class Papers:
    """All certificates of these tests."""

    def __init__(self, folder: Path) -> None:
        self.ca, self.client_ca, self.foreign_ca = (Authority(folder / name, name) for name in ("ca", "own", "other"))
        self.server = self.ca.issue("/CN=controller", "IP:127.0.0.1,DNS:controller.test")
        self.physics = self.client_ca.issue("/OU=physics/CN=spark-1")
        self.biology = self.client_ca.issue("/OU=biology/CN=spark-1")
        self.admin = self.client_ca.issue("/CN=operator", "URI:spiffe://lab/admin")
        self.unmapped = self.client_ca.issue("/OU=cooks/CN=spark-1")
        self.expired = self.client_ca.issue("/OU=physics/CN=spark-1", days=-1)
        self.forged = self.foreign_ca.issue("/OU=physics/CN=spark-1")


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))


TOKENS = {name: new_token() for name in ("viewer", "physics", "admin")}
POLICY = AccessPolicy(
    rules=(
        CertificateRule(frozenset({("organizational_unit", "physics")}), Identity("physics", Role.USER)),
        CertificateRule(frozenset({("organizational_unit", "biology")}), Identity("biology", Role.USER)),
        CertificateRule(frozenset({("uri", "spiffe://lab/admin")}), Identity("default", Role.OPERATOR)),
    ),
    tokens={
        digest_of(TOKENS["viewer"]): Identity("physics", Role.VIEWER),
        digest_of(TOKENS["physics"]): Identity("physics", Role.USER),
        digest_of(TOKENS["admin"]): Identity("default", Role.OPERATOR),
    },
    tenants=frozenset({"default", "physics", "biology"}),
    features=frozenset({"login", "tenants", "tls"}),
)


@dataclass
class Served:
    """A server, its gate, and where it is."""

    server: FramedServer
    gate: Gate
    address: str

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


@contextmanager
def serving(papers: Papers | None, handler=None, limits=None, policy=POLICY, **tls_options):
    """Serve the real handler over a core with instant devices, or `handler`; use TLS if `papers` are present."""
    with ExitStack() as stack:
        gate = Gate(policy, ROLES)
        if handler is None:
            lab = stack.enter_context(running(make_fabric(6, [4, 4])))
            handler = lab.make_handler(gate)
        settings = tls.ServerTlsSettings(papers.server.cert, papers.server.key, **tls_options) if papers else None
        server = FramedServer(BlastOperator, handler, limits, ttypes.Denied, Security(gate, settings))
        stack.callback(server.stop)
        host, port = server.start(port=0)
        yield Served(server, gate, f"{host}:{port}")


def ping_by_asyncio(address: str, settings: TlsSettings | None = None) -> None:
    async def ping() -> None:
        async with AsyncClient(address, tls=settings) as client:
            await client.ping()

    asyncio.run(ping())


def trusting(papers: Papers, own: Pair | None = None, **more) -> TlsSettings:
    return TlsSettings(papers.ca.cert, own.cert if own else None, own.key if own else None, **more)


def new_request(key: str, **more) -> MulticastRequest:
    return MulticastRequest(**{"key": key, "sender": "r1h1", "receivers": ["r2h1", "r3h1"], "bytes": 10**9, **more})


# ------------------------------------------------------------------------------------------------------- authentication


def test_client_certificate_determines_identity(papers):
    with serving(papers, client_ca=papers.client_ca.cert) as served:
        with Client(served.address, tls=trusting(papers, papers.physics)) as client:
            assert {"login", "tenants", "tls"} <= set(client.version().features)
            status = client.submit(new_request("k"))
            assert status.tenant == "physics"
            assert client.await_event("k", timeout=TIMEOUT).grant.receivers == ["r2h1", "r3h1"]
            with pytest.raises(Denied, match="user of tenant physics"):
                client.quarantine("splitter:s1", "x")
        with Client(served.address, tls=trusting(papers, papers.admin)) as admin:
            admin.quarantine("splitter:s2", "dirty")
        with Client(served.address, tls=trusting(papers, papers.unmapped)) as unmapped:
            unmapped.ping()
            with pytest.raises(Denied, match="not authenticated"):
                unmapped.submit(new_request("k"))


@pytest.mark.parametrize("holder", ["none", "expired", "forged"])
def test_server_rejects_client_without_valid_certificate(papers, holder):
    own = None if holder == "none" else getattr(papers, holder)
    handler = MemoryController()
    with serving(papers, handler, client_ca=papers.client_ca.cert) as served:
        with Client(served.address, tls=trusting(papers, own)) as client, pytest.raises(ControllerUnreachableError):
            client.ping()
        with pytest.raises(ControllerUnreachableError):
            ping_by_asyncio(served.address, trusting(papers, own))
        eventually(lambda: served.server.counters.failed_handshakes == 2)
        assert (handler.calls, served.server.counters.connections) == ([], 0)


def test_client_rejects_controller_with_unverified_certificate(papers):
    with serving(papers, MemoryController()) as served:
        with pytest.raises(TlsError, match=r"unable to get local issuer|self-signed") as failed:
            Client(served.address, tls=TlsSettings(papers.foreign_ca.cert)).ping()
        assert "--ca" in str(failed.value)
        with pytest.raises(TlsError, match="mismatch"):
            Client(served.address, tls=trusting(papers, server_name="other.test")).ping()
        with pytest.raises(TlsError):
            Client(served.address, tls=TlsSettings()).ping()
        with pytest.raises(TlsError, match="mismatch"):
            ping_by_asyncio(served.address, trusting(papers, server_name="other.test"))
        with Client(served.address, tls=trusting(papers, server_name="controller.test")) as client:
            client.ping()


def test_plaintext_and_tls_endpoints_do_not_connect(papers):
    handler = MemoryController()
    with serving(papers, handler) as served:
        with pytest.raises(ControllerUnreachableError), Client(served.address) as client:
            client.ping()
        with pytest.raises(ControllerUnreachableError):
            ping_by_asyncio(served.address)
        eventually(lambda: served.server.counters.failed_handshakes == 2)
        assert handler.calls == []
    with serving(None, handler, policy=AccessPolicy(Identity("default", Role.OPERATOR))) as served:
        with pytest.raises(TlsError):
            Client(served.address, tls=trusting(papers)).ping()
        with pytest.raises(ControllerUnreachableError):
            ping_by_asyncio(served.address, trusting(papers))


def test_server_rejects_tls_1_0(papers):
    with serving(papers, MemoryController()) as served:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(papers.ca.cert)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with (
            socket.create_connection(("127.0.0.1", served.port)) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped,
        ):
            assert wrapped.version() == "TLSv1.2"
        client_hello_of_tls_1_0 = (
            bytes.fromhex("160301002f0100002b0301") + bytes(32) + bytes.fromhex("000004002f00350100")
        )
        with socket.create_connection(("127.0.0.1", served.port), TIMEOUT) as old:
            old.sendall(client_hello_of_tls_1_0)
            answer = old.recv(100)
        assert answer[:1] in (b"", b"\x15"), "closed, or an alert"
        eventually(lambda: served.server.counters.failed_handshakes == 1)


# --------------------------------------------------------------------------------------------------------- slow clients


def test_silent_tls_clients_block_no_client_and_are_closed(papers):
    with serving(papers, MemoryController(), handshake_seconds=5) as served:
        silent = [socket.create_connection(("127.0.0.1", served.port), TIMEOUT) for _ in range(20)]
        slow = socket.create_connection(("127.0.0.1", served.port), TIMEOUT)
        try:
            slow.sendall(b"\x16\x03\x01")
            with Client(served.address, tls=trusting(papers)) as client:
                client.ping()
            assert served.server.counters.failed_handshakes < 21, "no client waited for them"
            for one in [*silent, slow]:
                assert one.recv(10) == b""
            eventually(lambda: served.server.counters.failed_handshakes == 21)
        finally:
            for one in [*silent, slow]:
                one.close()


def test_stopping_ends_handshakes_in_progress(papers):
    with serving(papers, MemoryController(), handshake_seconds=60) as served:
        silent = socket.create_connection(("127.0.0.1", served.port), TIMEOUT)
        eventually(lambda: served.server._listener._tasks, "the handshake to begin")
        served.server.stop()
        assert silent.recv(10) == b""
        silent.close()


def test_client_without_login_is_disconnected_at_deadline(papers):
    with serving(papers, limits=ServerLimits(seconds_to_login=3)) as served, ExitStack() as stack:
        known = stack.enter_context(Client(served.address, tls=trusting(papers), token=TOKENS["physics"]))
        anonymous = stack.enter_context(Client(served.address, tls=trusting(papers)))
        known.ping()
        anonymous.ping()
        eventually(lambda: served.server.counters.unauthenticated == 1)
        eventually(lambda: served.server.counters.connections == 1)
        assert list(known.list_requests()) == []


def test_new_client_evicts_longest_silent_handshake(papers):
    """Handshakes have few places; of one address, the longest silent one is closed first."""
    with serving(papers, MemoryController(), handshake_seconds=TIMEOUT) as served:
        served.server._listener._handshakes.total = 3
        with ExitStack() as stack:
            silent = [stack.enter_context(connected(served)) for _ in range(4)]
            assert silent[0].recv(10) == b"", "the first one is closed"
            with Client(served.address, tls=trusting(papers)) as client:
                client.ping()
            assert silent[1].recv(10) == b""
            eventually(lambda: served.server.counters.failed_handshakes == 2)
        eventually(lambda: served.server.counters.failed_handshakes == 4)


def connected(served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), TIMEOUT)


# -------------------------------------------------------------------------------------------------------- logins


def test_token_authenticates_every_connection_of_client(papers):
    with serving(papers) as served, Client(served.address, tls=trusting(papers)) as client:
        with pytest.raises(Denied, match="log in"):
            client.submit(new_request("k"))
        client.login(TOKENS["physics"])
        assert client.submit(new_request("k")).tenant == "physics"
        client.close()
        assert client.status("k").tenant == "physics", "on a new connection"
        client.login(TOKENS["viewer"])
        with pytest.raises(Denied, match="viewer"):
            client.withdraw("k")
        assert served.gate.counters.logins == 3


async def test_async_client_logs_in_on_every_connection(papers):
    with serving(papers) as served:
        async with AsyncClient(served.address, tls=trusting(papers), token=TOKENS["physics"]) as client:
            first, second = await asyncio.gather(client.submit(new_request("a")), client.submit(new_request("b")))
            assert {first.tenant, second.tenant} == {"physics"}
            await client.close()
            assert (await client.status("a")).tenant == "physics"
        async with AsyncClient(served.address, tls=trusting(papers), token="wrong") as client:
            with pytest.raises(Denied, match="Unknown token"):
                await client.ping()


def test_failed_logins_delay_only_the_guessing_client(papers):
    with serving(papers) as served, Client(served.address, tls=trusting(papers)) as guesser:
        begun = time.monotonic()
        for _ in range(2):
            with pytest.raises(Denied, match="Unknown token"):
                guesser.login("guess")
        assert time.monotonic() - begun >= 0.25, "the second one waited"
        with Client(served.address, tls=trusting(papers), token=TOKENS["physics"]) as other:
            other.ping()
        assert served.gate.counters.failed_logins == 2


def test_pipelined_login_attempts_are_delayed_in_sequence(papers):
    with serving(None) as served, Client(served.address) as client:
        client.ping()
        thrift, wire = client._connection._thrift, client._connection._socket
        for _ in range(3):
            thrift.send_login("guess")
        begun = time.monotonic()
        wire.setTimeout(TIMEOUT * 1000)
        for _ in range(3):
            with pytest.raises(ttypes.Denied):
                thrift.recv_login()
        assert time.monotonic() - begun >= 0.75


def test_delayed_client_that_disconnects_is_removed():
    with serving(None) as served:
        with Client(served.address) as client, pytest.raises(Denied):
            client.login("guess")
        eventually(lambda: served.server.counters.connections == 0)


def test_client_sends_token_only_over_tls_or_loopback():
    with pytest.raises(CredentialsError, match="TLS"):
        Client("192.0.2.1:9090", token=TOKENS["physics"])
    with pytest.raises(CredentialsError, match="TLS"):
        Client("controller.example:9090").login(TOKENS["physics"])
    Client("127.0.0.1:9090", token=TOKENS["physics"])
    Client("[::1]:9090", token=TOKENS["physics"])


def test_client_reconnects_to_restarted_controller_over_tls(papers):
    """Even for a call that is not repeated: a client notices between calls that its connection is gone."""
    handler = MemoryController()
    settings = Security(tls=tls.ServerTlsSettings(papers.server.cert, papers.server.key))
    server = FramedServer(BlastOperator, handler, security=settings)
    host, port = server.start(port=0)
    with Client(f"{host}:{port}", tls=trusting(papers)) as client:
        client.submit(MulticastRequest("k", "h11", ["h21"], 10**8))
        server.stop()
        server = FramedServer(BlastOperator, handler, security=settings)
        server.start(host, port)
        try:
            assert client.finish("k").state == PartState.DONE
        finally:
            server.stop()


def test_new_connections_get_reloaded_certificate(papers):
    other = papers.foreign_ca.issue("/CN=controller", "IP:127.0.0.1")
    with serving(papers, MemoryController()) as served, Client(served.address, tls=trusting(papers)) as old:
        old.ping()
        served.server.reload_certificate(tls.ServerTlsSettings(other.cert, other.key))
        with pytest.raises(TlsError):
            Client(served.address, tls=trusting(papers)).ping()
        with Client(served.address, tls=TlsSettings(papers.foreign_ca.cert)) as new:
            new.ping()
        old.ping()


# ------------------------------------------------------------------------------------------------------- tenants


# -------------------------------------------------------------------------------------------------- the command


def test_command_takes_credentials_from_options_and_variables(papers, tmp_path, monkeypatch, capsys):
    token = tmp_path / "token"
    token.write_text(TOKENS["physics"] + "\n")
    token.chmod(0o600)
    with serving(papers, client_ca=papers.client_ca.cert, required=False) as served:
        at = ("--controller", served.address)
        credentials = ("--ca", str(papers.ca.cert), "--token-file", str(token))
        request = ("request", "--from", "r1h1", "--to", "r2h1,r3h1", "--bytes", "1MB", "--key", "k")
        assert main([*request, *at, *credentials]) == 0
        capsys.readouterr()
        assert main(["status", *at, *credentials]) == 0
        assert "physics/k  active" in capsys.readouterr().out
        assert main(["status", "physics/k", *at, *credentials]) == 0
        assert main(["status", *at, "--ca", str(papers.ca.cert)]) == 2, "not logged in"
        assert "log in" in capsys.readouterr().err
        assert main(["status", *at]) == 1, "without TLS"
        assert "--ca" in capsys.readouterr().err
        assert main(["status", *at, "--ca", str(papers.foreign_ca.cert)]) == 1
        assert "--ca" in capsys.readouterr().err
        for name, value in (("CA", papers.ca.cert), ("CERT", papers.biology.cert), ("CERT_KEY", papers.biology.key)):
            monkeypatch.setenv(f"BLAST_{name}", str(value))
        assert main(["status", *at]) == 0
        assert capsys.readouterr().out.startswith("no live requests")
        token.chmod(0o644)
        assert main(["status", *at, "--token-file", str(token)]) == 2
        assert "chmod" in capsys.readouterr().err
        assert main(["status", *at, "--ca", str(tmp_path / "absent.pem")]) == 2
        assert "absent.pem" in capsys.readouterr().err

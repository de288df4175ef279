"""Authentication of both ends of a connection by certificate, by secret, or not at all, over real sockets."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import pytest

from blast_transport.agent.host_check import credentials_of
from blast_transport.agent.settings import AgentAccessSection, AgentClientSection
from blast_transport.base.errors import AuthenticationError, SettingsError
from blast_transport.credentials.admission import Admission, AgentConnection, ProvenSocket, dialer, hide, prove
from blast_transport.credentials.material import Credentials, SharedSecret, read_secret
from blast_transport.credentials.roles import NEIGHBOR, SENDER
from blast_transport.credentials.tls import TlsFiles
from tests.support.certificates import Authority

SECRET, OTHER = SharedSecret(b"s" * 32), SharedSecret(b"t" * 32)
CLIENTS = (
    AgentClientSection(common_name="sender", organizational_unit="cluster"),
    AgentClientSection(dns_name="h2.example", role=NEIGHBOR),
    AgentClientSection(uri="blast:h3", role=NEIGHBOR),
)


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Authority]:
    folder = tmp_path_factory.mktemp("certificates")
    return Authority(folder / "ours", "our-ca"), Authority(folder / "theirs", "their-ca")


@pytest.fixture(scope="module")
def issue(authorities: tuple[Authority, Authority]):
    """Return a function that creates TLS files for a subject, signed by our CA or by the other one."""

    def make(subject: str, alternatives: str = "", days: int = 2, signer: int = 0) -> TlsFiles:
        pair = authorities[signer].issue(subject, alternatives, days)
        return TlsFiles(pair.cert, pair.key, authorities[0].cert)

    return make


@pytest.fixture(scope="module")
def agent_files(issue) -> TlsFiles:
    return issue("/CN=agent", "DNS:h1.example,IP:127.0.0.1")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


class Ends:
    """Both ends of a TCP connection, each authenticated by its own thread."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.client = socket.create_connection(listening.getsockname())
            self.agent, _ = listening.accept()

    def admit(self, credentials: Credentials, seconds: float = 5.0) -> Future[AgentConnection]:
        return self._pool.submit(Admission(credentials, CLIENTS, seconds).admit, self.agent, "10.0.0.9:1")

    def prove(self, credentials: Credentials, name: str = "h1.example", seconds: float = 5.0) -> Future[socket.socket]:
        return self._pool.submit(prove, self.client, credentials, name, seconds)

    def close(self) -> None:
        self.client.close()
        self.agent.close()


@pytest.fixture
def ends(pool: ThreadPoolExecutor) -> Iterator[Ends]:
    made = Ends(pool)
    yield made
    made.close()


def check_traffic(one: socket.socket, other: socket.socket) -> None:
    """Check that both directions carry bytes, without any left over from the handshake."""
    with one, other:
        assert one.gettimeout() is None and other.gettimeout() is None
        for near, far in ((one, other), (other, one)):
            near.sendall(b"first bytes")
            assert far.recv(100) == b"first bytes"


# ----------------------------------------------------------------------------------------------- by certificate


@pytest.mark.parametrize(
    ("subject", "alternatives", "role"),
    [
        ("/OU=cluster/CN=sender", "", SENDER),
        ("/CN=other", "DNS:h9.example,DNS:h2.example", NEIGHBOR),
        ("/CN=other", "URI:blast:h3", NEIGHBOR),
    ],
)
def test_certificate_determines_role_of_client(ends, issue, agent_files, subject, alternatives, role):
    admitted, proven = ends.admit(agent_files), ends.prove(issue(subject, alternatives), "127.0.0.1")
    connection, sock = admitted.result(), proven.result()
    assert connection.role == role and connection.peer.startswith("10.0.0.9:1 (")
    assert isinstance(sock, ssl.SSLSocket) and sock.version() in ("TLSv1.2", "TLSv1.3")
    assert hide(sock, 1, b"k" * 32) == b"k" * 32, "TLS hides it"
    check_traffic(sock, connection.sock)


@pytest.mark.parametrize("subject", ["/CN=sender", "/OU=cluster/CN=other"])
def test_agent_rejects_certificate_without_entry_and_reports_reason(ends, issue, agent_files, subject):
    admitted, proven = ends.admit(agent_files), ends.prove(issue(subject))
    with pytest.raises(AuthenticationError, match=r"matches no entry of access\.client"):
        admitted.result()
    with pytest.raises(AuthenticationError, match=r"the agent refuses: access\.client of this agent does not permit"):
        proven.result()


@pytest.mark.parametrize("how", [{"signer": 1}, {"days": -1}])
def test_agent_rejects_certificate_of_other_ca_or_expired(ends, issue, agent_files, how):
    admitted, proven = ends.admit(agent_files), ends.prove(issue("/OU=cluster/CN=sender", **how))
    with pytest.raises(AuthenticationError, match="no TLS: "):
        admitted.result()
    with pytest.raises(AuthenticationError):
        proven.result()


@pytest.mark.parametrize(
    ("subject", "how", "reason"),
    [
        ("/CN=agent", {"alternatives": "DNS:h7.example"}, "not that of h1.example: Hostname mismatch"),
        ("/CN=h1.example", {}, "not that of h1.example: Hostname mismatch"),
        ("/CN=agent", {"alternatives": "DNS:h1.example", "signer": 1}, "not that of h1.example"),
        ("/CN=agent", {"alternatives": "DNS:h1.example", "days": -1}, "certificate has expired"),
    ],
)
def test_client_rejects_agent_whose_certificate_does_not_match(ends, issue, subject, how, reason):
    admitted, proven = ends.admit(issue(subject, **how)), ends.prove(issue("/OU=cluster/CN=sender"))
    with pytest.raises(AuthenticationError, match=reason):
        proven.result()
    with pytest.raises(AuthenticationError):
        admitted.result()


def test_agent_rejects_client_without_certificate(ends, agent_files, authorities):
    admitted = ends.admit(agent_files)
    context = ssl.create_default_context(cafile=str(authorities[0].cert))
    with (
        pytest.raises(OSError, match=r"CERTIFICATE_REQUIRED|certificate required|HANDSHAKE_FAILURE"),
        context.wrap_socket(ends.client, server_hostname="h1.example") as tls,
    ):
        tls.recv(100)
    with pytest.raises(AuthenticationError, match="peer did not return a certificate"):
        admitted.result()


def test_agent_rejects_tls_1_1(ends, agent_files, issue, recwarn):
    admitted = ends.admit(agent_files)
    context = issue("/OU=cluster/CN=sender").for_client()
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(OSError, match=r"(?i)version|alert"):
        context.wrap_socket(ends.client, server_hostname="h1.example")
    with pytest.raises(AuthenticationError, match="no TLS: "):
        admitted.result()
    recwarn.clear()


# ---------------------------------------------------------------------------------------------------- by secret


def test_shared_secret_authenticates_and_masks_session_keys(ends):
    admitted, proven = ends.admit(SECRET), ends.prove(SECRET)
    connection, sock = admitted.result(), proven.result()
    assert isinstance(sock, ProvenSocket) and isinstance(connection.sock, ProvenSocket)
    key = bytes(range(32))
    hidden = hide(sock, 5, key)
    assert hidden != key and hide(connection.sock, 5, hidden) == key and hide(sock, 6, b"") == b""
    check_traffic(sock, connection.sock)


def test_admission_does_not_read_beyond_proof(ends):
    """A sender may append its first message directly to its proof."""
    admitted = ends.admit(SECRET)
    from blast_transport.credentials.authentication import ClientHandshake

    handshake = ClientHandshake(SECRET.value, time.monotonic() + 5)
    ends.client.sendall(handshake.opening)
    answer = handshake.receive(ends.client.recv(8), 0.0) or handshake.receive(ends.client.recv(32), 0.0)
    ends.client.sendall(answer + b"first message")
    assert admitted.result().sock.recv(100) == b"first message"
    admitted.result().close()


# ---------------------------------------------------------------------------- unauthenticated peers and deadlines


def test_connection_without_credentials_needs_no_proof(ends):
    admitted, proven = ends.admit(None), ends.prove(None)
    assert admitted.result().role == SENDER
    check_traffic(proven.result(), admitted.result().sock)


@pytest.mark.parametrize("opening", [b"", b"BlastA1\n" + bytes(20)])
@pytest.mark.parametrize("by", ["secret", "certificate"])
def test_agent_drops_silent_client_at_deadline(ends, agent_files, by, opening):
    admitted = ends.admit(SECRET if by == "secret" else agent_files, seconds=0.2)
    if by == "secret":
        ends.client.sendall(opening)
    with pytest.raises(AuthenticationError, match=r"nothing came in time|no TLS: .*timed out"):
        admitted.result()


def test_agent_drops_slow_client_at_same_deadline(ends):
    """Single bytes do not extend the deadline."""
    admitted = ends.admit(SECRET, seconds=0.3)
    stop = threading.Event()

    def drip() -> None:
        for byte in b"BlastA1\n" + bytes(25):
            if stop.wait(0.05):  # the pause of a slow client
                return
            with suppress(OSError):
                ends.client.sendall(bytes([byte]))

    dripping = threading.Thread(target=drip)
    dripping.start()
    with pytest.raises(AuthenticationError, match="in time"):
        admitted.result()
    stop.set()
    dripping.join()


@pytest.mark.parametrize("by", ["secret", "certificate"])
def test_client_gives_up_silent_agent_at_deadline(ends, issue, by):
    with pytest.raises(AuthenticationError, match=r"nothing came in time|no TLS with the agent: .*timed out"):
        ends.prove(SECRET if by == "secret" else issue("/CN=sender"), seconds=0.2).result()


@pytest.mark.parametrize("garbage", [b"", b"GET / HTTP/1.1\r\n\r\n" + bytes(30), b"\x16\x03\x01\x02\x00" * 10])
@pytest.mark.parametrize("by", ["secret", "certificate"])
def test_agent_rejects_clients_of_other_protocols(ends, agent_files, by, garbage):
    admitted = ends.admit(SECRET if by == "secret" else agent_files)
    ends.client.sendall(garbage)
    # The agent may close the connection before such a client has sent everything.
    with suppress(OSError):
        ends.client.shutdown(socket.SHUT_WR)
    with pytest.raises(AuthenticationError):
        admitted.result()


def test_client_receives_reason_of_refusal(ends):
    Admission(SECRET).refuse(ends.agent, "come back later")
    with pytest.raises(AuthenticationError, match="the agent refuses: come back later"):
        ends.prove(SECRET).result()


def test_dialer_connects_to_agent_by_name_and_address(pool):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        dialled = pool.submit(dialer(SECRET), ("h1", "127.0.0.1", port), 5.0)
        connection = Admission(SECRET).admit(listening.accept()[0], "x")
        check_traffic(dialled.result(), connection.sock)
    with pytest.raises(ConnectionRefusedError):
        dialer(SECRET)(("h1", "127.0.0.1", port), 5.0)


# ----------------------------------------------------------------------------------------------------- the files


def test_credentials_come_from_configuration(tmp_path, agent_files):
    assert credentials_of(AgentAccessSection()) is None
    secret = tmp_path / "secret"
    secret.write_text("0123456789" * 4 + "\n")
    secret.chmod(0o600)
    assert credentials_of(AgentAccessSection(secret_file=secret)) == SharedSecret(b"0123456789" * 4)
    assert "0123456789" not in repr(credentials_of(AgentAccessSection(secret_file=secret)))
    agent_files.private_key.chmod(0o600)
    named = AgentAccessSection(agent_files.certificate, agent_files.private_key, agent_files.ca)
    assert credentials_of(named) == agent_files


@pytest.mark.parametrize(
    ("content", "mode", "sentence"),
    [
        ("x" * 40, 0o644, "holds secrets, and every user of this machine may use it: chmod o="),
        ("x" * 40, 0o600, "can be guessed, and needs random characters: head -c 32 /dev/urandom"),
        ("x" * 31, 0o600, "has 31 characters, and needs from 32 to 4096"),
        ("x" * 5000, 0o600, "needs from 32 to 4096"),
        (None, 0o600, "cannot be read: No such file"),
    ],
)
def test_unsafe_or_unreadable_secret_file_is_rejected(tmp_path, content, mode, sentence):
    path = tmp_path / "secret"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    with pytest.raises(SettingsError, match=sentence):
        read_secret(path)


def test_unsafe_or_unusable_certificate_files_are_rejected(tmp_path, agent_files):
    agent_files.private_key.chmod(0o644)
    with pytest.raises(SettingsError, match="holds secrets"):
        credentials_of(AgentAccessSection(agent_files.certificate, agent_files.private_key, agent_files.ca))
    with pytest.raises(SettingsError, match=r"the certificate .* and the key .* cannot be used"):
        Admission(TlsFiles(agent_files.ca, agent_files.private_key, agent_files.ca))
    with pytest.raises(SettingsError, match=r"the CA file .* cannot be used"):
        Admission(TlsFiles(agent_files.certificate, agent_files.private_key, tmp_path / "absent"))

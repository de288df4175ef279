"""Authentication between the source of a chain and the nodes that fetch from it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from blast_transport.agent.settings import AgentClientSection
from blast_transport.base.errors import AuthenticationError
from blast_transport.credentials.admission import Admission
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.credentials.tls import TlsFiles
from blast_transport.links.chain_source import SourceAdmission, node_dialer
from blast_transport.links.dialling import SOURCE
from tests.support.certificates import Authority

CLIENTS = [AgentClientSection(common_name="head"), AgentClientSection(organizational_unit="hosts", role="neighbor")]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., TlsFiles]:
    authorities = [Authority(tmp_path_factory.mktemp("ca"), name) for name in ("ours", "theirs")]

    def make(subject: str, alternatives: str = "", signer: int = 0) -> TlsFiles:
        pair = authorities[signer].issue(subject, alternatives)
        return TlsFiles(pair.cert, pair.key, authorities[0].cert)

    return make


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def meet(
    pool: ThreadPoolExecutor, node: Credentials, source: Credentials, nodes: list[str]
) -> tuple[Future[socket.socket], Future[socket.socket]]:
    """Connect a node to a source, and return the future socket of each, or its error."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> socket.socket:
        with listener:
            sock, _ = listener.accept()
        return SourceAdmission(source, nodes).admit(sock, "x").sock

    dial = node_dialer(node, Admission(node, CLIENTS))
    address = (SOURCE, *listener.getsockname())
    return pool.submit(dial, address, 5.0), pool.submit(accept)


@pytest.mark.parametrize("alternatives", ["DNS:h3", "DNS:elsewhere,DNS:H3", "IP:10.0.0.3", "DNS:*.rack3.example"])
def test_node_connects_to_source_over_tls(
    pool: ThreadPoolExecutor, files: Callable[..., TlsFiles], alternatives: str
) -> None:
    """The source's certificate need not name a host."""
    nodes = ["h2", "h3", "10.0.0.3", "h7.rack3.example"]
    ends = meet(pool, files("/OU=hosts/CN=h3", alternatives), files("/CN=head"), nodes)
    with ends[0].result(30) as node, ends[1].result(30) as source:
        node.sendall(b"to the source")
        assert source.recv(99) == b"to the source"
        assert type(node) is type(source) and "SSL" in type(node).__name__


def test_node_connects_to_source_by_shared_secret(pool: ThreadPoolExecutor) -> None:
    ends = meet(pool, SharedSecret(b"s" * 32), SharedSecret(b"s" * 32), ["h3"])
    with ends[0].result(30) as node, ends[1].result(30) as source:
        assert node.keys.hide(1, b"k" * 32) == source.keys.hide(1, b"k" * 32)  # type: ignore[attr-defined]


@pytest.mark.parametrize("alternatives", ["DNS:h4", "DNS:h3.example", "IP:10.0.0.4", "DNS:*.example", "DNS:*"])
def test_source_rejects_certificate_of_host_outside_chain(
    pool: ThreadPoolExecutor, files: Callable[..., TlsFiles], alternatives: str
) -> None:
    ends = meet(pool, files("/OU=hosts/CN=h3", alternatives), files("/CN=head"), ["h3", "10.0.0.3", "h7.rack.example"])
    with pytest.raises(AuthenticationError, match="none of the hosts meant"):
        ends[1].result(30)
    ends[0].result(30).close()


def test_source_and_node_reject_certificate_of_other_ca(
    pool: ThreadPoolExecutor, files: Callable[..., TlsFiles]
) -> None:
    ends = meet(pool, files("/OU=hosts/CN=h3", "DNS:h3", signer=1), files("/CN=head"), ["h3"])
    with pytest.raises(AuthenticationError, match="certificate is not that of"):
        ends[1].result(30)
    with pytest.raises(AuthenticationError):
        ends[0].result(30)


@pytest.mark.parametrize(
    ("source", "reason"), [("/OU=hosts/CN=h2", "may not send"), ("/OU=guests/CN=x", "matches no entry")]
)
def test_node_rejects_source_whose_certificate_may_not_send(
    pool: ThreadPoolExecutor, files: Callable[..., TlsFiles], source: str, reason: str
) -> None:
    ends = meet(pool, files("/OU=hosts/CN=h3", "DNS:h3"), files(source, "DNS:h2"), ["h3"])
    with pytest.raises(AuthenticationError, match=reason):
        ends[0].result(30)
    try:
        ends[1].result(30).close()
    except AuthenticationError:
        assert reason == "matches no entry"

"""Leaders among agents that authenticate clients by a shared secret, or by certificates with roles."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from blast_transport.agent.reporting import RefusalReason
from blast_transport.agent.settings import NEIGHBOR, SENDER, AgentClientSection
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.credentials.tls import TlsFiles
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from tests.support.certificates import Authority
from tests.support.transport.transport_hosts import LOOPBACK, Agent, agent, light

NAMES = ("h0", "h1", "h2")
SECRET = SharedSecret(b"0123456789abcdef" * 2)


@contextmanager
def agents(
    tmp_path: Path, credentials_of: Callable[[str], Credentials], clients: tuple[AgentClientSection, ...] = ()
) -> Iterator[list[Agent]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(agent(tmp_path / name, credentials=credentials_of(name), clients=clients))
            for name in NAMES
        ]


def sealed_sender(made: list[Agent], credentials: Credentials) -> Sender:
    settings = SenderSettings(
        LOOPBACK, 9000, sealed=True, dialer=dialer(credentials), credentials=credentials, max_direct=1
    )
    return Sender([one.address for one in made], settings)


def check(tmp_path: Path, sender: Sender) -> None:
    """Check that a sealed file arrives by optical transport, twice over the same connections."""
    path = tmp_path / "data"
    path.write_bytes(random.Random(1).randbytes(1 << 20))
    for _ in range(2):
        result = sender.send_file(path, Route(light(200e6)))
        assert [(outcome.complete, outcome.reason) for outcome in result.receivers] == [(True, "")] * 3
        assert result.repaired_bytes < result.bytes
    assert all((tmp_path / name / "data").read_bytes() == path.read_bytes() for name in NAMES)


def test_sealed_session_passes_through_leader_with_shared_secret(tmp_path: Path) -> None:
    with agents(tmp_path, lambda name: SECRET) as made, sealed_sender(made, SECRET) as sender:
        assert sender.connect() == {}
        assert sender.connections == 1
        check(tmp_path, sender)
        assert sender.connections == 1


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str], TlsFiles]:
    """Return a function that issues the credentials of a host by its name, all by one authority."""
    authority = Authority(tmp_path / "ca", "ca")

    def issue(name: str) -> TlsFiles:
        pair = authority.issue(f"/CN={name}", f"DNS:{name}")
        return TlsFiles(pair.cert, pair.key, authority.cert)

    return issue


@pytest.mark.parametrize("role", [SENDER, NEIGHBOR])
def test_host_without_sender_role_is_not_used_as_leader(
    tmp_path: Path, files: Callable[[str], TlsFiles], role: str
) -> None:
    clients = (
        AgentClientSection(common_name="head"),
        *(AgentClientSection(common_name=name, role=role) for name in NAMES),
    )
    head = files("head")
    with agents(tmp_path, files, clients) as made, sealed_sender(made, head) as sender:
        assert sender.connect() == {}
        check(tmp_path, sender)
        refused = sum(one.server.refusals.totals[RefusalReason.ROLE] for one in made)
        assert (refused > 0) == (role == NEIGHBOR)
        assert sender.connections == (1 if role == SENDER else 3)


def test_neighbor_role_cannot_appoint_leader(tmp_path: Path, files: Callable[[str], TlsFiles]) -> None:
    clients = (AgentClientSection(common_name="h1", role=NEIGHBOR),)
    with agents(tmp_path, files, clients) as made, sealed_sender(made, files("h1")) as sender:
        sender.connect()
        assert made[0].server.refusals.totals[RefusalReason.ROLE] == 1

"""Leaders among agents that ask who is there: by a shared secret, and by certificates with roles."""

from __future__ import annotations

import random
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blast_transport.agent.process import make_server
from blast_transport.agent.reporting import Reporter, Why
from blast_transport.agent.server import AgentServer
from blast_transport.agent.settings import (
    NEIGHBOUR,
    SENDER,
    AccessSection,
    AgentSection,
    ClientSection,
    FolderSection,
    Settings,
)
from blast_transport.base.endpoint import Endpoint
from blast_transport.carriers.choices import Light
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.credentials.tls import TlsFiles
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from tests.support.certificates import Authority

LOOPBACK = "127.0.0.1"
NAMES = ("h0", "h1", "h2")
SECRET = SharedSecret(b"0123456789abcdef" * 2)


@contextmanager
def agents(
    tmp_path: Path, credentials_of: Callable[[str], Credentials], clients: tuple[ClientSection, ...] = ()
) -> Iterator[dict[str, AgentServer]]:
    made, threads = {}, []
    for name in NAMES:
        (tmp_path / name).mkdir()
        settings = Settings(
            agent=AgentSection(Endpoint(LOOPBACK, 0), LOOPBACK),
            folder=(FolderSection("files", tmp_path / name),),
            access=AccessSection(client=clients),
        )
        made[name] = make_server(settings, credentials_of(name), Reporter())
        threads.append(threading.Thread(target=made[name].run))
        threads[-1].start()
    try:
        yield made
    finally:
        for server in made.values():
            server.stop("the test is over")
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()


def sealed_sender(made: dict[str, AgentServer], credentials: Credentials) -> Sender:
    settings = SenderSettings(
        LOOPBACK, 9000, sealed=True, dialer=dialer(credentials), credentials=credentials, most_direct=1
    )
    return Sender([(name, *server.endpoint) for name, server in made.items()], settings)


def check(tmp_path: Path, sender: Sender) -> None:
    """What is sealed by light arrives, twice over the same connections."""
    path = tmp_path / "data"
    path.write_bytes(random.Random(1).randbytes(1 << 20))
    for _ in range(2):
        group = f"239.79.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
        result = sender.send_file(path, Route(Light(group, 20000 + secrets.randbelow(10000), 200e6)))
        assert [(outcome.complete, outcome.reason) for outcome in result.receivers] == [(True, "")] * 3
        assert result.repaired_bytes < result.bytes
    assert all((tmp_path / name / "data").read_bytes() == path.read_bytes() for name in NAMES)


def test_a_key_is_hidden_anew_on_each_connection_that_a_secret_has_proved(tmp_path: Path) -> None:
    with agents(tmp_path, lambda name: SECRET) as made, sealed_sender(made, SECRET) as sender:
        assert sender.connect() == {}
        assert sender.connections == 1
        check(tmp_path, sender)
        assert sender.connections == 1


@pytest.mark.parametrize("role", [SENDER, NEIGHBOUR])
def test_who_may_not_start_sessions_leads_nobody_and_the_sender_does_it_alone(tmp_path: Path, role: str) -> None:
    authority = Authority(tmp_path / "ca", "ca")

    def files(name: str) -> TlsFiles:
        pair = authority.issue(f"/CN={name}", f"DNS:{name}")
        return TlsFiles(pair.cert, pair.key, authority.cert)

    clients = (ClientSection(common_name="head"), *(ClientSection(common_name=name, role=role) for name in NAMES))
    head = files("head")
    with agents(tmp_path, files, clients) as made, sealed_sender(made, head) as sender:
        assert sender.connect() == {}
        check(tmp_path, sender)
        refused = sum(server.refusals.totals[Why.ROLE] for server in made.values())
        assert (refused > 0) == (role == NEIGHBOUR)
        assert sender.connections == (1 if role == SENDER else 3)


def test_a_neighbour_makes_nobody_a_leader(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca", "ca")

    def files(name: str) -> TlsFiles:
        pair = authority.issue(f"/CN={name}", f"DNS:{name}")
        return TlsFiles(pair.cert, pair.key, authority.cert)

    clients = (ClientSection(common_name="h1", role=NEIGHBOUR),)
    with agents(tmp_path, files, clients) as made, sealed_sender(made, files("h1")) as sender:
        sender.connect()
        assert made["h0"].refusals.totals[Why.ROLE] == 1

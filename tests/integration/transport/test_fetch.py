"""A node of a chain dies, and data that no other node holds is fetched from the sender, with any credentials."""

from __future__ import annotations

import random
import secrets
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from blast_transport.agent.settings import AgentClientSection
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.credentials.roles import SENDER
from blast_transport.credentials.tls import TlsFiles
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.transports.choices import Chain
from blast_transport.transports.pipeline import node
from blast_transport.transports.pipeline.connections import copy_pump
from blast_transport.transports.pipeline.source import PipelineSource
from blast_transport.wire.messages import COMMAND
from tests.support.certificates import Authority
from tests.support.transport.measured_hosts import host_process
from tests.support.transport.transport_hosts import agent, sending
from tests.support.waiting import eventually

SIZE = 14 << 20
"""Less than the buffers of an unrestricted node, and much more than those of a restricted one."""
LAG_BYTES = 1 << 19
TO_COMMAND = Destination("collect", COMMAND)
TO_NOTHING = '[[command]]\nname = "collect"\nrun = ["/bin/dd", "of=/dev/null", "status=none"]\n'
GATE = "open"

CredentialsOf = Callable[[str], tuple[Credentials, str]]
"""Returns the credentials of a host and the matching lines of its configuration."""


@pytest.fixture(params=["certificates", "secret"])
def credentials_of(request: pytest.FixtureRequest, tmp_path: Path) -> CredentialsOf:
    if request.param == "secret":
        secret = tmp_path / "secret"
        secret.write_text(secrets.token_hex(32))
        secret.chmod(0o600)
        return lambda _: (SharedSecret(secret.read_bytes()), f'secret_file = "{secret}"\n')
    authority = Authority(tmp_path / "ca", "ca")

    def by_certificate(name: str) -> tuple[Credentials, str]:
        # The sender's certificate names no host, because no node connects to it as to an agent.
        unit, names = ("heads", "") if name == "head" else ("hosts", f"DNS:{name}")
        pair = authority.issue(f"/OU={unit}/CN={name}", names)
        pair.key.chmod(0o600)
        return TlsFiles(pair.cert, pair.key, authority.cert), (
            f'certificate = "{pair.cert}"\nprivate_key = "{pair.key}"\nclient_ca = "{authority.cert}"\n'
            'client = [{organizational_unit = "heads"}, {organizational_unit = "hosts", role = "neighbor"}]\n'
        )

    return by_certificate


CLIENTS = [
    AgentClientSection(organizational_unit="heads", role=SENDER),
    AgentClientSection(organizational_unit="hosts", role="neighbor"),
]


def collect(gate: str = ".") -> dict[str, tuple[str, ...]]:
    """Return a command that reads nothing before the file `gate` exists."""
    script = f"until [ -e {gate} ]; do sleep 0.01; done; exec dd of=collected status=none bs=64k"
    return {"collect": ("/bin/sh", "-c", script)}


def narrowed(sock: socket.socket) -> socket.socket:
    """Limit the receive buffer of a socket, so that it accepts little before it is read."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    return sock


def test_node_fetches_data_forgotten_by_neighbors_from_sender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, credentials_of: CredentialsOf
) -> None:
    """h3 has taken little when h2 dies, which was far ahead of it; h1 remembers even less than h2 did."""
    file = tmp_path / "content.bin"
    file.write_bytes(random.Random(80).randbytes(SIZE))
    monkeypatch.setattr(copy_pump, "Replay", partial(copy_pump.Replay, capacity=4 * LAG_BYTES))
    for name in ("_MAX_WAITING", "_MAX_EARLY"):
        monkeypatch.setattr(copy_pump, name, LAG_BYTES)
    monkeypatch.setattr(node, "_LAG_BYTES", LAG_BYTES)
    # The kernel of a dead node still sends its buffers, which may be all that the next one lacks.
    join = node.PipelineNode.accept
    monkeypatch.setattr(node.PipelineNode, "accept", lambda self, sock, name: join(self, narrowed(sock), name))
    fetching: list[str] = []
    accept = PipelineSource.accept
    monkeypatch.setattr(
        PipelineSource, "accept", lambda self, sock, name: (fetching.append(name), accept(self, sock, name))[1]
    )
    ours, _ = credentials_of("head")
    with (
        agent(tmp_path / "h1", credentials=credentials_of("h1")[0], clients=CLIENTS, commands=collect()) as first,
        host_process(tmp_path, "h2", f"[access]\n{credentials_of('h2')[1]}{TO_NOTHING}") as middle,
        agent(tmp_path / "h3", credentials=credentials_of("h3")[0], clients=CLIENTS, commands=collect(GATE)) as last,
    ):
        settings = SenderSettings(dialer=dialer(ours), credentials=ours)
        with Sender([first.address, middle.address, last.address], settings) as sender:
            with sending(sender, file, Route(Chain()), TO_COMMAND) as results:
                eventually((first.directory / "collected").exists)
                eventually(lambda: (first.directory / "collected").stat().st_size > SIZE // 2)
                middle.process.kill()
                (last.directory / GATE).touch()
            (result,) = results
        outcomes = {outcome.name: outcome for outcome in result.receivers}
        assert fetching == ["h3"]
        assert [outcomes[name].complete for name in ("h1", "h2", "h3")] == [True, False, True], outcomes
        # On a slow machine, h2 may have demoted it before it died.
        assert result.transports == ("pipeline",) and outcomes["h3"].repaired_bytes == 0
        assert outcomes["h3"].repaired_bytes == 0, "the chain has brought it all"
        for one in (first, last):
            assert (one.directory / "collected").read_bytes() == file.read_bytes()

"""`blast agent run` as a process of its own: files, signals, the service manager, chains by secret and certificate."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from blast_transport.base.errors import AuthenticationError
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from blast_transport.transports.choices import Unicast
from blast_transport.wire.codec import ControlDecoder, encode
from blast_transport.wire.messages import Abort, Fin, Hello, Ready
from tests.support.transport.transport_hosts import Process

BLAST = str(Path(sys.executable).with_name("blast"))
SECRET = SharedSecret(b"0123456789abcdef" * 2)


class Agent(Process):
    """A running agent and its output."""

    def event(self, kind: str) -> dict[str, object]:
        """Return the next event of this kind."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            event: dict[str, object] = json.loads(line)
            if event["event"] == kind:
                return event
        raise AssertionError(f"no {kind}: the agent has ended ({self.process.wait(30)})")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    """Yield a function that starts an agent with a folder of its own; end all agents with the test."""
    agents: list[Agent] = []

    def make(name: str, text: str = "", program: tuple[str, ...] = (BLAST, "agent"), **environment: str) -> Agent:
        folder = tmp_path / name
        folder.mkdir()
        config = tmp_path / f"{name}.toml"
        config.write_text(f'[[folder]]\nname = "in"\npath = "{folder}"\n[agent]\nlisten = "127.0.0.1:0"\n{text}')
        command = [*program, "run", "--config", str(config), "--json"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        agents.append(Agent(name, folder, process))
        agents[-1].port = int(str(agents[-1].event("ready")["port"]))
        return agents[-1]

    yield make
    for agent in agents:
        agent.process.kill()
        agent.process.wait()
        for pipe in (agent.process.stdout, agent.process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def by_secret(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_bytes(SECRET.value)
    path.chmod(0o600)
    return f'[access]\nsecret_file = "{path}"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.bin"
    path.write_bytes(os.urandom(2_000_000))
    return path


def sender_to(*agents: Agent, credentials: Credentials = SECRET, sealed: bool = False) -> Sender:
    settings = SenderSettings(dialer=dialer(credentials), credentials=credentials, sealed=sealed)
    return Sender([agent.address for agent in agents], settings)


def test_agent_stores_file_and_reports_it(start, by_secret, file):
    agent = start("h1", by_secret)
    with sender_to(agent) as sender:
        assert sender.send_file(file, Route(Unicast())).complete == 1
    assert (agent.directory / "file.bin").read_bytes() == file.read_bytes()
    received = agent.event("received")
    assert received["bytes"] == 2_000_000 and received["file"] == str(agent.directory / "file.bin")
    assert [path.name for path in agent.directory.iterdir()] == ["file.bin"]
    assert agent.end() == 0
    assert agent.event("ended")["reason"] == "the agent is ending (SIGTERM)"


def test_agent_rejects_and_counts_unauthenticated_clients(start, by_secret, file):
    agent = start("h1", by_secret)
    with pytest.raises(AuthenticationError):
        dialer(SharedSecret(b"x" * 32))(agent.address, 5.0)
    assert agent.event("refused")["category"] == "authentication"
    with sender_to(agent, credentials=SharedSecret(b"x" * 32)) as sender:
        (outcome,) = sender.send_file(file, Route(Unicast())).receivers
    assert not outcome.complete and "the secret is not this agent's" in outcome.reason
    assert agent.end() == 0
    ended = agent.event("ended")
    assert ended["refused"]["authentication"] >= 2
    assert not list(agent.directory.iterdir())


def test_stopping_agent_sends_fin_to_sender(start, by_secret):
    agent = start("h1", by_secret)
    decoder = ControlDecoder()
    hello = Hello(session=7, size=9, segment_size=1456, block_segments=44, suite="sha256", kind="file", name="half")
    with dialer(SECRET)(agent.address, 5.0) as sock:
        sock.settimeout(30)
        sock.sendall(encode(hello))
        (ready,) = decoder.feed(sock.recv(65536))
        assert isinstance(ready, Ready)
        assert agent.end() == 0
        messages = []
        while data := sock.recv(65536):
            messages += decoder.feed(data)
    assert [message.reason for message in messages if isinstance(message, Fin)] == ["the agent is ending (SIGTERM)"]
    assert not (agent.directory / "half").exists(), "nothing that looks whole"


def test_reload_applies_changed_config_and_keeps_sessions(start, by_secret, file, tmp_path):
    agent = start("h1", by_secret)
    config, other = tmp_path / "h1.toml", tmp_path / "other"
    hello = Hello(session=7, size=9, segment_size=1456, block_segments=44, suite="sha256", kind="file", name="half")
    with dialer(SECRET)(agent.address, 5.0) as going_on:
        going_on.settimeout(30)
        going_on.sendall(encode(hello))
        assert going_on.recv(65536)
        config.write_text("[agnt]")
        agent.process.send_signal(signal.SIGHUP)
        refused = agent.event("reload")
        assert refused["result"] == "refused" and "did you mean agent?" in str(refused["reason"])
        (tmp_path / "secret").write_bytes(b"another secret, of 32 characters")
        other.mkdir()
        moved = f'[[folder]]\nname = "in"\npath = "{other}"\n[agent]\nlisten = "127.0.0.1:1"\n{by_secret}'
        config.write_text(moved)
        agent.process.send_signal(signal.SIGHUP)
        assert agent.event("reload")["waiting"] == ["agent.listen"]
        with pytest.raises(AuthenticationError):
            dialer(SECRET)(agent.address, 5.0)
        with sender_to(agent, credentials=SharedSecret(b"another secret, of 32 characters")) as sender:
            assert sender.send_file(file, Route(Unicast())).complete == 1
        assert (other / "file.bin").read_bytes() == file.read_bytes()
        going_on.sendall(encode(Abort(7, "enough")))
        assert going_on.recv(65536), "it was still there"


def test_agent_notifies_service_manager_of_its_state(start, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        agent = start("h1", NOTIFY_SOCKET=str(tmp_path / "notify"))
        notifications = [manager.recv(4096).decode().split("\n") for _ in range(3)]
        assert notifications[0] == ["READY=1", "STATUS=0 sessions, 0 connections, 0 refused"]
        assert [words[0] for words in notifications[1:]] == ["WATCHDOG=1", "WATCHDOG=1"]
        agent.process.send_signal(signal.SIGHUP)
        while not (last := manager.recv(4096)).startswith(b"RELOADING=1\nMONOTONIC_USEC="):
            assert last.startswith(b"WATCHDOG=1")
        assert manager.recv(4096) == b"READY=1"
        agent.end()
        while (last := manager.recv(4096)) != b"STOPPING=1":
            assert last.startswith(b"WATCHDOG=1")


def test_agent_exits_with_status_1_if_address_is_in_use(start, tmp_path):
    agent = start("h1")
    taken = tmp_path / "taken.toml"
    taken.write_text((tmp_path / "h1.toml").read_text().replace(":0", f":{agent.port}"))
    done = subprocess.run(
        [BLAST, "agent", "run", "--config", str(taken)], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 1 and f"cannot listen on 127.0.0.1:{agent.port}: Address already in use" in done.stderr

"""The controller as a process with [access]: who gets in, and what a reload takes away."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from blast_client import Client, ControllerUnreachable, Denied, MulticastRequest, TlsSettings
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import new_token, token_line
from tests.integration.openflow_harness import FakeSwitch
from tests.support.certificates import Authority
from tests.support.waiting import eventually

BLAST = str(Path(sys.executable).with_name("blast"))
PATIENCE = 30.0
FABRIC = dedent("""
    [controller]
    thrift = "127.0.0.1:0"
    openflow = "127.0.0.1:0"
    [journal]
    in_memory = true
    [[rack]]
    name = "r1"
    datapath = "0000000000000001"
    hosts = [{ name = "h1", port = 1, ip = "10.0.0.1" }, { name = "h2", port = 2, ip = "10.0.0.2" }]
    [[tenant]]
    name = "physics"
    max_pending = 1
    """)


class Controller:
    """A controller's process, its files and its clients."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "ca", "ca")
        self.tokens = folder / "tokens"
        self.user, self.operator = new_token(), new_token()
        self.allow((self.user, Identity("physics", Role.USER)), (self.operator, Identity("default", Role.OPERATOR)))
        pair = self.authority.issue("/CN=controller", "IP:127.0.0.1")
        self.config = folder / "blast.toml"
        self.log = folder / "log"
        tls = f'certificate = "{pair.cert}"\nprivate_key = "{pair.key}"\n'
        self.config.write_text(f'{FABRIC}\n[access]\n{tls}token_file = "{self.tokens}"\n')
        self.process: subprocess.Popen[str] | None = None
        self.address = self.openflow = ""

    def allow(self, *pairs: tuple[str, Identity]) -> None:
        self.tokens.write_text("".join(token_line(*pair) + "\n" for pair in pairs))
        self.tokens.chmod(0o600)

    def start(self) -> None:
        command = [BLAST, "controller", "run", "--config", str(self.config)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said, self.log.read_text()
        self.address, self.openflow = json.loads(said)["thrift"], json.loads(said)["openflow"]

    def client(self, token: str | None) -> Client:
        return Client(self.address, tls=TlsSettings(self.authority.cert), token=token)

    def reload(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.communicate()


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    controller = Controller(tmp_path)
    try:
        yield controller
    finally:
        controller.stop()


def test_a_protected_controller(controller: Controller) -> None:
    controller.start()
    with pytest.raises(ControllerUnreachable):
        Client(controller.address).ping()
    with controller.client(None) as stranger:
        assert {"login", "tls", "tenants"} <= set(stranger.version().features)
        with pytest.raises(Denied, match="log in"):
            stranger.fabric()
        with pytest.raises(Denied):
            stranger.login(new_token())
    with controller.client(controller.user) as user, controller.client(controller.operator) as operator:
        assert user.submit(MulticastRequest("k", "h1", ["h2"], 10**6)).tenant == "physics"
        assert operator.status("physics/k").tenant == "physics"
        with pytest.raises(Denied, match="operator"):
            user.drain(True)
        with pytest.raises(Denied, match="operator"):
            user.journal()
    controller.stop()
    log = controller.log.read_text()
    assert "failed login" in log and "TLS handshake failed" in log
    assert controller.user not in log and controller.operator not in log


def test_a_reload_takes_a_token_away_from_open_connections_too(controller: Controller) -> None:
    controller.start()
    with controller.client(controller.user) as user, controller.client(controller.operator) as operator:
        user.fabric()
        controller.allow((controller.operator, Identity("default", Role.OPERATOR)))
        controller.reload()
        with pytest.raises(Denied, match="not said who it is"):
            eventually(lambda: user.fabric() is None, "the new rights")
        operator.fabric()


def test_switches_connect_by_tls_and_a_reload_shows_them_a_new_certificate(controller: Controller) -> None:
    first, second = (controller.authority.issue("/CN=controller", "IP:127.0.0.1") for _ in range(2))
    tor = controller.authority.issue("/CN=tor", "DNS:0000000000000001")
    text = controller.config.read_text()
    tls = f'[openflow]\nprivate_key = "{first.key}"\nswitch_ca = "{controller.authority.cert}"\n'
    controller.config.write_text(f'{text}\n{tls}certificate = "{first.cert}"\n')
    controller.start()
    port = int(controller.openflow.rpartition(":")[2])
    context = ssl.create_default_context(cafile=str(controller.authority.cert))
    context.load_cert_chain(tor.cert, tor.key)
    with FakeSwitch(port, 1, tls=context) as switch:
        switch.prepare()
        with controller.client(controller.operator) as operator:
            assert eventually(lambda: operator.fabric().racks[0].connected)
        assert _shown(switch) == first.cert.read_text()
    first.cert.write_text(second.cert.read_text())
    first.key.write_text(second.key.read_text())
    controller.reload()
    assert eventually(lambda: _certificate_at(port, context) == second.cert.read_text())


def test_a_tor_s_certificate_is_no_other_tor_s(controller: Controller) -> None:
    """Whoever took the key of one switch could otherwise say that it is any switch."""
    pair = controller.authority.issue("/CN=controller", "IP:127.0.0.1")
    tls = f'[openflow]\nprivate_key = "{pair.key}"\nswitch_ca = "{controller.authority.cert}"\n'
    controller.config.write_text(f'{controller.config.read_text()}\n{tls}certificate = "{pair.cert}"\n')
    controller.start()
    port = int(controller.openflow.rpartition(":")[2])
    context = ssl.create_default_context(cafile=str(controller.authority.cert))
    other = controller.authority.issue("/CN=0000000000000002")
    context.load_cert_chain(other.cert, other.key)
    with FakeSwitch(port, 1, tls=context) as switch, pytest.raises((EOFError, ConnectionError, ssl.SSLError)):
        switch.until_barrier()
    with controller.client(controller.operator) as operator:
        assert not operator.fabric().racks[0].connected
    assert eventually(lambda: "shows no certificate of 0000000000000001" in controller.log.read_text())


def _certificate_at(port: int, context: ssl.SSLContext) -> str:
    with FakeSwitch(port, 1, tls=context) as switch:
        return _shown(switch)


def _shown(switch: FakeSwitch) -> str:
    assert isinstance(switch.stream, ssl.SSLSocket)
    return ssl.DER_cert_to_PEM_cert(switch.stream.getpeercert(binary_form=True) or b"")


def test_a_controller_whose_secrets_everybody_may_read_does_not_start(controller: Controller) -> None:
    controller.tokens.chmod(0o644)
    command = [BLAST, "controller", "run", "--config", str(controller.config)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 2
    assert "chmod o=" in ended.stderr and ended.stdout == "" and len(ended.stderr.splitlines()) == 1

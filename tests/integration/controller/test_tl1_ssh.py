"""TL1 by SSH, against a real sshd: logins, host keys, floods and sessions that end; and a controller that uses it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import asyncssh
import pytest

from blast_client import Client
from blast_controller.core.model.commands import CircuitChange
from blast_controller.core.model.events import DeviceConnected, DeviceDisconnected, StepConfirmed, StepFailed
from optical_switch.model import Circuit
from tests.support.controller import ssh_server, tl1
from tests.support.controller.executor_contract import SwitchThread, bench, circuits
from tests.support.controller.ssh_server import Sshd, free_port, run
from tests.support.controller.tl1 import Lab, scripted
from tests.support.needs import ROOT
from tests.support.waiting import eventually, eventually_async
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS, Dialect
from tl1_driver.protocol.errors import HostKeyRefusedError, LoginRefusedError, SessionLostError, SwitchUnreachableError
from tl1_driver.ssh import Ssh, host_keys, known_host_keys, private_key

USER, PASSWORD = "tl1", "open sesame;"
SETTLED = 60.0
"""Seconds for an SSH session to be opened; no test is about it."""
_PROGRAM = ROOT / "tests" / "support" / "controller" / "ssh_switch_program.py"
_OWN_USERS = 'mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/shadow" /etc/shadow && exec "$@"'


def lacks() -> str | None:
    """Return why such an sshd cannot run on this machine, or None."""
    if (reason := ssh_server.lacks()) is not None:
        return reason
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return "needs mount namespaces" if tried.returncode else None


pytestmark = pytest.mark.skipif(lacks() is not None, reason=lacks() or "")


class SshSwitch(Sshd):
    """A real sshd on loopback with a user and keys of its own; its folder has also the file `password`.

    The user `tl1` exists for this sshd only: it sees files of its own in place of /etc/passwd and /etc/shadow.
    """

    def __init__(self, folder: Path) -> None:
        (folder / "password").write_text(f"{PASSWORD}\n")
        (folder / "password").chmod(0o600)
        hashed = run("openssl", "passwd", "-6", "-salt", "salt", PASSWORD).strip()
        (folder / "passwd").write_text(
            f"root:x:0:0::/root:/bin/sh\nsshd:x:101:65534::/run/sshd:/bin/false\n{USER}:x:0:0::{folder}:/bin/sh\n"
        )
        (folder / "shadow").write_text(f"root:*:20000::::::\nsshd:*:20000::::::\n{USER}:{hashed}:20000::::::\n")
        super().__init__(
            folder,
            ["127.0.0.1"],
            "PermitRootLogin yes",
            f"AllowUsers {USER}",
            "PasswordAuthentication yes",
            "Subsystem tl1 bridge",
            f"ForceCommand {sys.executable} -I -S {_PROGRAM} {folder}",
        )
        self._process: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[SshSwitch]:
        """Serve; end everything that it has started."""
        self.resume()
        try:
            yield self
        finally:
            self.stop()

    def resume(self) -> None:
        """Serve, for the first time or again."""
        self._process = self.start("unshare", "--mount", "sh", "-c", _OWN_USERS, str(self.folder))

    def stop(self) -> None:
        """Stop the server and its sessions; it refuses new ones from then on."""
        if (process := self._process) is not None:
            process.terminate()
            process.wait(30)
            self._process = None
        self.kill_sessions()

    def kill_sessions(self) -> None:
        """End every session in the middle of a word, as when a switch crashes."""
        for pid in self.sessions() + self.programs():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def sessions(self) -> list[int]:
        """Return the ids of the processes of this sshd that serve connections."""
        if self._process is None:
            return []
        pid = self._process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def programs(self) -> list[int]:
        """Return the ids of the programs that run for users who have logged in."""
        needle, found = f"{_PROGRAM}\0{self.folder}\0".encode(), []
        for command in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                found += [int(command.parent.name)] if needle in command.read_bytes() else []
        return found

    def at_rest(self) -> bool:
        """Return whether no session and no program runs."""
        return not self.programs() and not self.sessions()


@contextlib.asynccontextmanager
async def emulated(server: SshSwitch, way: object, spoken: Dialect, **options) -> AsyncIterator[Lab]:
    """Run `tl1.emulated` with clients that connect by SSH; `way` opens the bridge to the emulated switch."""
    async with tl1.emulated(spoken, **options) as lab, contextlib.AsyncExitStack() as stack:

        class Arriving(SwitchClient):
            async def open(self) -> None:
                """Wait until the emulated switch has the session, which sshd accepts earlier."""
                before = set(lab.switch._connections)
                await super().open()
                await eventually_async(lambda: lab.switch._connections - before, "the session to reach the switch")

        bridge_here = replace(way, command=f"bridge {lab.port}", seconds=SETTLED)

        def client(dialect: Dialect = spoken, **settings) -> SwitchClient:
            settings = {"timeout": 2.0, "way": bridge_here, **settings}
            made = Arriving("127.0.0.1", server.port, dialect, **settings)
            stack.push_async_callback(made.close)
            return made

        yield replace(lab, client=client)


GLIMMERGLASS = DIALECTS["glimmerglass"]
IGNORE = b"\0\0\0\x0c" + b"\6" + b"\2" + b"\0\0\0\0" + b"\0" * 6
"""Length, length of the padding, "to be ignored", what is to be ignored, padding."""
CREDENTIALS = {"user": "admin", "password": "pass;word"}


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[SshSwitch]:
    with SshSwitch(tmp_path_factory.mktemp("sshd")).running() as server:
        yield server
        eventually(server.at_rest, "the sessions to end")


@pytest.fixture
def by_key(server: SshSwitch) -> Ssh:
    folder = server.folder
    trusted = host_keys((folder / "host_key.pub").read_text())
    return Ssh(USER, trusted, key=private_key((folder / "user_key").read_text()), seconds=SETTLED)


@pytest.fixture
def by_password(server: SshSwitch) -> Ssh:
    trusted = known_host_keys((server.folder / "known_hosts").read_text(), "127.0.0.1", server.port)
    return Ssh(USER, trusted, password=PASSWORD, seconds=SETTLED)


def client_of(server: SshSwitch, way: Ssh, **settings) -> SwitchClient:
    return SwitchClient("127.0.0.1", server.port, GLIMMERGLASS, way=way, **settings)


@contextlib.asynccontextmanager
async def listening(behave) -> AsyncIterator[int]:
    """Run `scripted` for one connection, and wait until it is closed."""
    over = asyncio.Event()

    async def serve(reader, writer) -> None:
        with contextlib.suppress(ConnectionError):
            await behave(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        over.set()

    async with scripted(serve) as port:
        yield port
        await over.wait()


# --------------------------------------------------------------------------------------------------------------- logins


@pytest.mark.parametrize("started", [{}, {"subsystem": "tl1"}, {"command": "bridge"}, {"terminal": True}], ids=str)
async def test_password_login_works_on_every_kind_of_channel(server, by_password, started) -> None:
    recorded: list[bytes] = []
    async with emulated(server, by_password, GLIMMERGLASS, **CREDENTIALS) as lab:
        (server.folder / "port").write_text(str(lab.port))
        client = client_of(
            server,
            replace(by_password, **started),
            timeout=SETTLED,
            transcript=lambda _, data: recorded.append(data),
            **CREDENTIALS,
        )
        await client.open()
        await client.connect([Circuit(1, 2), Circuit(3, 4)])
        await client.disconnect([Circuit(1, 2)])
        assert {state.circuit for state in await client.circuits()} == lab.paths.lit == {Circuit(3, 4)}
        await client.close()
    messages = b"".join(recorded)
    assert b"CANC-USER" in messages
    assert b"pass;word" not in messages and PASSWORD.encode() not in messages
    await eventually_async(server.at_rest, "the sessions to end")


async def test_logout_reaches_the_switch_before_the_channel_is_closed(server, by_key) -> None:
    async with emulated(server, by_key, GLIMMERGLASS, **CREDENTIALS) as lab:
        client = await lab.opened(**CREDENTIALS)
        [connection] = lab.switch._connections
        assert connection.logged_in
        await client.close()
        assert await client.wait_closed() == "closed by us"
        await eventually_async(lambda: not lab.switch._connections, "the switch to notice")
        assert not connection.logged_in


# ------------------------------------------------------------------------------------------------------ rejected logins


@pytest.mark.parametrize("key", ["another", "revoked"])
async def test_switch_with_an_untrusted_host_key_gets_no_credentials(server, by_password, key) -> None:
    before = (server.folder / "sshd.log").read_text()
    keys = host_keys((server.folder / "host_key.pub").read_text())[0]
    another = host_keys((server.folder / "other_host_key.pub").read_text())
    way = replace(by_password, trusted=another if key == "another" else (keys, [], keys))
    message = r"another SSH host key \(SHA256:.*ssh\.host_key or ssh\.known_hosts" if key == "another" else None
    with pytest.raises(HostKeyRefusedError, match=message):
        await client_of(server, way).open()
    logged = (server.folder / "sshd.log").read_text().removeprefix(before)
    assert "Accepted" not in logged and "Failed" not in logged, "lines of sessions before may still be on their way"
    await eventually_async(server.at_rest, "the sessions to end")


async def test_open_fails_if_switch_lacks_trusted_host_key_type(server, by_password, tmp_path) -> None:
    ssh_server.run("ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(tmp_path / "key"))
    way = replace(by_password, trusted=host_keys((tmp_path / "key.pub").read_text()))
    with pytest.raises(SwitchUnreachableError, match=r"aborts SSH .* a host key of the trusted type"):
        await client_of(server, way).open()


@pytest.mark.parametrize(
    "change", [{"password": "wrong word"}, {"user": "unknown"}, {"password": "", "key": "foreign"}]
)
async def test_rejected_login_raises_error_without_password(server, by_password, change, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    if change.get("key"):
        change = {**change, "key": private_key((server.folder / "unauthorized_key").read_text())}
    with pytest.raises(LoginRefusedError, match=r"does not let '.*' in by SSH: correct ssh\.user") as caught:
        await client_of(server, replace(by_password, **change)).open()
    await eventually_async(server.at_rest, "the sessions to end")
    assert "wrong word" not in f"{caught.value}{caplog.text}"


async def test_client_ignores_ssh_files_of_local_user(server, by_password, tmp_path, monkeypatch) -> None:
    folder = tmp_path / ".ssh"
    folder.mkdir()
    (folder / "config").write_text("Host *\n  ProxyCommand false\n  Port 1\n  UserKnownHostsFile /dev/null\n")
    (folder / "known_hosts").write_text(f"* {(server.folder / 'other_host_key.pub').read_text()}")
    for name in ("id_ed25519", "id_ed25519.pub"):
        (folder / name).write_text((server.folder / name.replace("id_ed25519", "user_key")).read_text())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    client = client_of(server, replace(by_password, command="deaf"))
    await client.open()
    await client.close()
    with pytest.raises(LoginRefusedError):
        await client_of(server, replace(by_password, password="wrong word")).open()
    await eventually_async(server.at_rest, "the sessions to end")


async def test_open_fails_if_switch_starts_no_tl1_program(server, by_key) -> None:
    with pytest.raises(SwitchUnreachableError, match=r"does not start the subsystem 'nope' .* correct ssh\.subsystem"):
        await client_of(server, replace(by_key, subsystem="nope")).open()
    with pytest.raises(SwitchUnreachableError, match="ended with status 7 after 18 bytes of error output"):
        await client_of(server, replace(by_key, command="leave 7"), **CREDENTIALS).open()
    await eventually_async(server.at_rest, "the sessions to end")


@pytest.mark.parametrize(
    ("greeting", "refused"),
    [
        (None, r"127\.0\.0\.1:\d+ is not reachable: "),
        (b"\r\n<" * 10, r"within 0\.2 s: check that it is an SSH server"),
        (b"", "opens no SSH session"),
        (b"SSH-2.0-Box\r\n", "aborts SSH"),
    ],
    ids=["no listener", "no SSH", "closed at once", "closed after its version"],
)
async def test_open_fails_if_peer_is_no_ssh_server(by_key, greeting, refused) -> None:
    async def greet(reader, writer) -> None:
        writer.write(greeting)
        while b"<" in greeting and await reader.read(100):
            pass

    async with contextlib.AsyncExitStack() as stack:
        port = ssh_server.free_port() if greeting is None else await stack.enter_async_context(listening(greet))
        seconds = 0.2 if greeting and b"<" in greeting else SETTLED
        with pytest.raises(SwitchUnreachableError, match=refused):
            await SwitchClient("127.0.0.1", port, GLIMMERGLASS, way=replace(by_key, seconds=seconds)).open()


# --------------------------------------------------------------------------------------------------------------- floods


@pytest.mark.parametrize("channel", ["flood", "errors"])
async def test_flood_of_nonsense_ends_session(server, by_key, channel) -> None:
    client = client_of(server, replace(by_key, command=channel), timeout=SETTLED)
    await client.open()
    assert await client.wait_closed() == "the switch sends far more than it is asked for"
    assert client.flooded
    await client.close()
    await eventually_async(server.at_rest, "the sessions to end")


@pytest.mark.parametrize(
    ("first", "data", "refused"),
    [
        (b"", b"a line before the version of SSH\r\n", "opens no SSH session .* check that it is an SSH server"),
        (b"", b"\0" * 4096, "opens no SSH session .* check that it is an SSH server"),
        (b"SSH-2.0-Device\r\n", IGNORE, "sends far more than it is asked for"),
    ],
    ids=["banner", "zeros", "messages to be ignored"],
)
async def test_flood_before_authentication_ends_connection(by_key, first, data, refused) -> None:
    sent = 0

    async def flood(_reader, writer) -> None:
        nonlocal sent
        writer.write(first)
        while True:
            writer.write(data * (65536 // len(data)))
            await writer.drain()
            sent += 65536

    async with listening(flood) as port:
        with pytest.raises(SwitchUnreachableError, match=refused):
            await SwitchClient("127.0.0.1", port, GLIMMERGLASS, way=by_key).open()
    assert sent < 32 << 20


@pytest.mark.parametrize("kind", ["debugging", "single bytes"])
async def test_flood_of_packets_after_login_ends_session(server, by_key, kind) -> None:
    """By a server of asyncssh's own, for sshd does nothing of the kind."""
    over = asyncio.Event()

    class Lenient(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return False

        def connection_lost(self, exc: Exception | None) -> None:
            over.set()

    async def talk(process: asyncssh.SSHServerProcess[bytes]) -> None:
        while not over.is_set():
            for _ in range(500):
                if kind == "debugging":
                    process.channel.get_connection().send_debug("x")
                else:
                    process.stdout.write(b"x")
            await asyncio.sleep(0)  # let received data be processed

    key = str(server.folder / "host_key")
    listening = await asyncssh.listen(
        "127.0.0.1", 0, server_factory=Lenient, server_host_keys=[key], process_factory=talk, encoding=None
    )
    client = SwitchClient("127.0.0.1", listening.get_port(), GLIMMERGLASS, way=by_key, timeout=SETTLED)
    await client.open()
    assert await client.wait_closed() == "the switch sends far more than it is asked for"
    assert client.flooded
    await over.wait()
    listening.close()
    await listening.wait_closed()


# ------------------------------------------------------------------------------------------------- sessions that end


async def test_lost_session_leaves_outcome_of_change_open(server, by_key) -> None:
    async with emulated(server, by_key, GLIMMERGLASS) as lab:
        client = await lab.opened(timeout=SETTLED)
        lab.switch.faults.lose_answer = True
        change = asyncio.create_task(client.connect([Circuit(1, 2)]))
        await eventually_async(lambda: lab.paths.lit, "the change to be made")
        server.kill_sessions()
        with pytest.raises(SessionLostError):
            await change
        lab.switch.faults.lose_answer = False
        await client.open()
        assert [state.circuit for state in await client.circuits()] == [Circuit(1, 2)]


async def test_end_of_program_ends_session(server, by_key) -> None:
    async with emulated(server, by_key, GLIMMERGLASS) as lab:
        client = await lab.opened()
        lab.switch.cut()
        assert await client.wait_closed() == "the switch closed the connection"
        await eventually_async(server.at_rest, "the sessions to end")


async def test_keepalive_detects_stopped_switch(server, by_key, monkeypatch) -> None:
    monkeypatch.setattr("optical_switch.ssh.KEEPALIVE_SECONDS", 0.1)
    client = client_of(server, replace(by_key, command="deaf"))
    await client.open()
    try:
        for pid in server.sessions():
            os.kill(pid, signal.SIGSTOP)
        assert "not responding to keepalive" in await client.wait_closed()
    finally:
        server.kill_sessions()
    await client.close()


async def test_cancelled_open_leaves_no_session(server, by_key) -> None:
    client = client_of(server, replace(by_key, command="deaf"), timeout=SETTLED, **CREDENTIALS)
    opening = asyncio.create_task(client.open())
    await eventually_async(server.programs, "the login to be waited for")
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await eventually_async(server.at_rest, "the sessions to end")
    for pauses in range(12):
        opening = asyncio.create_task(client_of(server, by_key).open())
        for _ in range(pauses):
            await asyncio.sleep(0.002)  # each round cancels at a later stage
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await opening
    await eventually_async(server.at_rest, "the sessions to end")


async def test_close_succeeds_if_switch_does_not_answer(server, by_key) -> None:
    client = client_of(server, replace(by_key, command="deaf"), timeout=0.5)
    await client.open()
    await client.close()
    assert await client.wait_closed() == "closed by us"
    await eventually_async(server.at_rest, "the sessions to end")


# -------------------------------------------------------------------------------------------------- the controller


BLAST = str(Path(sys.executable).with_name("blast"))
CONFIG = dedent("""
    [controller]
    thrift = "127.0.0.1:0"
    openflow = "127.0.0.1:0"
    [journal]
    in_memory = true
    [[optical_switch]]
    name = "ocs1"
    address = "127.0.0.1:{port}"
    inputs = 16
    outputs = 16
    [optical_switch.ssh]
    user = "{user}"
    password_file = "{folder}/password"
    known_hosts = "{folder}/{known}"
    subsystem = "tl1"
    open_timeout_ms = 60_000
    [[rack]]
    name = "r1"
    datapath = "0000000000000001"
    optical_ports = [{{ port = 9, optical_switch = "ocs1", input = 1, output = 1 }}]
    hosts = [{{ name = "h1", port = 1, ip = "10.0.0.1" }}, {{ name = "h2", port = 2, ip = "10.0.0.2" }}]
    """)


@pytest.fixture
def switch(server: SshSwitch) -> Iterator[SwitchThread]:
    switch = SwitchThread(free_port())
    (server.folder / "port").write_text(str(switch.port))
    try:
        yield switch
    finally:
        switch.stop()


def test_executor_reconnects_when_ssh_server_returns(server, switch, by_key) -> None:
    with bench(server.port, way=by_key) as found:
        found.next(DeviceConnected)
        server.stop()
        found.next(DeviceDisconnected)
        found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
        assert isinstance(found.answers(1)[1, 1], StepFailed)
        server.resume()
        event = found.events.get(timeout=SETTLED)
        while isinstance(event, DeviceDisconnected):
            event = found.events.get(timeout=SETTLED)
        assert event == DeviceConnected("ocs1")
        found.apply(CircuitChange(1, 2, (), circuits((1, 2))))
        assert isinstance(found.answers(1)[1, 2], StepConfirmed)


# ------------------------------------------------------------------------------------------------- a whole controller


@pytest.mark.parametrize(("known", "error"), [("known_hosts", ""), ("foreign_hosts", "another SSH host key (SHA256:")])
def test_controller_connects_only_switch_with_trusted_host_key(
    server: SshSwitch, switch, tmp_path: Path, known: str, error: str
) -> None:
    key = (server.folder / "other_host_key.pub").read_text()
    (server.folder / "foreign_hosts").write_text(f"[127.0.0.1]:{server.port} {key}")
    config, log = tmp_path / "blast.toml", tmp_path / "log"
    config.write_text(CONFIG.format(port=server.port, user=USER, folder=server.folder, known=known))
    with log.open("w") as output:
        command = [BLAST, "controller", "run", "--config", str(config)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, text=True)
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready, log.read_text()
        with Client(json.loads(ready)["thrift"], timeout=SETTLED) as client:
            if error:
                eventually(lambda: error in log.read_text(), "the refusal in the log")
                assert not client.fabric().opticalSwitches[0].connected
            else:
                eventually(lambda: client.fabric().opticalSwitches[0].connected, "the switch to be connected")
        process.terminate()
        assert process.wait(SETTLED) == 0
    finally:
        process.kill()
        process.communicate()
    logged = log.read_text()
    assert PASSWORD not in logged and "Traceback" not in logged
    assert "Beginning auth" not in logged, "the log has no lines of asyncssh itself"
    eventually(server.at_rest, "the session to end")

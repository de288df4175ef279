"""Agents started over a real SSH server on several addresses of loopback, some of them with faults."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from blast_transport.base.errors import AuthenticationError
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import SharedSecret
from blast_transport.remote.start import StartedAgents, StartOptions, started_agents
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from blast_transport.transports.choices import Chain, Unicast
from tests.support.controller.ssh_server import Sshd, lacks
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(lacks() is not None, reason=lacks() or "")


class SshServer(Sshd):
    """Hosts that agents are started on (addresses of 127.0.0.0/8); `faults` are Match blocks for some of them."""

    def __init__(self, folder: Path, hosts: list[str], faults: Mapping[str, str]) -> None:
        lines = [
            "PermitRootLogin prohibit-password",
            "PasswordAuthentication no",
            f"SetEnv PATH={Path(sys.executable).parent}:/usr/bin:/bin TMPDIR={folder}/tmp HOME={folder}",
        ]
        for host, block in faults.items():
            lines += [f"Match LocalAddress {host}", *(f"  {line}" for line in block.format(folder=folder).splitlines())]
        (folder / "none").touch()
        (folder / "tmp").mkdir()
        super().__init__(folder, hosts, *lines)

    @property
    def ssh_options(self) -> str:
        """Return the options that make ssh a client of this server only."""
        folder = self.folder
        return (
            f"-F none -i {folder}/user_key -oIdentitiesOnly=yes -oUserKnownHostsFile={folder}/known_hosts "
            "-oGlobalKnownHostsFile=/dev/null -oStrictHostKeyChecking=yes"
        )

    @property
    def left(self) -> list[Path]:
        """Return the names in the hosts' temporary folder."""
        return sorted((self.folder / "tmp").iterdir())

    @contextmanager
    def running(self) -> Iterator[SshServer]:
        """Serve; the server's children end with it."""
        process = self.start()
        try:
            yield self
        finally:
            process.terminate()
            process.wait(30)

    def forget(self, host: str) -> None:
        """Remove the key of this host from the client's known hosts."""
        path = self.folder / "known_hosts"
        kept = [line for line in path.read_text().splitlines() if not line.startswith(f"[{host}]:")]
        path.write_text("\n".join(kept) + "\n")


GOOD = [f"127.0.0.{number}" for number in range(2, 5)]
UNUSED_ADDRESS = "127.0.0.40"
FAULTS = {
    "127.0.0.20": "ForceCommand /bin/sleep 600",
    "127.0.0.21": "AuthorizedKeysFile {folder}/none",
    "127.0.0.22": "SetEnv PATH={folder}/old HOME={folder}",
    "127.0.0.23": "SetEnv PATH={folder}/empty HOME={folder}",
    "127.0.0.24": "SetEnv TMPDIR=/no/such/folder HOME={folder}",
    "127.0.0.25": "",
    "127.0.0.26": 'ForceCommand echo "Welcome to this host!"; echo "{{}}"; echo noise >&2; '
    'exec sh -c "$SSH_ORIGINAL_COMMAND"',
    "127.0.0.27": "ForceCommand exit 3",
    "127.0.0.28": "SetEnv PATH={folder}/bare:/usr/bin:/bin TMPDIR={folder}/tmp HOME={folder}",
}
HANGING_HOST, NOISY, UNKNOWN_KEY, BARE = "127.0.0.20", "127.0.0.26", "127.0.0.25", "127.0.0.28"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("old", "empty", "bare"):
        (folder / name).mkdir()
        (folder / name / "sh").symlink_to("/bin/sh")
    (folder / "old" / "python3").write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.6.8\nexit 1\n')
    (folder / "bare" / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    for name in ("old", "bare"):
        (folder / name / "python3").chmod(0o755)
    made = SshServer(folder, [*GOOD, *FAULTS], FAULTS)
    made.forget(UNKNOWN_KEY)
    with made.running():
        yield made


@pytest.fixture
def options(server: SshServer) -> StartOptions:
    return StartOptions(port=server.port, ssh_options=server.ssh_options, seconds=60.0)


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    folder = tmp_path / "incoming"
    folder.mkdir()
    return folder


def own_descendants(pid: int | str = "self") -> set[int]:
    """Return the ids of all descendants of a process, by default of this one."""
    found: set[int] = set()
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        # A process, or a thread, may have ended meanwhile.
        with suppress(OSError):
            found.update(map(int, children.read_text().split()))
    return found.union(*map(own_descendants, found))


def reached(agents: StartedAgents) -> set[str]:
    """Return the hosts whose agents accept a connection."""
    hosts = set()
    for address in agents.addresses:
        dialer(agents.secret)(address, 5.0).close()
        hosts.add(address[0])
    return hosts


def test_started_agents_accept_only_their_secret_and_are_removed(server, options, incoming):
    with started_agents(GOOD, str(incoming), options) as agents:
        assert [host for host, _, _ in agents.addresses] == sorted(GOOD) and not agents.failed
        assert reached(agents) == set(GOOD)
        with pytest.raises(AuthenticationError, match="the secret is not this agent's"):
            dialer(SharedSecret(b"x" * 32))(agents.addresses[0], 5.0)
        assert len(server.left) == len(GOOD)
    assert not server.left, "the copies are gone, and their folders"
    assert not agents.failed
    with pytest.raises(ConnectionRefusedError):
        dialer(agents.secret)(("h", GOOD[0], 1), 1.0)


def test_failed_hosts_have_their_own_reasons_and_others_start(server, options, incoming):
    hosts = [GOOD[0], *(host for host in FAULTS if host != HANGING_HOST), UNUSED_ADDRESS, GOOD[1]]
    with started_agents(hosts, str(incoming), options) as agents:
        assert reached(agents) == {GOOD[0], GOOD[1], NOISY, BARE}
        failed = agents.failed
    expected = {
        "127.0.0.21": "cannot be reached by SSH: root@127.0.0.21: Permission denied (publickey).",
        "127.0.0.22": "python3 (Python 3.6.8) is too old, or does not run: Python 3.11 is needed",
        "127.0.0.23": "there is no python3",
        "127.0.0.24": "no temporary folder can be made",
        UNKNOWN_KEY: "cannot be reached by SSH: Host key verification failed.",
        "127.0.0.27": "the agent did not start (status 3)",
        UNUSED_ADDRESS: "cannot be reached by SSH: "
        f"ssh: connect to host {UNUSED_ADDRESS} port {server.port}: Connection refused",
    }
    assert failed == expected
    assert not server.left


def test_hanging_host_fails_after_start_timeout(options, incoming):
    options = StartOptions(port=options.port, ssh_options=options.ssh_options, seconds=0.5)
    with started_agents([HANGING_HOST], str(incoming), options) as agents:
        assert agents.failed == {HANGING_HOST: "no agent came up in time"}


@pytest.mark.parametrize(
    ("folder", "more", "reason"),
    [
        ("/no/such/folder", {}, "the folder 'files' is not there: mkdir -p /no/such/folder"),
        ("/tmp", {"limits": {"sesions": 3}}, "unknown key limits.sesions; did you mean sessions?"),
        ("/tmp", {"listen": "203.0.113.1:0"}, "cannot listen on 203.0.113.1:0: Cannot assign requested address"),
    ],
)
def test_invalid_agent_settings_are_reported_for_each_host(options, folder, more, reason):
    options = StartOptions(port=options.port, ssh_options=options.ssh_options, seconds=60, **more)
    with started_agents(GOOD[:2], folder, options) as agents:
        assert not agents.addresses
        assert list(agents.failed) == GOOD[:2] and all(reason in failure for failure in agents.failed.values())


@pytest.mark.parametrize("way", [Unicast, Chain])
def test_file_reaches_every_started_agent(server, options, tmp_path, way):
    """All hosts are this machine, so each writes into a folder with its own name."""
    content = os.urandom(300_000)
    (tmp_path / "file").write_bytes(content)
    for host in server.hosts:
        (tmp_path / host).mkdir()
    with started_agents(GOOD[:3], f"{tmp_path}/{{host}}", options) as agents:
        settings = SenderSettings(dialer=dialer(agents.secret), credentials=agents.secret, suite=agents.suite)
        with Sender(agents.addresses, settings) as sender:
            result = sender.send_file(tmp_path / "file", Route(way()))
    assert result.complete == 3, result.receivers
    for host in GOOD[:3]:
        assert (tmp_path / host / "file").read_bytes() == content


def test_bare_host_uses_sha256_of_standard_library(server, options, tmp_path):
    (tmp_path / "file").write_bytes(os.urandom(300_000))
    for host in (GOOD[0], BARE):
        (tmp_path / host).mkdir()
    with started_agents([GOOD[0], BARE], f"{tmp_path}/{{host}}", options) as agents:
        assert agents.suite == "sha256"
        settings = SenderSettings(dialer=dialer(agents.secret), credentials=agents.secret, suite=agents.suite)
        with Sender(agents.addresses, settings) as sender:
            assert sender.send_file(tmp_path / "file", Route(Chain())).complete == 2
    assert (tmp_path / BARE / "file").read_bytes() == (tmp_path / "file").read_bytes()


def test_blast_send_starts_its_agents(server, options, tmp_path):
    (tmp_path / "file").write_bytes(os.urandom(300_000))
    for host in GOOD[:2]:
        (tmp_path / host).mkdir()
    to = ",".join((*GOOD[:2], UNUSED_ADDRESS))
    command = [str(Path(sys.executable).with_name("blast")), "send", str(tmp_path / "file"), "--to", to, "--ssh"]
    command += ["--ssh-folder", f"{tmp_path}/{{host}}", "--ssh-port", str(options.port), "--via", "pipeline"]
    command += ["--ssh-options", options.ssh_options, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert "Connection refused" in result["unreachable"][UNUSED_ADDRESS]
    for host in GOOD[:2]:
        assert (tmp_path / host / "file").read_bytes() == (tmp_path / "file").read_bytes()
    assert not server.left


def test_secret_is_in_no_command_line_environment_or_file(server, options, incoming):
    with started_agents(GOOD[:2], str(incoming), options) as agents:
        word = agents.secret.value.hex().encode()
        looked_at = 0
        for process in Path("/proc").iterdir():
            if process.name.isdecimal() and int(process.name) != os.getpid():
                try:
                    shown = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
                except OSError:
                    continue
                looked_at += b"on-demand" in shown
                assert word not in shown and agents.secret.value not in shown
        assert looked_at >= 2, "the agents were among them"
        for folder in server.left:
            assert [path.name for path in folder.iterdir()] == ["agent.pyz"]
            assert word not in (folder / "agent.pyz").read_bytes()


def test_killed_agent_is_reported_and_its_folder_removed(server, options, incoming):
    with started_agents(GOOD[:2], str(incoming), options) as agents:
        folder = server.left[0]
        (victim,) = processes_of(folder)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: bool(agents.failed))
        (reason,) = agents.failed.values()
        assert reason.startswith("the agent ended (status 137)")
        assert len(agents.addresses) == 1 and reached(agents) == {agents.addresses[0][0]}
        eventually(lambda: folder not in server.left)


def test_exceptions_of_sender_stop_all_agents(server, options, incoming):
    for error in (KeyboardInterrupt, RuntimeError):
        with pytest.raises(error), started_agents(GOOD[:2], str(incoming), options) as agents:
            assert len(agents.addresses) == 2
            raise error
        assert not server.left
    assert not [pid for pid in own_descendants() if is_ssh(pid)], "no ssh is left"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_agents_stop_when_their_sender_is_killed(server, options, incoming, number):
    code = (
        "import sys, time\n"
        "from blast_transport.remote.start import *\n"
        "host, folder, port, ssh = sys.argv[1:]\n"
        "with started_agents([host], folder, StartOptions(port=int(port), ssh_options=ssh)) as agents:\n"
        "    print(agents.addresses[0][2], flush=True)\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, GOOD[0], str(incoming), str(options.port), options.ssh_options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None
        port = int(sender.stdout.readline())
        (folder,) = server.left
        assert processes_of(folder)
        sender.send_signal(number)
        sender.wait(30)
    eventually(lambda: not server.left)
    with pytest.raises(ConnectionRefusedError):
        dialer(None)(("h", GOOD[0], port), 1.0)


def test_ssh_connections_run_in_their_own_process_sessions(server, options, incoming):
    """Each ssh process has a session of its own, so a sender ends its sessions before its agents end."""
    with started_agents(GOOD[:1], str(incoming), options) as agents:
        connections = [pid for pid in own_descendants() if is_ssh(pid)]
        assert connections and all(os.getsid(pid) != os.getsid(0) for pid in connections)
        assert reached(agents) == set(GOOD[:1])


def test_unresponsive_agent_is_disconnected_after_end_timeout(server, options, incoming):
    options = StartOptions(port=options.port, ssh_options=options.ssh_options, seconds=60, end_seconds=0.5)
    with started_agents(GOOD[:1], str(incoming), options) as agents:
        assert len(agents.addresses) == 1
        (victim,) = processes_of(server.left[0])
        os.kill(victim, signal.SIGSTOP)
    os.kill(victim, signal.SIGCONT)
    eventually(lambda: not server.left)


def processes_of(folder: Path) -> list[int]:
    """Return the ids of the agents that were started from this folder, without their shells."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"{folder}/agent.pyz".encode() in words and words[-2] == b"on-demand":
                found.append(int(process.name))
    return found


def is_ssh(pid: int) -> bool:
    """Return whether the process is an SSH client."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "ssh"
    except OSError:
        return False

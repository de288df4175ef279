"""Agents started over SSH, tested without SSH: output of the hosts, and the command line of their shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_base.extras import how_to_install
from blast_transport.agent.bundle import build_bundle
from blast_transport.base.errors import WrongInputError
from blast_transport.remote.hosts import HostRegistry
from blast_transport.remote.script import COMPLAINT, start_line
from blast_transport.remote.start import StartOptions, started_agents
from tests.support.waiting import eventually

READY = b'{"event": "ready", "host": "0.0.0.0", "port": 4711, "suites": ["sha256"]}'
SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh", "tcsh", "csh", "fish", "ksh") if shutil.which(shell)]


def started(*hosts: str, window: int = 10) -> HostRegistry:
    registry = HostRegistry(hosts)
    while registry.next_to_start(window, 10.0):
        pass
    return registry


# ------------------------------------------------------------------------------------------------ output of hosts


def test_host_is_ready_once_agent_reports_ready():
    registry = started("a", "b")
    registry.received_line("a", b"Welcome to a! {x}")
    registry.received_line("a", b'{"event": "other"}')
    registry.received_line("a", b"[1]")
    registry.received_line("a", READY)
    assert registry.ports == {"a": 4711} and not registry.reasons and not registry.settled.is_set()
    registry.received_line("b", READY)
    assert registry.settled.is_set()


def test_suites_are_common_to_all_ready_agents():
    registry = started("a", "b", "c")
    assert not registry.suites
    registry.received_line("a", READY.replace(b'["sha256"', b'["sha256", "blake3"'))
    assert registry.suites == {"sha256", "blake3"}
    registry.closed("b", 1)
    registry.received_line("c", READY)
    assert registry.suites == {"sha256"}


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (("received_line", COMPLAINT.encode() + b"there is no python3"), "there is no python3"),
        (("received_line", b'{"event": "unusable", "reason": "no folder"}'), "no folder"),
        (("closed", 255), "cannot be reached by SSH: Permission denied (publickey)."),
        (("closed", 1), "the agent did not start (status 1): Permission denied (publickey)."),
        (("closed", None), "the agent did not start (status None): Permission denied (publickey)."),
        (("late", 10.1), "no agent came up in time: Permission denied (publickey)."),
    ],
)
def test_registry_keeps_first_reason_of_failed_host(event, reason):
    registry = started("a")
    registry.complained("a", b"Permission denied (publickey).\r")
    registry.complained("a", b"")
    getattr(registry, event[0])(*(("a", event[1]) if event[0] != "late" else (event[1],)))
    assert registry.reasons == {"a": reason} and registry.settled.is_set() and not registry.ports
    registry.received_line("a", READY)
    registry.closed("a", 0)
    assert registry.reasons == {"a": reason}, "the first reason stays"


def test_agent_that_ends_before_conclusion_counts_as_failed():
    registry = started("a", "b")
    for host in ("a", "b"):
        registry.received_line(host, READY)
    registry.received_line("a", b'{"event": "ended", "reason": "the agent is ending (SIGTERM)"}')
    registry.closed("a", 0)
    assert registry.reasons == {"a": "the agent ended (status 0): the agent is ending (SIGTERM)"}
    assert list(registry.ports) == ["b"]
    registry.conclude("over")
    registry.closed("b", 0)
    assert list(registry.ports) == ["b"] and list(registry.reasons) == ["a"], "b completed its work"


def test_reason_contains_no_control_characters():
    registry = started("a")
    registry.received_line("a", COMPLAINT.encode() + b"\x1b[2J" + b"x" * 1000)
    (reason,) = registry.reasons.values()
    assert reason.isprintable() and len(reason) <= 300


@given(
    count=st.integers(0, 12), window=st.integers(1, 5), events=st.lists(st.tuples(st.integers(0, 11), st.booleans()))
)
def test_starts_stay_within_window_and_reach_every_host(count, window, events):
    hosts = [f"h{number}" for number in range(count)]
    registry, begun, done = HostRegistry(hosts), list[str](), set[str]()

    def start() -> None:
        while (host := registry.next_to_start(window, 1.0)) is not None:
            begun.append(host)
        assert len(set(begun) - done) <= window

    start()
    for number, well in [*events, *((number, True) for number in range(12))]:
        if number < len(begun):
            host = begun[number]
            (registry.received_line(host, READY) if well else registry.closed(host, 255))
            done.add(host)
            start()
    assert begun == hosts and registry.settled.is_set()
    assert set(registry.ports) | set(registry.reasons) == set(hosts)


# ------------------------------------------------------------------------------------------- the line of the shell


@pytest.fixture(scope="module")
def bundle() -> bytes:
    return build_bundle()


@pytest.fixture
def host(tmp_path: Path):
    """Yield a host that runs the line as a login shell would, with a temporary folder to inspect."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    (tmp_path / "in").mkdir()
    running: list[subprocess.Popen[bytes]] = []

    class Host:
        folder = tmp_path / "in"

        @property
        def left(self) -> list[Path]:
            return list(temporary.iterdir())

        def order(self, **tables: object) -> bytes:
            settings = {
                "agent": {"listen": "127.0.0.1:0"},
                "folder": [{"name": "f", "path": str(self.folder)}],
                **tables,
            }
            return json.dumps({"secret": "ab" * 32, "settings": settings, "light_network": None}).encode() + b"\n"

        def start(self, line: str, stdin: bytes, shell: str = "sh", **environment: str) -> subprocess.Popen[bytes]:
            full = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TMPDIR": str(temporary)}
            process = subprocess.Popen(
                [shutil.which(shell), "-c", line],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**full, **environment},
            )
            running.append(process)
            process.stdin.write(stdin)
            process.stdin.flush()
            return process

        def fails(self, line: str, stdin: bytes, **environment: str) -> str:
            process = self.start(line, stdin, **environment)
            out, _ = process.communicate(timeout=30)
            assert process.returncode == 1
            return out.decode()

    yield Host()
    for process in running:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()


def check_removed(host) -> None:
    eventually(lambda: not host.left, "an empty folder")


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_starts_agent_that_ends_with_its_input(host, bundle, shell):
    process = host.start(start_line(len(bundle)), bundle + host.order(), shell)
    ready = json.loads(process.stdout.readline())
    assert ready["event"] == "ready" and ready["port"] > 0
    (folder,) = host.left
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "agent.pyz").stat().st_mode & 0o777 == 0o600
    assert (folder / "agent.pyz").read_bytes() == bundle
    process.stdin.close()
    ended = json.loads(process.stdout.readline())
    assert ended["event"] == "ended" and ended["reason"] == "the sender has gone"
    assert process.wait(30) == 0 and not host.left


def test_connection_cut_during_copy_leaves_no_files(host, bundle):
    process = host.start(start_line(len(bundle)), bundle[:1000])
    eventually(lambda: host.left, "the folder")
    process.stdout.close()
    process.stderr.close()
    process.stdin.close()
    assert process.wait(30) != 0 and not host.left


def test_killed_agent_leaves_no_files(host, bundle):
    process = host.start(start_line(len(bundle)), bundle + host.order())
    assert json.loads(process.stdout.readline())["event"] == "ready"
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    assert process.wait(30) != 0
    check_removed(host)


def test_host_without_python_reports_it(host, bundle, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sh").symlink_to(shutil.which("sh"))
    assert host.fails(start_line(len(bundle)), b"", PATH=str(tools)) == "blast-agent: there is no python3\n"


def fake_python(folder: Path, name: str, version: str) -> None:
    folder.mkdir(exist_ok=True)
    script = f'#!/bin/sh\nif [ "$1" = --version ]; then echo "Python {version}"; exit 0; fi\nexit 1\n'
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def test_host_with_old_python_reports_it(host, bundle, tmp_path):
    fake_python(tmp_path / "old", "python3", "3.6.8")
    (tmp_path / "old" / "sh").symlink_to(shutil.which("sh"))
    output = host.fails(start_line(len(bundle)), b"", PATH=str(tmp_path / "old"))
    assert output == "blast-agent: python3 (Python 3.6.8) is too old, or does not run: Python 3.11 is needed\n"


def test_start_line_finds_newer_python_beside_old_one(host, bundle, tmp_path):
    fake_python(tmp_path / "old", "python3", "3.6.8")
    (tmp_path / "old" / "python3.11").symlink_to(sys.executable)
    path = f"{tmp_path}/old:/usr/bin:/bin"
    process = host.start(start_line(len(bundle)), bundle + host.order(), PATH=path)
    assert json.loads(process.stdout.readline())["event"] == "ready"


def test_host_without_temporary_folder_reports_it(host, bundle):
    output = host.fails(start_line(len(bundle)), b"", TMPDIR="/no/such/folder")
    assert output == "blast-agent: no temporary folder can be made\n"


def test_truncated_bundle_is_not_run(host, bundle):
    output = host.fails(start_line(len(bundle)), bundle[:-1])
    assert output.startswith("blast-agent: the agent cannot be copied to ") and not host.left


def test_startup_file_that_reads_standard_input_is_reported(host, bundle):
    """The startup file consumes the first bytes of the bundle; as many bytes that follow replace them."""
    output = host.fails(start_line(len(bundle)), bundle[100:] + bytes(100) + host.order())
    assert output.startswith("blast-agent: a start-up file of the login shell reads standard input") and not host.left


@pytest.mark.parametrize("tables", [{"folder": [{"name": "f", "path": "/no/such"}]}, {"agnt": {}}])
def test_agent_reports_order_that_it_cannot_execute(host, bundle, tables):
    output = json.loads(host.fails(start_line(len(bundle)), bundle + host.order(**tables)))
    assert output["event"] == "unusable" and ("mkdir -p /no/such" in output["reason"] or "agnt" in output["reason"])
    assert not host.left


# ---------------------------------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("hosts", "folder", "options", "sentence"),
    [
        (["-oProxyCommand=x"], "/srv", {}, "'-oProxyCommand=x' is no host name"),
        (["h[1-3]"], "/srv", {}, r"'h\[1-3\]' is no host name"),
        (["a b"], "/srv", {}, "'a b' is no host name"),
        ([""], "/srv", {}, "'' is no host name"),
        (["@all"], "/srv", {}, "'@all' is no host name"),
        (["a", "a"], "/srv", {}, "a host is named twice"),
        (["a"], "srv", {}, "'srv' must be an absolute path"),
        (["a"], "/srv", {"window": 0}, "window and seconds"),
    ],
)
def test_start_rejects_invalid_hosts_folder_and_options(hosts, folder, options, sentence):
    with pytest.raises(WrongInputError, match=sentence), started_agents(hosts, folder, StartOptions(**options)):
        pass


def test_missing_clustershell_names_extra_to_install(monkeypatch):
    monkeypatch.setattr("blast_transport.remote.shell.IS_INSTALLED", False)
    with pytest.raises(WrongInputError, match=re.escape(how_to_install("ssh"))), started_agents(["a"], "/srv"):
        pass

"""Agents started over SSH, without SSH: what the hosts say, and the line that a bare host's shell runs."""

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
    book = HostRegistry(hosts)
    while book.next_to_start(window, 10.0):
        pass
    return book


# ------------------------------------------------------------------------------------------------ what hosts say


def test_an_agent_is_ready_when_it_says_so():
    book = started("a", "b")
    book.received_line("a", b"Welcome to a! {x}")
    book.received_line("a", b'{"event": "other"}')
    book.received_line("a", b"[1]")
    book.received_line("a", READY)
    assert book.ports == {"a": 4711} and not book.reasons and not book.settled.is_set()
    book.received_line("b", READY)
    assert book.settled.is_set()


def test_the_digests_are_those_of_all_agents():
    book = started("a", "b", "c")
    assert not book.suites
    book.received_line("a", READY.replace(b'["sha256"', b'["sha256", "blake3"'))
    assert book.suites == {"sha256", "blake3"}
    book.closed("b", 1)
    book.received_line("c", READY)
    assert book.suites == {"sha256"}


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        (("received_line", COMPLAINT.encode() + b"there is no python3"), "there is no python3"),
        (("received_line", b'{"event": "unusable", "reason": "no folder"}'), "no folder"),
        (("closed", 255), "cannot be reached by SSH: Permission denied (publickey)."),
        (("closed", 1), "the agent did not start (status 1): Permission denied (publickey)."),
        (("closed", None), "the agent did not start (status None): Permission denied (publickey)."),
        (("late", 10.1), "no agent came up in time: Permission denied (publickey)."),
    ],
)
def test_failures_have_their_reason(word, reason):
    book = started("a")
    book.complained("a", b"Permission denied (publickey).\r")
    book.complained("a", b"")
    getattr(book, word[0])(*(("a", word[1]) if word[0] != "late" else (word[1],)))
    assert book.reasons == {"a": reason} and book.settled.is_set() and not book.ports
    book.received_line("a", READY)
    book.closed("a", 0)
    assert book.reasons == {"a": reason}, "the first reason stays"


def test_an_agent_that_ends_too_early_has_failed_after_all():
    book = started("a", "b")
    for host in ("a", "b"):
        book.received_line(host, READY)
    book.received_line("a", b'{"event": "ended", "reason": "the agent is ending (SIGTERM)"}')
    book.closed("a", 0)
    assert book.reasons == {"a": "the agent ended (status 0): the agent is ending (SIGTERM)"}
    assert list(book.ports) == ["b"]
    book.conclude("over")
    book.closed("b", 0)
    assert list(book.ports) == ["b"] and list(book.reasons) == ["a"], "b has done its work"


def test_a_reason_cannot_write_on_a_terminal():
    book = started("a")
    book.received_line("a", COMPLAINT.encode() + b"\x1b[2J" + b"x" * 1000)
    (reason,) = book.reasons.values()
    assert reason.isprintable() and len(reason) <= 300


@given(count=st.integers(0, 12), window=st.integers(1, 5), words=st.lists(st.tuples(st.integers(0, 11), st.booleans())))
def test_never_more_than_the_window_are_being_started_and_all_get_their_turn(count, window, words):
    hosts = [f"h{number}" for number in range(count)]
    book, begun, done = HostRegistry(hosts), list[str](), set[str]()

    def start() -> None:
        while (host := book.next_to_start(window, 1.0)) is not None:
            begun.append(host)
        assert len(set(begun) - done) <= window

    start()
    for number, well in [*words, *((number, True) for number in range(12))]:
        if number < len(begun):
            host = begun[number]
            (book.received_line(host, READY) if well else book.closed(host, 255))
            done.add(host)
            start()
    assert begun == hosts and book.settled.is_set()
    assert set(book.ports) | set(book.reasons) == set(hosts)


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


def gone(host) -> None:
    eventually(lambda: not host.left, "an empty folder")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_starts_the_agent_which_lives_as_long_as_its_input(host, bundle, shell):
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


def test_a_connection_that_is_cut_before_the_agent_is_whole_leaves_nothing(host, bundle):
    process = host.start(start_line(len(bundle)), bundle[:1000])
    eventually(lambda: host.left, "the folder")
    process.stdout.close()
    process.stderr.close()
    process.stdin.close()
    assert process.wait(30) != 0 and not host.left


def test_an_agent_that_is_killed_leaves_nothing(host, bundle):
    process = host.start(start_line(len(bundle)), bundle + host.order())
    assert json.loads(process.stdout.readline())["event"] == "ready"
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    assert process.wait(30) != 0
    gone(host)


def test_a_host_without_python_says_so(host, bundle, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sh").symlink_to(shutil.which("sh"))
    assert host.fails(start_line(len(bundle)), b"", PATH=str(tools)) == "blast-agent: there is no python3\n"


def fake_python(folder: Path, name: str, version: str) -> None:
    folder.mkdir(exist_ok=True)
    script = f'#!/bin/sh\nif [ "$1" = --version ]; then echo "Python {version}"; exit 0; fi\nexit 1\n'
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def test_a_host_whose_python_is_too_old_says_so(host, bundle, tmp_path):
    fake_python(tmp_path / "old", "python3", "3.6.8")
    (tmp_path / "old" / "sh").symlink_to(shutil.which("sh"))
    said = host.fails(start_line(len(bundle)), b"", PATH=str(tmp_path / "old"))
    assert said == "blast-agent: python3 (Python 3.6.8) is too old, or does not run: Python 3.11 is needed\n"


def test_a_newer_python_beside_an_old_one_is_found(host, bundle, tmp_path):
    fake_python(tmp_path / "old", "python3", "3.6.8")
    (tmp_path / "old" / "python3.11").symlink_to(sys.executable)
    path = f"{tmp_path}/old:/usr/bin:/bin"
    process = host.start(start_line(len(bundle)), bundle + host.order(), PATH=path)
    assert json.loads(process.stdout.readline())["event"] == "ready"


def test_a_host_without_a_temporary_folder_says_so(host, bundle):
    said = host.fails(start_line(len(bundle)), b"", TMPDIR="/no/such/folder")
    assert said == "blast-agent: no temporary folder can be made\n"


def test_a_file_that_does_not_arrive_whole_is_not_run(host, bundle):
    said = host.fails(start_line(len(bundle)), bundle[:-1])
    assert said.startswith("blast-agent: the agent cannot be copied to ") and not host.left


def test_start_up_file_that_reads_standard_input_is_named(host, bundle):
    """It has taken the first lines of the agent's file; as many bytes of what follows come in their place."""
    said = host.fails(start_line(len(bundle)), bundle[100:] + bytes(100) + host.order())
    assert said.startswith("blast-agent: a start-up file of the login shell reads standard input") and not host.left


@pytest.mark.parametrize("tables", [{"folder": [{"name": "f", "path": "/no/such"}]}, {"agnt": {}}])
def test_an_order_that_cannot_be_carried_out_is_answered(host, bundle, tables):
    said = json.loads(host.fails(start_line(len(bundle)), bundle + host.order(**tables)))
    assert said["event"] == "unusable" and ("mkdir -p /no/such" in said["reason"] or "agnt" in said["reason"])
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
def test_what_cannot_be_right_anywhere_is_refused_at_once(hosts, folder, options, sentence):
    with pytest.raises(WrongInputError, match=sentence), started_agents(hosts, folder, StartOptions(**options)):
        pass


def test_without_clustershell_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("blast_transport.remote.shell.IS_INSTALLED", False)
    with pytest.raises(WrongInputError, match=re.escape(how_to_install("ssh"))), started_agents(["a"], "/srv"):
        pass

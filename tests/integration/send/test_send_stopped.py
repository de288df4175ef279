"""Ctrl-C and SIGTERM of senders, in every phase: they end at once with a message, and leave only resumable files."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from blast_api.ttypes import PartState
from blast_base.endpoint import Endpoint
from blast_transport.store.targets.command_target import CommandTarget
from tests.support.controller.memory_controller import MemoryController, serving
from tests.support.controller.store_faults import before_writes
from tests.support.transport.transport_hosts import Agent, agent, light
from tests.support.waiting import HANGING, eventually

BLAST = (str(Path(sys.executable).with_name("blast")), "send")
TRANSPORT = (sys.executable, "-m", "blast_transport", "send")
SIZE = 6 << 20
INTERRUPTED, TERMINATED = 130, 143


class Stuck:
    """A store that accepts part of a file and then blocks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go = threading.Event(), threading.Event()

        def stuck(_place: str, offset: int, size: int) -> None:
            if offset + size > SIZE // 4:
                self.reached.set()
                self.go.wait(120)

        before_writes(monkeypatch, stuck)


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    store = Stuck(monkeypatch)
    yield store
    store.go.set()


@contextmanager
def running(*command: str | Path, stdin: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run a command with the default action for SIGINT.

    A test run in the background may ignore SIGINT, which child processes inherit.
    """
    words = ["env", "--default-signal=INT", *map(str, command)]
    process = subprocess.Popen(
        words,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def stopped(process: subprocess.Popen[str], number: int = signal.SIGINT) -> tuple[int, str]:
    """Send the signal; return the exit status and the standard error output."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=HANGING)
    assert "Traceback" not in errors
    return process.returncode, errors


def to(*agents: Agent) -> str:
    return ",".join(f"{name}={host}:{port}" for name, host, port in (one.address for one in agents))


@pytest.mark.parametrize(
    ("command", "number", "status"),
    [
        (("--via", "pipeline"), signal.SIGINT, INTERRUPTED),
        (("--via", "unicast"), signal.SIGTERM, TERMINATED),
        (("--controller", "127.0.0.1:1"), signal.SIGINT, INTERRUPTED),
    ],
    ids=["pipeline", "unicast", "auto without a controller"],
)
def test_stopped_file_can_be_resumed(
    tmp_path: Path, file: Path, stuck: Stuck, command: Sequence[str], number: int, status: int
) -> None:
    with agent(tmp_path / "a") as there:
        with running(*BLAST, *command, file, "--to", to(there)) as process:
            assert stuck.reached.wait(60)
            code, errors = stopped(process, number)
        assert code == status
        assert errors.count("\n") == 1 and "run the same command to resume" in errors
        stuck.go.set()
        there.failed()
        assert [name for name in there.files() if not name.startswith(".blast-")] == []
        assert len(there.files()) == 2, "the part that came, and its records"
        again = subprocess.run(
            [*BLAST, *command, str(file), "--to", to(there), "--json"], capture_output=True, text=True, check=False
        )
        assert again.returncode == 0, again.stderr
        received = there.received()
        assert received.resumed_blocks > 0
        (transfer,) = json.loads(again.stdout.splitlines()[-1])["transfers"]
        (receiver,) = transfer["receivers"]
        assert 0 < receiver["resumed_bytes"] < SIZE
        brought = (SIZE - receiver["resumed_bytes"]) * 8
        assert transfer["payload_bits_per_second"] == round(brought / transfer["seconds"])
        assert there.files() == {file.name: file.read_bytes()}


@contextmanager
def sending_a_stream(there: Agent) -> Iterator[subprocess.Popen[str]]:
    """Yield a command that is sending a stream: 1 MiB from its standard input, which stays open."""
    command = (*BLAST, "-", "--to", to(there), "--via", "pipeline", "--as", "log", "--json")
    with running(*command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("x" * (1 << 20))
        process.stdin.flush()
        while json.loads(process.stdout.readline())["slowest"] == 0:
            continue
        yield process


def test_stopped_stream_leaves_no_file(tmp_path: Path) -> None:
    with agent(tmp_path / "a") as there:
        with sending_a_stream(there) as process:
            assert there.files()
            code, errors = stopped(process)
        assert code == INTERRUPTED and "log cannot be resumed, and the other receivers keep nothing" in errors
        there.failed()
        assert there.files() == {}


def test_stream_ended_by_interrupt_of_its_pipe_is_discarded(tmp_path: Path) -> None:
    """Ctrl-C stops the command before it in the pipe as well, so the stream ends as the signal arrives."""
    with agent(tmp_path / "a") as there:
        with sending_a_stream(there) as process:
            assert process.stdin is not None
            process.send_signal(signal.SIGSTOP)
            process.send_signal(signal.SIGINT)
            process.stdin.close()
            process.send_signal(signal.SIGCONT)
            assert process.wait(HANGING) == INTERRUPTED
        there.failed()
        assert not there.files()


def test_stopped_command_does_not_treat_part_as_complete(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go = threading.Event(), threading.Event()
    write = CommandTarget.write

    def stuck(target: CommandTarget, offset: int, *pieces: bytes) -> None:
        if offset > SIZE // 4:
            reached.set()
            go.wait(120)
        write(target, offset, *pieces)

    monkeypatch.setattr(CommandTarget, "write", stuck)
    run = ("/bin/sh", "-c", "cat > part && mv part whole")
    with agent(tmp_path / "a", commands={"keep": run}) as there:
        with running(*BLAST, file, "--to", to(there), "--via", "pipeline", "--command", "keep") as process:
            assert reached.wait(60)
            code, errors = stopped(process)
        go.set()
        assert code == INTERRUPTED and "the other receivers keep nothing" in errors
        there.failed()
        assert "whole" not in there.files()


def test_interrupt_while_connecting_ends_command(tmp_path: Path, file: Path) -> None:
    """The host accepts the connection and never answers."""
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text("0123456789abcdef" * 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        there = f"h2={Endpoint(*silent.getsockname())}"
        with running(*BLAST, file, "--to", there, "--via", "pipeline", "--secret-file", secret) as process:
            connection, _ = silent.accept()
            with connection:
                connection.recv(1)
                code, errors = stopped(process)
    assert (code, errors) == (INTERRUPTED, "blast: stopped before the transfer began\n")


def test_interrupt_while_requesting_grant_ends_command(tmp_path: Path, file: Path) -> None:
    """The controller accepts the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        controller = str(Endpoint(*silent.getsockname()))
        options = ("--controller", controller, "--optical-address", "127.0.0.1")
        with running(*BLAST, file, "--to", "h2=127.0.0.1:1", *options) as process:
            connection, _ = silent.accept()
            with connection:
                connection.recv(1)
                code, errors = stopped(process)
    assert (code, errors) == (INTERRUPTED, "blast: stopped before the transfer began\n")


@pytest.mark.parametrize("splitters", [0, 1], ids=["pending", "granted"])
@pytest.mark.parametrize("via", ["auto", "optical"])
def test_interrupt_withdraws_request(tmp_path: Path, file: Path, stuck: Stuck, via: str, splitters: int) -> None:
    """The controller grants at once, or never."""
    controller = MemoryController(splitters=splitters)
    with agent(tmp_path / "h21") as there, serving(controller) as (_, host, port):
        options = ("--via", via, "--controller", f"{host}:{port}", "--from", "h11", "--optical-address", "127.0.0.1")
        with running(*BLAST, file, "--to", to(there), *options) as process:
            if splitters or via == "auto":
                assert stuck.reached.wait(60)
            (request,) = eventually(lambda: list(controller.requests.values()), "the request")
            code, errors = stopped(process)
        assert code == INTERRUPTED and errors.startswith("blast: stopped")
        assert request.status().state == PartState.WITHDRAWN
        stuck.go.set()
        eventually(lambda: not any(path.name == file.name for path in there.directory.iterdir()), "no whole file")


def test_interrupt_during_commit_keeps_complete_file(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is being committed is complete and verified, and stays."""
    reached, go = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        reached.set()
        go.wait(120)
        fsync(descriptor)

    monkeypatch.setattr("blast_transport.store.targets.file_target.os.fsync", slow)
    with agent(tmp_path / "a") as there:
        with running(*BLAST, file, "--to", to(there), "--via", "pipeline") as process:
            assert reached.wait(60)
            code, errors = stopped(process)
        assert code == INTERRUPTED and "run the same command to resume" in errors
        go.set()
        whole = there.directory / file.name
        eventually(whole.exists, "the file in its place")
        assert whole.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("transport", ["optical", "pipeline"])
def test_interrupted_standalone_sender_leaves_resumable_files(
    tmp_path: Path, file: Path, stuck: Stuck, transport: str
) -> None:
    by = light()
    options = ["--transport", transport, "--group", by.group, "--port", by.port, "--rate-mbps", "400"]
    with agent(tmp_path / "a") as there:
        command = (*TRANSPORT, file, "--to", to(there), *map(str, options), "--interface-address", "127.0.0.1")
        with running(*command) as process:
            assert stuck.reached.wait(60)
            code, errors = stopped(process)
        assert (
            code == INTERRUPTED
            and errors == "blast_transport: stopped; the same command goes on from here, within a day\n"
        )
        stuck.go.set()
        there.failed()
        assert all(name.startswith(".blast-") for name in there.files())


def test_standalone_receiver_exits_cleanly_on_signal(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "blast_transport", "receive", "--listen", "127.0.0.1:0", "--directory", tmp_path)
    for number in (signal.SIGINT, signal.SIGTERM):
        with running(*command) as process:
            assert process.stdout is not None and json.loads(process.stdout.readline())["event"] == "listening"
            assert stopped(process, number) == (0, "")


def test_unnamed_streams_get_unique_names(tmp_path: Path) -> None:
    with agent(tmp_path / "a") as there:
        for text in ("first", "second"):
            done = subprocess.run(
                [*BLAST, "-", "--to", to(there), "--via", "unicast"],
                input=text,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            (name,) = [name for name, data in there.files().items() if data == text.encode()]
            assert name.startswith("stdin-") and name in done.stderr, "it prints the name"
        assert sorted(there.files().values()) == [b"first", b"second"]


def test_send_and_agent_report_file_that_is_not_durable(tmp_path: Path, file: Path) -> None:
    config, folder = tmp_path / "agent.toml", tmp_path / "in"
    folder.mkdir()
    config.write_text(f'[agent]\nlisten = "127.0.0.1:0"\ndurable = false\n[[folder]]\nname = "in"\npath = "{folder}"\n')
    with running(BLAST[0], "agent", "run", "--config", config, "--json") as process:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        command = [*BLAST, str(file), "--to", f"h2=127.0.0.1:{port}", "--via", "pipeline"]
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout.splitlines()[-1])["transfers"][0]["receivers"][0]["durable"] is False
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "h2 has it, but not on disk yet" in done.stderr
        assert json.loads(process.stdout.readline())["durable"] is False


@contextmanager
def agent_process(folder: Path, more: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `blast agent run`; yield the process and its address."""
    (folder / "in").mkdir()
    config = folder / "agent.toml"
    config.write_text(
        f'folder = [{{ name = "in", path = "{folder / "in"}" }}]\n'
        f'agent = {{ listen = "127.0.0.1:0", stop_timeout_ms = 60_000 }}\n{more}'
    )
    with running(BLAST[0], "agent", "run", "--config", config, "--json") as process:
        assert process.stdout is not None
        yield process, f"h2=127.0.0.1:{json.loads(process.stdout.readline())['port']}"


def test_stopped_agent_discards_partial_stream(tmp_path: Path) -> None:
    """It is receiving an unfinished stream, which cannot be resumed, so it keeps nothing."""
    folder = tmp_path / "in"
    with agent_process(tmp_path) as (process, there):
        command = (*BLAST, "-", "--to", there, "--via", "unicast", "--as", "log", "--json")
        with running(*command, stdin=subprocess.PIPE) as sender:
            assert sender.stdin is not None
            sender.stdin.write("x" * (1 << 20))
            sender.stdin.flush()
            eventually(lambda: [path for path in folder.iterdir() if path.stat().st_size], "some of it")
            assert stopped(process, signal.SIGTERM)[0] == 0
            assert list(folder.iterdir()) == []
            sender.stdin.close()
            assert sender.wait(60) == 1, "its sender reports that no receiver has it"


def test_second_signal_ends_agent_and_its_command_at_once(tmp_path: Path) -> None:
    """The command does not end when it is asked to."""
    run = f"trap '' TERM; echo $$ > {tmp_path / 'pid'}; cat > /dev/null && touch {tmp_path / 'whole'}"
    more = f'command = [{{ name = "keep", run = ["/bin/sh", "-c", "{run}"] }}]\n'
    with agent_process(tmp_path, more) as (process, there):
        command = (*BLAST, "-", "--to", there, "--via", "unicast", "--command", "keep")
        with running(*command, stdin=subprocess.PIPE):
            eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the command")
            pid = int((tmp_path / "pid").read_text())
            process.send_signal(signal.SIGINT)
            eventually(lambda: not is_reached(there), "an agent that has received the first signal")
            assert stopped(process)[0] == INTERRUPTED
            eventually(lambda: is_over(pid), "the end of the command")
    assert not (tmp_path / "whole").exists()


def is_reached(there: str) -> bool:
    _, _, port = there.rpartition(":")
    try:
        socket.create_connection(("127.0.0.1", int(port)), 10).close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: it closed its listener before it accepted us
        return False
    return True


def is_over(pid: int) -> bool:
    """Return whether the process has ended, also if it is still a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True

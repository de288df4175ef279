"""`blast sender`: another program requests sends by JSON lines; an invalid line is rejected, and ends nothing."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import blast_client
from blast_client.send.sender_job import MAX_SENDS
from tests.support.controller.memory_controller import MemoryController, serving
from tests.support.transport.transport_hosts import LOOPBACK, Agent, agent
from tests.support.waiting import eventually

HOSTS = ("h21", "h31")
CODE = "import sys; from blast_client.cli.command import main; sys.exit(main())"


class Asking:
    """The other program."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE, "sender", "--optical-address", LOOPBACK, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.spool = Path(self.next()["spool"])

    def ask(self, **line: Any) -> None:
        self.write(json.dumps(line))

    def write(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def next(self) -> dict[str, Any]:
        """Return the next event that is not `progress`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event: dict[str, Any] = json.loads(line)
            if event["event"] != "progress":
                return event
        raise AssertionError("it ended")

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None
        return self.process.wait(60)

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        with self.process:
            pass


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[list[Agent]]:
    with ExitStack() as stack:
        yield [stack.enter_context(agent(tmp_path / name)) for name in HOSTS]


@pytest.fixture
def controller() -> Iterator[str]:
    with serving(MemoryController()) as (_, host, port):
        yield f"{host}:{port}"


@pytest.fixture
def to(agents: list[Agent]) -> list[str]:
    return [f"{name}={address}:{port}" for name, address, port in (one.address for one in agents)]


def test_concurrent_optical_sends_leave_empty_spool(agents: list[Agent], controller: str, to: list[str]) -> None:
    with Asking("--controller", controller, "--from", "h11", "--via", "optical") as sender:
        for name in ("a", "b"):
            (sender.spool / name).write_bytes(name.encode() * 300_000)
            sender.ask(send=name, file=str(sender.spool / name), name=f"{name}.bytes", folder="", to=to)
        ends = {end["send"]: end for end in (sender.next(), sender.next())}
        assert {end["event"] for end in ends.values()} == {"end"}
        assert all(end["delivered"] == sorted(HOSTS) and end["bytes"] == 300_000 for end in ends.values())
        assert [end["transports"] for end in ends.values()] == [["optical"]] * 2
        assert list(sender.spool.iterdir()) == []
        for one in agents:
            assert (one.directory / "b.bytes").read_bytes() == b"b" * 300_000
        assert sender.end() == 0
        assert not sender.spool.exists()


def test_sender_keeps_file_outside_its_spool(tmp_path: Path, agents: list[Agent], to: list[str]) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"x")
    with Asking("--controller", "", "--via", "pipeline") as sender:
        sender.ask(send="1", file=str(mine), name="mine", folder="", to=to)
        assert sender.next()["transports"] == ["pipeline"]
    assert mine.exists()


def test_sender_rejects_invalid_lines_and_serves_the_next(agents: list[Agent], to: list[str], tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"x")
    good = {"send": "good", "file": str(mine), "name": "mine", "folder": "", "to": to}
    with Asking("--controller", "", "--via", "pipeline") as sender:
        for text in ("{", "[]", "[" * 50_000, "17", '{"send": 1}'):
            sender.write(text)
            assert sender.next() | {"reason": ""} == {"event": "refused", "send": None, "reason": ""}
        for change in (
            {"to": "h2"},
            {"to": []},
            {"file": str(tmp_path / "nothing")},
            {"name": "../out"},
            {"file": None},
            {"file": "no\0path"},
            {"name": "no\0name"},
        ):
            sender.ask(**(good | change))
            event = sender.next()
            assert (event["event"], event["send"]) == ("refused", "good") and event["reason"]
        sender.ask(stop="unknown")
        sender.ask(**good)
        assert sender.next()["event"] == "end"


def test_stopped_send_ends_its_request_and_removes_spool_file(
    controller: str, agents: list[Agent], to: list[str]
) -> None:
    with Asking("--controller", controller, "--from", "h11") as sender, blast_client.Client(controller) as client:
        big = sender.spool / "big"
        with big.open("wb") as file:
            file.truncate(400_000_000)
        sender.ask(send="big", file=str(big), name="big", folder="", to=to)
        eventually(lambda: list(client.list_requests()))
        sender.ask(stop="big")
        event = sender.next()
        assert (event["event"], event["reason"]) == ("refused", "stopped")
        assert not big.exists()
        with big.open("wb") as file:
            file.truncate(400_000_000)
        sender.ask(send="again", file=str(big), name="big", folder="", to=to)
        eventually(lambda: len(list(client.list_requests())) == 2)
        assert sender.end() == 0
        final = {blast_client.PartState.WITHDRAWN, blast_client.PartState.DONE, blast_client.PartState.FAILED}
        assert {request.state for request in client.list_requests()} <= final
        assert not sender.spool.exists()


def test_sender_limits_concurrent_sends(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    with socket.create_server((LOOPBACK, 0)) as mute, Asking("--controller", "", "--via", "pipeline") as sender:
        to = [f"mute={LOOPBACK}:{mute.getsockname()[1]}"]
        for number in range(MAX_SENDS):
            sender.ask(send=str(number), file=str(tmp_path / "x"), name="x", folder="", to=to)
        (sender.spool / "x").write_bytes(b"x")
        sender.ask(send="one more", file=str(sender.spool / "x"), name="x", folder="", to=to)
        event = sender.next()
        assert (event["event"], event["send"]) == ("refused", "one more")
        assert not (sender.spool / "x").exists()


def test_sender_removes_spools_of_killed_senders_only() -> None:
    with Asking("--controller", "") as killed:
        (killed.spool / "data").write_bytes(b"x")
        killed.process.kill()
        killed.process.wait()
        assert killed.spool.exists()
        with Asking("--controller", "") as first, Asking("--controller", ""):
            assert not killed.spool.exists()
            assert first.spool.exists()


def test_sender_rejects_input_that_is_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("{}")
    with (tmp_path / "lines").open() as file:
        command = [sys.executable, "-c", CODE, "sender"]
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "must be a pipe" in done.stderr

"""Receivers behind rack leaders, over loopback: what a leader or a member that is lost costs the others. No root."""

from __future__ import annotations

import json
import os
import queue
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from blast_transport.base.report import Failed, Listening, Progress, Received, ReceiverEvent, TransferResult
from blast_transport.carriers.choices import CarrierChoice, Chain, Light, Tree, Trees, Unicast
from blast_transport.links.dialling import SOURCE
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.standalone.receiver import Receiver, ReceiverSettings
from blast_transport.store.source import StreamSource
from tests.support.waiting import HANGING

LOOPBACK = "127.0.0.1"
SIZE = 4 << 20
RECEIVERS, RACKS = 12, 3
NAMES = [f"h{number}" for number in range(RECEIVERS)]
RACK_OF = {name: f"rack{number % RACKS}" for number, name in enumerate(NAMES)}
LEADERS = NAMES[:RACKS]
SETTINGS = SenderSettings(LOOPBACK, 9000, SenderTimings(ready=5.0, stall=5.0), racks=RACK_OF, most_direct=2)


@dataclass
class Host:
    """A receiver in this process (`events` says what became of its sessions), or in one of its own."""

    name: str
    directory: Path
    address: tuple[str, int] = ("", 0)
    events: queue.Queue[ReceiverEvent] = field(default_factory=queue.Queue)
    process: subprocess.Popen[str] | None = None

    def outcomes(self) -> list[ReceiverEvent]:
        found: list[ReceiverEvent] = []
        while not self.events.empty():
            event = self.events.get()
            if not isinstance(event, Listening):
                found.append(event)
        return found


@contextmanager
def here(host: Host) -> Iterator[Host]:
    receiver = Receiver(ReceiverSettings((LOOPBACK, 0), host.directory, LOOPBACK), host.events.put)
    host.address = receiver.address
    thread = threading.Thread(target=receiver.run)
    thread.start()
    try:
        yield host
    finally:
        receiver.stop()
        thread.join(30)
        assert not thread.is_alive()


@contextmanager
def apart(host: Host) -> Iterator[Host]:
    command = [sys.executable, "-m", "blast_transport", "receive", "--listen", f"{LOOPBACK}:0"]
    command += ["--interface-address", LOOPBACK, "--directory", str(host.directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            host.address, host.process = (LOOPBACK, json.loads(process.stdout.readline())["port"]), process
            yield host
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


@contextmanager
def hosts(tmp_path: Path, processes: tuple[str, ...] = ()) -> Iterator[dict[str, Host]]:
    with ExitStack() as stack:
        made = {name: Host(name, tmp_path / name) for name in NAMES}
        for name, host in made.items():
            host.directory.mkdir()
            stack.enter_context(apart(host) if name in processes else here(host))
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(random.Random(1).randbytes(SIZE))
    return path


def light(rate: float) -> Light:
    group = f"239.78.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
    return Light(group, 20000 + secrets.randbelow(10000), rate)


def trees() -> Trees:
    """A chain there, and one back again."""
    ways = ([SOURCE, *NAMES], [SOURCE, *reversed(NAMES)])
    return Trees(tuple(Tree(200e6, dict(zip(way[1:], way, strict=False))) for way in ways))


def sender_to(made: dict[str, Host], settings: SenderSettings = SETTINGS) -> Sender:
    return Sender([(name, *host.address) for name, host in made.items()], settings)


def complete(result: TransferResult) -> list[str]:
    return [outcome.name for outcome in result.receivers if outcome.complete]


def test_every_way_goes_through_leaders_and_their_connections_serve_again(tmp_path: Path, file: Path) -> None:
    with hosts(tmp_path) as made, sender_to(made) as sender:
        assert sender.connect() == {}
        assert sender.connections == RACKS
        ways: list[CarrierChoice] = [light(200e6), Unicast(), Chain(), trees(), light(200e6)]
        for number, way in enumerate(ways):
            result = sender.send_file(file, Route(way), Destination(f"copy{number}"))
            assert complete(result) == NAMES
        # On a busy machine one of them may have been silent for too long.
        assert RACKS <= sender.connections < RECEIVERS
        for host in made.values():
            for number in range(len(ways)):
                assert (host.directory / f"copy{number}").read_bytes() == file.read_bytes()
            assert all(isinstance(event, Received) for event in host.outcomes())


def test_a_sealed_session_keeps_its_key_to_itself_and_its_members(tmp_path: Path, file: Path) -> None:
    with hosts(tmp_path) as made, sender_to(made, replace(SETTINGS, sealed=True)) as sender:
        assert complete(sender.send_file(file, Route(light(200e6)))) == NAMES


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("way", ["light", "chain", "trees"])
def test_a_leader_and_a_member_that_are_hit_in_mid_transfer_cost_the_others_nothing(
    tmp_path: Path, file: Path, blow: signal.Signals, way: str
) -> None:
    lost = (LEADERS[0], NAMES[4])
    with hosts(tmp_path, lost) as made, sender_to(made) as sender:
        assert sender.connect() == {}
        under_way = list(lost)

        def hit(progress: Progress) -> None:
            """In the middle, whenever that is on a busy machine."""
            while progress.sent and under_way:
                made[under_way.pop()].process.send_signal(blow)  # type: ignore[union-attr]

        began = time.monotonic()
        if way == "light":
            result = sender.send_file(file, Route(light(40e6)), report=hit)
        else:
            result = send_slowly(sender, file, Route(Chain() if way == "chain" else trees()), hit)
        assert not under_way
        assert time.monotonic() - began < HANGING
        survivors = [name for name in NAMES if name not in lost]
        assert complete(result) == survivors
        for name in survivors:
            assert (made[name].directory / "data").read_bytes() == file.read_bytes()
            (event,) = made[name].outcomes()
            assert isinstance(event, Received) and event.resumed_blocks == 0, "its session has gone on"
        for name in lost:
            assert not (made[name].directory / "data").exists()


def send_slowly(sender: Sender, file: Path, route: Route, report: Callable[[Progress], None]) -> TransferResult:
    """As a stream of unknown length, over about a second, so that there is a middle to be hit in."""
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb") as pipe:
            data = file.read_bytes()
            for start in range(0, len(data), 1 << 17):
                pipe.write(data[start : start + (1 << 17)])
                time.sleep(0.03)  # a slow producer

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with os.fdopen(reader, "rb"), StreamSource(reader) as source:
            return sender.transmit(source, route, Destination("data"), report)
    finally:
        thread.join(30)


def test_a_leader_that_freezes_when_it_has_connected_costs_its_members_nothing(tmp_path: Path, file: Path) -> None:
    """Their invitations stay with it."""
    settings = replace(SETTINGS, timings=SenderTimings())
    with hosts(tmp_path, (LEADERS[0],)) as made, sender_to(made, settings) as sender:
        assert sender.connect() == {}
        process = made[LEADERS[0]].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        result = sender.send_file(file, Route(light(200e6)))
        assert complete(result) == [name for name in NAMES if name != LEADERS[0]]


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_leaders_that_are_not_there_cost_their_members_a_moment(
    tmp_path: Path, file: Path, blow: signal.Signals
) -> None:
    with hosts(tmp_path, tuple(LEADERS)) as made, sender_to(made) as sender:
        for name in LEADERS:
            process = made[name].process
            assert process is not None
            process.send_signal(blow)
            if blow == signal.SIGKILL:
                process.wait()
        # The kernel of a process that is stopped still takes connections.
        assert set(sender.connect()) == (set(LEADERS) if blow == signal.SIGKILL else set())
        result = sender.send_file(file, Route(light(200e6)))
        assert complete(result) == [name for name in NAMES if name not in LEADERS]


def test_a_refusal_is_the_receivers_own_word(tmp_path: Path, file: Path) -> None:
    with hosts(tmp_path) as made, sender_to(made) as sender:
        made["h7"].directory.rmdir()
        result = sender.send_file(file, Route(light(200e6)))
        assert complete(result) == [name for name in NAMES if name != "h7"]
        (reason,) = [outcome.reason for outcome in result.receivers if outcome.name == "h7"]
        assert "No such file" in reason


class Vanished(BaseException):
    """The sender is gone."""


def test_a_sender_that_vanishes_is_awaited_for_a_moment_and_nothing_stays_behind(tmp_path: Path, file: Path) -> None:
    def vanish(progress: Progress) -> None:
        if progress.slowest:
            raise Vanished

    with hosts(tmp_path) as made:
        with sender_to(made) as sender, pytest.raises(Vanished):
            sender.send_file(file, Route(light(20e6)), report=vanish)
        for host in made.values():
            assert isinstance(host.events.get(timeout=30), Listening)
            event = host.events.get(timeout=30)
            assert isinstance(event, Failed) and event.reason.startswith("control connection")
            assert not (host.directory / "data").exists()

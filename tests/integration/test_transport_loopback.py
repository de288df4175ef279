"""Sender and receivers with real sockets on the loopback interface, by every carrier; no root needed."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from blast_transport.agent.connection import dialer
from blast_transport.agent.credentials import SharedSecret
from blast_transport.errors import SourceChangedError, WrongInputError
from blast_transport.optical.interface import open_group_socket, open_sender_socket
from blast_transport.report import TransferResult
from blast_transport.session.links import dial
from blast_transport.session.receiver_core import ReceiverTimings
from blast_transport.session.route import Chain, Packets, Route, Way
from blast_transport.session.sender import Sender
from blast_transport.session.sender_core import SenderTimings
from blast_transport.session.settings import SenderSettings
from blast_transport.wire.codec import Decoder, encode
from blast_transport.wire.messages import EndOfData, Fin, Hello, Leg, Message, Nack, OnLeg, Quit, Ready, Repair
from tests.support.transport_hosts import (
    LOOPBACK,
    MTU,
    PATIENCE,
    FaultyLight,
    agent,
    agents,
    datagram,
    light,
    receiver_process,
    sender_to,
)

SIZE = 6 << 20
SEGMENT, BLOCK = 1456, 64_064


@pytest.fixture(scope="module")
def content() -> bytes:
    return random.Random(77).randbytes(SIZE)


@pytest.fixture
def file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "content.bin"
    path.write_bytes(content)
    return path


def ways() -> list[Way]:
    return [light(), Chain(), Packets()]


@pytest.mark.parametrize("number", [1, 5])
def test_every_way_over_the_same_connections(tmp_path: Path, file: Path, content: bytes, number: int) -> None:
    with agents(tmp_path, number) as there, sender_to(there) as sender:
        assert sender.connect() == {}
        peers = set()
        for way in [*ways(), *ways()]:
            result = sender.send_file(file, Route(way))
            assert [outcome.reason for outcome in result.receivers] == [""] * number
            assert (result.complete, result.bytes, result.repaired_bytes) == (number, SIZE, 0)
            for one in there:
                event = one.received()
                assert (event.digest, event.bytes, event.refused) == (result.digest, SIZE, 0)
                peers.add(event.sender)
                assert one.files() == {file.name: content}
        assert len(peers) == number
        assert result.carriers == ("packets",)


@pytest.mark.parametrize("size", [0, 1, SEGMENT, SEGMENT + 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_sizes_at_the_borders_of_segments_and_blocks(tmp_path: Path, content: bytes, size: int) -> None:
    path = tmp_path / "small"
    path.write_bytes(content[:size])
    with agents(tmp_path, 2) as there, sender_to(there) as sender:
        for way in ways():
            result = sender.send_file(path, Route(way))
            assert [outcome.reason for outcome in result.receivers] == ["", ""]
            if way == Chain():
                continue
            assert result.datagrams in (0, -(-size // BLOCK) and -(-(size % BLOCK) // SEGMENT) + size // BLOCK * 44)
            assert all(one.files() == {"small": content[:size]} for one in there)


@pytest.mark.parametrize("mtu", [576, 1500, 9000, None])
def test_any_mtu(tmp_path: Path, file: Path, content: bytes, mtu: int | None) -> None:
    with agents(tmp_path, 2) as there, sender_to(there, SenderSettings(LOOPBACK, mtu)) as sender:
        for way in (light(), Packets()):
            assert sender.send_file(file, Route(way)).complete == 2
            assert all(one.files() == {file.name: content} for one in there)


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("suite", ["xxh3", "sha256"])
def test_loss_doubling_and_change_are_repaired(
    tmp_path: Path, file: Path, content: bytes, sealed: bool, suite: str
) -> None:
    faulty = [FaultyLight(0, 0.05, 0, 1), FaultyLight(0.01, 0.05, 0, 2), FaultyLight(0.1, 0.05, 0.002, 3)]
    settings = SenderSettings(LOOPBACK, MTU, sealed=sealed, suite=suite)
    with (
        agent(tmp_path / "a", faulty[0]) as first,
        agent(tmp_path / "b", faulty[1]) as second,
        agent(tmp_path / "c", faulty[2]) as third,
        sender_to([first, second, third], settings) as sender,
    ):
        result = sender.send_file(file, Route(light()))
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        for one, faults, outcome in zip((first, second, third), faulty, result.receivers, strict=True):
            event = one.received()
            assert one.files() == {file.name: content}
            assert event.duplicates > 0
            assert (outcome.repaired_bytes, outcome.first_datagram) == (event.repaired_bytes, event.first_datagram)
            assert event.repaired_bytes == 0 if not faults.lost else event.repaired_bytes > 0
            assert (event.refused > 0) == (faults.altered > 0)
        assert result.shared_repairs > 0


def test_no_light_at_all_still_delivers(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "dark"
    path.write_bytes(content[: 2 << 20])
    with agent(tmp_path / "a", FaultyLight(1.0)) as dark, sender_to([dark]) as sender:
        result = sender.send_file(path, Route(light()))
        assert (result.complete, result.repaired_bytes) == (1, 2 << 20)
        assert result.receivers[0].first_datagram is None
        assert dark.files() == {"dark": content[: 2 << 20]}


def test_several_senders_at_the_same_time_do_not_mix(tmp_path: Path, content: bytes) -> None:
    way = light(200e6)
    results: dict[str, TransferResult] = {}
    with agent(tmp_path / "r") as there:

        def send(name: str, way: Way) -> None:
            path = tmp_path / name
            path.write_bytes(name.encode() + content)
            with sender_to([there]) as sender:
                results[name] = sender.send_file(path, Route(way))

        # Two of them share group and port.
        plan = {"a": way, "b": way, "c": light(200e6), "d": Packets(), "e": Chain()}
        threads = [threading.Thread(target=send, args=one) for one in plan.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert {name: result.receivers[0].reason for name, result in results.items()} == dict.fromkeys(plan, "")
        assert there.files() == {name: name.encode() + content for name in plan}


def test_garbage_and_replayed_datagrams_are_counted_and_change_nothing(
    tmp_path: Path, file: Path, content: bytes
) -> None:
    way, stop, heard = light(100e6), threading.Event(), list[bytes]()

    def disturb() -> None:
        chance = random.Random(5)
        with (
            open_group_socket(LOOPBACK, way.group, way.port) as ear,
            open_sender_socket(LOOPBACK, way.group, way.port) as mouth,
        ):
            while not stop.wait(0.0005):
                try:
                    heard.append(ear.recv(65536))
                except BlockingIOError:
                    continue
                session = int.from_bytes(heard[-1][:4], "little")
                mouth.send(chance.choice(heard[-50:]))
                mouth.send(chance.randbytes(chance.randrange(200)))
                mouth.send(b"")
                mouth.send(datagram(session ^ 1, 0, bytes(SEGMENT)))
                mouth.send(datagram(session, 3, bytes(SEGMENT), flags=1))
                mouth.send(datagram(session, chance.randrange(1 << 63), bytes(SEGMENT)))
                mouth.send(datagram(session, chance.randrange(SIZE // SEGMENT), chance.randbytes(SEGMENT)))

    with agent(tmp_path / "r") as there, sender_to([there]) as sender:
        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            result = sender.send_file(file, Route(way))
        finally:
            stop.set()
            thread.join(PATIENCE)
        assert len(heard) > 50
        assert result.complete == 1
        event = there.received()
        assert event.duplicates > 0 and event.refused > 100
        assert result.receivers[0].refused == event.refused
        assert there.files() == {file.name: content}


# -------------------------------------------------------------------------------------------- who may say what


def talk(address: tuple[str, str, int], hello: Hello) -> tuple[socket.socket, Message]:
    """Invite a receiver by hand; its answer."""
    control = socket.create_connection(address[1:], PATIENCE)
    control.sendall(encode(hello))
    return control, hear(control)


def hear(control: socket.socket) -> Message:
    decoder = Decoder()
    while True:
        for message in decoder.feed(control.recv(1)):
            return message


def hello(**more: object) -> Hello:
    fields = {"session": 5, "size": 1000, "segment_size": 100, "block_segments": 4, "suite": "xxh3"}
    return Hello(**{**fields, "kind": "file", "name": "half", **more})  # type: ignore[arg-type]


def test_two_senders_with_one_session_id(tmp_path: Path) -> None:
    with agent(tmp_path / "r") as there:
        control, ready = talk(there.address, hello())
        assert isinstance(ready, Ready)
        other, answer = talk(there.address, hello(name="other"))
        assert isinstance(answer, Quit) and "another sender" in answer.reason
        other.close()
        control.close()
        assert there.failed().name == "half"
        assert there.server.refusals.totals.total() == 1


def test_a_sender_that_vanishes_leaves_nothing_behind_but_what_can_be_gone_on_with(tmp_path: Path) -> None:
    with agent(tmp_path / "r") as there:
        for content, left in (("", []), ("c0ffee", [".blast", ".blast"])):
            control, ready = talk(there.address, hello(content=content))
            assert isinstance(ready, Ready)
            assert len(there.files()) == 2
            control.close()
            assert "closed" in there.failed().reason
            assert [name[:6] for name in there.files()] == left


def test_a_silent_sender_is_given_up(tmp_path: Path) -> None:
    with agent(tmp_path / "r", timings=ReceiverTimings(silence=0.2)) as there:
        control, _ = talk(there.address, hello())
        assert "nothing heard" in there.failed().reason
        control.close()
        assert there.files() == {}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"name": "../escape"}, "names no file"),
        ({"name": "/abs"}, "absolute path"),
        ({"name": ".."}, "names no file"),
        ({"suite": "md5"}, "cannot be computed"),
        ({"size": 1 << 37, "segment_size": 1456, "block_segments": 44}, "do not fit"),
        ({"kind": "command"}, ""),
        ({"kind": "memory", "size": 1 << 35}, "keeps in memory"),
    ],
)
def test_what_cannot_be_received_is_refused_before_any_data(tmp_path: Path, more: dict[str, object], why: str) -> None:
    with agent(tmp_path / "r") as there:
        control, answer = talk(there.address, hello(**more))
        control.close()
        assert isinstance(answer, Quit) and why in answer.reason, answer
        assert there.files() == {}
        assert [entry.name for entry in tmp_path.iterdir()] == ["r"]


def test_control_garbage_does_not_disturb_a_running_transfer(tmp_path: Path, file: Path, content: bytes) -> None:
    chance = random.Random(9)
    with agent(tmp_path / "r") as there, sender_to([there]) as sender:

        def disturb() -> None:
            for _ in range(50):
                with socket.create_connection(there.address[1:]) as control:
                    control.sendall(chance.randbytes(chance.randrange(1, 300)))

        thread = threading.Thread(target=disturb)
        thread.start()
        result = sender.send_file(file, Route(light()))
        thread.join(PATIENCE)
        assert result.complete == 1
        assert there.files() == {file.name: content}


def test_a_receiver_that_cannot_write_is_its_own_reason(tmp_path: Path, file: Path) -> None:
    with agents(tmp_path, 2) as (fine, gone), sender_to([fine, gone]) as sender:
        gone.directory.rmdir()
        result = sender.send_file(file, Route(light()))
        assert [outcome.complete for outcome in result.receivers] == [True, False]
        assert result.receivers[1].reason


def test_a_highest_rate_is_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content[: 2 << 20])
    with (
        agent(tmp_path / "a") as fast,
        agent(tmp_path / "b", highest_rate=60e6) as slower,
        sender_to([fast, slower]) as sender,
    ):
        began = time.monotonic()
        result = sender.send_file(path, Route(light(100e6)))
        assert result.complete == 2 and not any(outcome.demoted for outcome in result.receivers)
        assert time.monotonic() - began > (2 << 20) * 8 / 60e6
        result = sender.send_file(path, Route(light(800e6)))
        assert result.complete == 2 and result.receivers[1].demoted


# ------------------------------------------------------------------------------------------------ errors of ours


def test_a_file_that_shrinks_is_our_typed_error(tmp_path: Path, file: Path) -> None:
    with agent(tmp_path / "r") as there, sender_to([there]) as sender:
        timer = threading.Timer(0.2, os.truncate, [file, 1000])
        timer.start()
        with pytest.raises(SourceChangedError):
            sender.send_file(file, Route(light(50e6)))
        timer.join()
        there.failed()
        assert file.name not in there.files()
        file.write_bytes(b"short")
        assert sender.send_file(file, Route(light())).complete == 1


def test_an_unpaced_sender_cannot_be_had(tmp_path: Path, file: Path) -> None:
    with agent(tmp_path / "r") as there, sender_to([there]) as sender:
        for rate in (0.0, -1.0, float("nan"), float("inf")):
            with pytest.raises(WrongInputError, match="rate"):
                sender.send_file(file, Route(light(rate)))


def test_light_without_an_interface_is_wrong_input(tmp_path: Path, file: Path) -> None:
    with agent(tmp_path / "r") as there, sender_to([there], SenderSettings()) as sender:
        with pytest.raises(WrongInputError, match="interface"):
            sender.send_file(file, Route(light()))
        assert sender.send_file(file, Route(Chain())).complete == 1


@pytest.mark.parametrize("sealed", [False, True])
def test_a_shared_secret_protects_every_way(tmp_path: Path, file: Path, content: bytes, sealed: bool) -> None:
    secret, other = SharedSecret(b"s" * 32), SharedSecret(b"t" * 32)
    with agents(tmp_path, 2, credentials=secret) as there:
        settings = SenderSettings(LOOPBACK, MTU, sealed=sealed, dialer=dialer(secret), credentials=secret)
        with sender_to(there, settings) as sender:
            for way in ways():
                result = sender.send_file(file, Route(way))
                assert [outcome.reason for outcome in result.receivers] == ["", ""]
                assert all(one.files() == {file.name: content} for one in there)
        timings = SenderTimings(connect=0.2)
        for wrong in (dial, dialer(other)):
            with sender_to(there, SenderSettings(LOOPBACK, MTU, timings, dialer=wrong)) as sender:
                result = sender.send_file(file, Route(light()))
                assert result.complete == 0 and all(outcome.reason for outcome in result.receivers)


# ------------------------------------------------------------------------------------------------- the commands


def test_the_commands_end_to_end(tmp_path: Path, file: Path, content: bytes) -> None:
    with receiver_process(tmp_path / "a") as first, receiver_process(tmp_path / "b") as second:
        to = ",".join(f"{one.name}={LOOPBACK}:{one.port}" for one in (first, second))
        command = [sys.executable, "-m", "blast_transport", "send", str(file), "--to", to]
        way = light()
        by_light = ["--interface-address", LOOPBACK, "--group", way.group, "--port", str(way.port)]
        by_light += ["--rate-mbps", "400", "--mtu", "1500"]
        done = subprocess.run([*command, *by_light, "--repeat", "2", "--progress"], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        results = [line for line in lines if line.get("event") != "progress"]
        assert len(results) == 2 < len(lines)
        assert all(sum(one["complete"] for one in result["receivers"]) == 2 for result in results)
        for one in (first, second):
            assert (one.directory / file.name).read_bytes() == content
            event = one.said()
            assert (event["event"], event["bytes"], event["digest"]) == ("received", SIZE, results[0]["digest"])
        second.process.kill()
        second.process.wait()
        for carrier in ("pipeline", "packets"):
            some = subprocess.run([*command, "--carrier", carrier], capture_output=True, check=False)
            assert some.returncode == 3
        first.process.terminate()
        assert first.process.wait(PATIENCE) == 0
        none = subprocess.run([*command, "--carrier", "packets"], capture_output=True, check=False)
        assert none.returncode == 1


@pytest.mark.parametrize("used", [True, False])
def test_a_connection_with_repairs_that_nobody_read_serves_no_further_transfer(
    tmp_path: Path, file: Path, used: bool
) -> None:
    """A receiver by hand, which asks for a segment at the end, and may say that it had no use for it."""
    left_open: list[bool] = []

    def receive(listening: socket.socket) -> None:
        control, _ = listening.accept()
        with control:
            session, digest, done = 0, b"", False
            while not done:
                match hear(control):
                    case Hello() as hello:
                        session = hello.session
                        control.sendall(encode(Ready(session)))
                    case Leg(number=number):
                        control.sendall(encode(OnLeg(session, number)))
                    case EndOfData() as end:
                        digest = end.digest
                        control.sendall(encode(Nack(session, ((0, 1),))))
                    case Repair(data=data):
                        control.sendall(encode(Fin(session, digest, repaired=len(data) if used else 0)))
                        done = True
            control.settimeout(0.5)
            try:
                left_open.append(control.recv(1) != b"")
            except TimeoutError:
                left_open.append(True)

    file.write_bytes(bytes(50_000))
    with socket.create_server((LOOPBACK, 0)) as listening:
        thread = threading.Thread(target=receive, args=(listening,))
        thread.start()
        with Sender([("r", *listening.getsockname())], SenderSettings(LOOPBACK, MTU)) as sender:
            assert sender.send_file(file, Route(light())).complete == 1
            thread.join(PATIENCE)
    assert left_open == [used]

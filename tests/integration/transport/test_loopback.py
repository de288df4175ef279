"""Sender and receivers with real sockets on the loopback interface, by every transport; no root needed."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from blast_transport.base.engines import COMPILED
from blast_transport.base.errors import WrongInputError
from blast_transport.base.report import TransferResult
from blast_transport.datagrams.interface import open_group_socket, open_sender_socket
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from blast_transport.store.sources.compiled_reader import CompiledReader
from blast_transport.transports.choices import Chain, TransportChoice, Unicast
from tests.support.transport.transport_hosts import (
    LOOPBACK,
    MTU,
    TIMEOUT,
    FaultyLight,
    agent,
    agents,
    datagram,
    light,
    receiver_process,
    sender_to,
)


def deceived(interface_address: str, group: str, port: int, source: str | None = None) -> socket.socket:
    """Open a group socket on which all datagrams seem to come from the sender, as with a forged address and port."""
    return _DeceivedSocket(fileno=open_group_socket(interface_address, group, port, source).detach())


class _DeceivedSocket(socket.socket):
    source: object = None

    def connect(self, address: object) -> None:  # type: ignore[override]
        self.source = address

    def recvmsg_into(self, buffers: Sequence[memoryview], *_: int) -> tuple[int, list[object], int, object]:  # type: ignore[override]
        length, _ancillary, flags, _source = super().recvmsg_into(buffers)
        return length, [], flags, self.source


SIZE = 2 << 20
SEGMENT = 1456


def choices() -> list[TransportChoice]:
    return [light(), Chain(), Unicast()]


def test_every_transport_reuses_the_same_connections(tmp_path: Path, file: Path, content: bytes) -> None:
    with agents(tmp_path, 5) as there, sender_to(there) as sender:
        assert sender.connect() == {}
        peers = set()
        for way in [*choices(), *choices()]:
            result = sender.send_file(file, Route(way))
            assert [outcome.reason for outcome in result.receivers] == [""] * 5
            assert (result.complete, result.bytes, result.repaired_bytes) == (5, SIZE, 0)
            for one in there:
                event = one.received()
                assert (event.digest, event.bytes, event.refused) == (result.digest, SIZE, 0)
                peers.add(event.sender)
                assert one.files() == {file.name: content}
        assert len(peers) == 5
        assert result.transports == ("unicast",)


@pytest.mark.compiled
def test_sender_reads_each_block_of_its_chain_once(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, digests_of = set[int](), CompiledReader._digests_of

    def seen(reader: CompiledReader, first: int, count: int) -> bytes:
        read.update(range(first, first + count))
        return digests_of(reader, first, count)

    with agents(tmp_path, 2) as there, sender_to(there, SenderSettings(LOOPBACK, MTU, engine=COMPILED)) as sender:
        monkeypatch.setattr(CompiledReader, "_digests_of", seen)
        result = sender.send_file(file, Route(Chain()))
        assert (result.complete, result.repaired_bytes) == (2, 0)
        assert all(one.received().digest == result.digest for one in there)
    assert read == set()


@pytest.mark.parametrize("mtu", [576, 9000, None])
def test_transfer_works_with_any_mtu(tmp_path: Path, file: Path, content: bytes, mtu: int | None) -> None:
    with agents(tmp_path, 2) as there, sender_to(there, SenderSettings(LOOPBACK, mtu)) as sender:
        assert sender.send_file(file, Route(light())).complete == 2
        assert all(one.files() == {file.name: content} for one in there)
        with pytest.raises(WrongInputError, match="is more than the"):
            Sender([there[0].address], SenderSettings(LOOPBACK, 70_000))


@pytest.mark.parametrize(("sealed", "suite"), [(False, "blake3"), (True, "sha256")])
def test_lost_duplicated_and_altered_datagrams_are_repaired(
    tmp_path: Path, file: Path, content: bytes, sealed: bool, suite: str
) -> None:
    faulty = [FaultyLight(0, 0.3, 0, 1), FaultyLight(0.1, 0.3, 0, 2), FaultyLight(0.1, 0.3, 0.01, 3)]
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


def test_concurrent_senders_do_not_mix(tmp_path: Path, content: bytes) -> None:
    way = light(200e6)
    results: dict[str, TransferResult] = {}
    with agent(tmp_path / "r") as there:

        def send(name: str, way: TransportChoice) -> None:
            path = tmp_path / name
            path.write_bytes(name.encode() + content)
            with sender_to([there]) as sender:
                results[name] = sender.send_file(path, Route(way))

        # Two of them share group and port.
        plan = {"a": way, "b": way, "c": light(200e6), "d": Unicast(), "e": Chain()}
        threads = [threading.Thread(target=send, args=one) for one in plan.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
        assert {name: result.receivers[0].reason for name, result in results.items()} == dict.fromkeys(plan, "")
        assert there.files() == {name: name.encode() + content for name in plan}


def test_garbage_and_replayed_datagrams_are_counted_and_ignored(tmp_path: Path, file: Path, content: bytes) -> None:
    way, stop, captured = light(20e6), threading.Event(), list[bytes]()

    def disturb() -> None:
        chance = random.Random(5)
        with (
            open_group_socket(LOOPBACK, way.group, way.port) as ear,
            open_sender_socket(LOOPBACK, way.group, way.port) as mouth,
        ):
            while not stop.wait(0.0005):
                try:
                    captured.append(ear.recv(65536))
                except BlockingIOError:
                    continue
                session = int.from_bytes(captured[-1][:4], "little")
                mouth.send(chance.choice(captured[-50:]))
                mouth.send(chance.randbytes(chance.randrange(200)))
                mouth.send(b"")
                mouth.send(datagram(session ^ 1, 0, bytes(SEGMENT)))
                mouth.send(datagram(session, 3, bytes(SEGMENT), flags=1))
                mouth.send(datagram(session, chance.randrange(1 << 63), bytes(SEGMENT)))
                mouth.send(datagram(session, chance.randrange(SIZE // SEGMENT), chance.randbytes(SEGMENT)))

    with agent(tmp_path / "r", deceived) as there, sender_to([there]) as sender:
        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            result = sender.send_file(file, Route(way))
        finally:
            stop.set()
            thread.join(TIMEOUT)
        assert captured
        assert result.complete == 1
        event = there.received()
        assert event.refused > 0
        assert result.receivers[0].refused == event.refused
        assert there.files() == {file.name: content}


# ------------------------------------------------------------------------------------------------- the commands


def test_commands_transfer_files_end_to_end(tmp_path: Path, file: Path, content: bytes) -> None:
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
            event = one.next_line()
            assert (event["event"], event["bytes"], event["digest"]) == ("received", SIZE, results[0]["digest"])
        second.process.kill()
        second.process.wait()
        for transport in ("pipeline", "unicast"):
            some = subprocess.run([*command, "--transport", transport], capture_output=True, check=False)
            assert some.returncode == 3
        first.process.terminate()
        assert first.process.wait(TIMEOUT) == 0
        none = subprocess.run([*command, "--transport", "unicast"], capture_output=True, check=False)
        assert none.returncode == 1

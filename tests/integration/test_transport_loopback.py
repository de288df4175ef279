"""Sender and receivers with real sockets on the loopback interface; no root needed."""

from __future__ import annotations

import json
import os
import queue
import random
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from blast_transport.control import Hello, Ready, encode
from blast_transport.datagram import HEADER
from blast_transport.errors import SourceChangedError, WrongInputError
from blast_transport.interface import open_group_socket, open_sender_socket
from blast_transport.light import Beam, Light
from blast_transport.receiver import GroupOpener, Receiver, ReceiverSettings
from blast_transport.receiver_core import ReceiverTimings
from blast_transport.report import Failed, Listening, Received, ReceiverEvent, TransferResult
from blast_transport.sender import Sender
from blast_transport.sender_core import SenderTimings
from blast_transport.unicast import send_unicast

LOOPBACK = "127.0.0.1"
SIZE = 8 << 20
MTU = 9000
RATE = 400e6
PATIENCE = 20.0


def random_group() -> tuple[str, int]:
    """Tests run beside each other; a group of one's own keeps them apart."""
    third, fourth = secrets.randbelow(256), secrets.randbelow(254) + 1
    return f"239.77.{third}.{fourth}", 20000 + secrets.randbelow(10000)


@dataclass
class Running:
    """A receiver in a thread of its own."""

    name: str
    receiver: Receiver
    directory: Path
    events: queue.Queue[ReceiverEvent]

    @property
    def address(self) -> tuple[str, str, int]:
        return (self.name, *self.receiver.address)

    def next_event(self) -> ReceiverEvent:
        return self.events.get(timeout=PATIENCE)


@contextmanager
def receiving(
    directory: Path, open_group: GroupOpener = open_group_socket, timings: ReceiverTimings | None = None
) -> Iterator[Running]:
    directory.mkdir()
    events: queue.Queue[ReceiverEvent] = queue.Queue()
    settings = ReceiverSettings((LOOPBACK, 0), directory, LOOPBACK)
    with Receiver(settings, events.put, timings=timings, open_group=open_group) as receiver:
        thread = threading.Thread(target=receiver.run)
        thread.start()
        try:
            running = Running(directory.name, receiver, directory, events)
            assert running.next_event() == Listening(*receiver.address)
            yield running
        finally:
            receiver.stop()
            thread.join(PATIENCE)
            assert not thread.is_alive()


class Lossy:
    """Group sockets that drop, double and delay what they receive."""

    def __init__(self, loss: float, seed: int) -> None:
        self.dropped = 0
        self._loss = loss
        self._random = random.Random(seed)

    def __call__(self, interface_address: str, group: str, port: int) -> socket.socket:
        lossy = self

        class LossySocket(socket.socket):
            _again: bytes | None = None

            def recv_into(self, buffer: memoryview, *_: int) -> int:  # type: ignore[override]
                if self._again is not None:
                    data, self._again = self._again, None
                    buffer[: len(data)] = data
                    return len(data)
                while True:
                    count = super().recv_into(buffer)
                    if lossy._random.random() >= lossy._loss:
                        break
                    lossy.dropped += 1
                if lossy._random.random() < 0.05:
                    self._again = bytes(buffer[:count])
                return count

        plain = open_group_socket(interface_address, group, port)
        return LossySocket(fileno=plain.detach())


@pytest.fixture
def content() -> bytes:
    return random.Random(77).randbytes(SIZE)


@pytest.fixture
def file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "content.bin"
    path.write_bytes(content)
    return path


def send(running: list[Running], file: Path, timings: SenderTimings | None = None) -> TransferResult:
    group, port = random_group()
    with Sender([one.address for one in running], interface_address=LOOPBACK, mtu=MTU, timings=timings) as sender:
        return sender.send(file, group, port, RATE)


def only_file(directory: Path) -> bytes:
    (path,) = directory.iterdir()
    return path.read_bytes()


def test_three_receivers_ten_times_over_the_same_connections(tmp_path: Path, file: Path, content: bytes) -> None:
    small = tmp_path / "small"
    small.write_bytes(content[:300_001])
    group, port = random_group()
    with ExitStack() as stack:
        running = [stack.enter_context(receiving(tmp_path / f"r{index}")) for index in range(3)]
        sender = stack.enter_context(Sender([one.address for one in running], interface_address=LOOPBACK, mtu=MTU))
        assert sender.connect() == {}
        peers = set()
        for _ in range(10):
            result = sender.send(small, group, port, RATE)
            assert result.complete == 3
            assert result.repaired_bytes == 0
            assert result.datagrams == -(-300_001 // 8956)
            for one in running:
                event = one.next_event()
                assert isinstance(event, Received)
                assert event.digest == result.digest
                peers.add(event.sender)
                assert only_file(one.directory) == content[:300_001]
        assert len(peers) == 3


def test_loss_and_duplicates_are_repaired(tmp_path: Path, file: Path, content: bytes) -> None:
    losses = [Lossy(0.0, 1), Lossy(0.02, 2), Lossy(0.3, 3)]
    with ExitStack() as stack:
        running = [stack.enter_context(receiving(tmp_path / f"r{index}", lossy)) for index, lossy in enumerate(losses)]
        result = send(running, file)
        assert result.complete == 3
        for one, lossy, outcome in zip(running, losses, result.receivers, strict=True):
            event = one.next_event()
            assert isinstance(event, Received)
            assert event.file.read_bytes() == content
            assert event.duplicates > 0
            assert outcome.repaired_bytes == event.repaired_bytes
            assert outcome.first_datagram == event.first_datagram
            assert (event.repaired_bytes > 0) == (lossy.dropped > 0)
            assert event.repaired_bytes <= lossy.dropped * 8956


def test_no_light_at_all_still_delivers(tmp_path: Path, file: Path, content: bytes) -> None:
    with receiving(tmp_path / "dark", Lossy(1.0, 1)) as running:
        result = send([running], file)
        assert result.complete == 1
        assert result.repaired_bytes == SIZE
        assert result.receivers[0].first_datagram is None
        assert only_file(running.directory) == content


@pytest.mark.parametrize("size", [0, 1, 8956, 8957])
def test_small_files(tmp_path: Path, size: int) -> None:
    path = tmp_path / "tiny"
    path.write_bytes(bytes(range(256)) * 40)
    os.truncate(path, size)
    with receiving(tmp_path / "r") as running:
        assert send([running], path).complete == 1
        assert only_file(running.directory) == path.read_bytes()


def test_several_senders_at_the_same_time_do_not_mix(tmp_path: Path, content: bytes) -> None:
    group, port = random_group()
    files = []
    for index in range(3):
        path = tmp_path / f"file{index}"
        path.write_bytes(content[index << 20 : (index + 1) << 20])
        files.append(path)
    with receiving(tmp_path / "r") as running:

        def send_one(path: Path, port: int) -> None:
            with Sender([running.address], interface_address=LOOPBACK, mtu=MTU) as sender:
                results.append(sender.send(path, group, port, 100e6))

        results: list[TransferResult] = []
        # Two of them share group and port, the third has a port of its own.
        threads = [
            threading.Thread(target=send_one, args=(path, port + index // 2)) for index, path in enumerate(files)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert [result.complete for result in results] == [1, 1, 1]
        for path in files:
            assert (running.directory / path.name).read_bytes() == path.read_bytes()


def test_garbage_and_replayed_datagrams_change_nothing(tmp_path: Path, file: Path, content: bytes) -> None:
    group, port = random_group()
    stop = threading.Event()
    heard: list[bytes] = []

    def disturb() -> None:
        chance = random.Random(5)
        with open_group_socket(LOOPBACK, group, port) as ear, open_sender_socket(LOOPBACK, group, port) as mouth:
            while not stop.wait(0.0005):
                try:
                    heard.append(ear.recv(65536))
                except BlockingIOError:
                    continue
                mouth.send(chance.choice(heard[-50:]))
                mouth.send(chance.randbytes(chance.randrange(200)))
                # A stranger's session, and segments that this file does not have.
                mouth.send(HEADER.pack(1, 0, 0) + bytes(8956))
                mouth.send(heard[-1][:8] + chance.randbytes(8) + bytes(8956))

    with receiving(tmp_path / "r") as running:
        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            with Sender([running.address], interface_address=LOOPBACK, mtu=MTU) as sender:
                result = sender.send(file, group, port, 100e6)
        finally:
            stop.set()
            thread.join(PATIENCE)
        assert len(heard) > 100
        assert result.complete == 1
        event = running.next_event()
        assert isinstance(event, Received)
        assert event.duplicates > 0
        assert event.file.read_bytes() == content


def test_forged_data_of_the_right_shape_is_a_failure_and_no_file(tmp_path: Path, file: Path) -> None:
    class Forger(Lossy):
        def __call__(self, interface_address: str, group: str, port: int) -> socket.socket:
            class ForgingSocket(socket.socket):
                def recv_into(self, buffer: memoryview, *_: int) -> int:  # type: ignore[override]
                    count = super().recv_into(buffer)
                    buffer[count - 1] ^= 1
                    return count

            return ForgingSocket(fileno=open_group_socket(interface_address, group, port).detach())

    with receiving(tmp_path / "good") as good, receiving(tmp_path / "bad", Forger(0, 0)) as bad:
        result = send([good, bad], file)
        assert [outcome.complete for outcome in result.receivers] == [True, False]
        assert "digest" in result.receivers[1].reason
        assert isinstance(bad.next_event(), Failed)
        assert list(bad.directory.iterdir()) == []


@contextmanager
def receiver_process(directory: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    directory.mkdir()
    command = [sys.executable, "-m", "blast_transport", "receive", "--listen", f"{LOOPBACK}:0"]
    command += ["--interface-address", LOOPBACK, "--directory", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())["port"]
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_a_receiver_hit_in_mid_transfer_harms_no_other(
    tmp_path: Path, file: Path, content: bytes, blow: signal.Signals
) -> None:
    timings = SenderTimings(stall=1.0)
    with (
        receiver_process(tmp_path / "victim") as (process, port),
        receiving(tmp_path / "a") as first,
        receiving(tmp_path / "b") as second,
    ):
        group, group_port = random_group()
        receivers = [first.address, ("victim", LOOPBACK, port), second.address]
        with Sender(receivers, interface_address=LOOPBACK, mtu=MTU, timings=timings) as sender:
            threading.Timer(0.2, process.send_signal, [blow]).start()
            began = time.monotonic()
            result = sender.send(file, group, group_port, 100e6)
            assert time.monotonic() - began < 6.0
            assert [outcome.complete for outcome in result.receivers] == [True, False, True]
            assert result.receivers[1].reason
            assert only_file(first.directory) == only_file(second.directory) == content
            assert not (tmp_path / "victim" / file.name).exists()
            again = sender.send(file, group, group_port, RATE)
            assert [outcome.complete for outcome in again.receivers] == [True, False, True]


def test_a_stopped_receiver_recovers_for_the_next_transfer(tmp_path: Path, file: Path, content: bytes) -> None:
    with receiver_process(tmp_path / "victim") as (process, port):
        group, group_port = random_group()
        receivers = [("victim", LOOPBACK, port)]
        timings = SenderTimings(ready=0.5)
        with Sender(receivers, interface_address=LOOPBACK, mtu=MTU, timings=timings) as sender:
            assert sender.connect() == {}
            process.send_signal(signal.SIGSTOP)
            assert "invitation" in sender.send(file, group, group_port, RATE).receivers[0].reason
            process.send_signal(signal.SIGCONT)
            assert sender.send(file, group, group_port, RATE).complete == 1
        assert only_file(tmp_path / "victim") == content


def test_a_sender_that_vanishes_leaves_nothing_behind(tmp_path: Path) -> None:
    with receiving(tmp_path / "r") as running:
        with socket.create_connection(running.receiver.address) as control:
            group, port = random_group()
            control.sendall(encode(Hello(5, "half", 1000, 100, group, port)))
            assert control.recv(100) == encode(Ready(5))
            assert len(list(running.directory.iterdir())) == 1
        event = running.next_event()
        assert isinstance(event, Failed)
        assert "closed" in event.reason
        assert list(running.directory.iterdir()) == []


def test_a_silent_sender_is_given_up(tmp_path: Path) -> None:
    with receiving(tmp_path / "r", timings=ReceiverTimings(silence=0.2)) as running:
        with socket.create_connection(running.receiver.address) as control:
            control.sendall(encode(Hello(5, "half", 1000, 100, *random_group())))
            event = running.next_event()
            assert isinstance(event, Failed)
            assert "nothing heard" in event.reason
        assert list(running.directory.iterdir()) == []


@pytest.mark.parametrize("name", ["../escape", "/abs", "..", "a/b"])
def test_names_from_the_wire_cannot_leave_the_directory(tmp_path: Path, name: str) -> None:
    with receiving(tmp_path / "r") as running:
        with socket.create_connection(running.receiver.address) as control:
            control.sendall(encode(Hello(5, name, 0, 100, *random_group())))
            event = running.next_event()
        assert isinstance(event, Failed)
        assert "plain file name" in event.reason
        assert list(running.directory.iterdir()) == []
        assert [entry.name for entry in tmp_path.iterdir()] == ["r"]


def test_control_garbage_does_not_disturb_a_running_transfer(tmp_path: Path, file: Path, content: bytes) -> None:
    chance = random.Random(9)
    with receiving(tmp_path / "r") as running:

        def disturb() -> None:
            for _ in range(100):
                with socket.create_connection(running.receiver.address) as control:
                    control.sendall(chance.randbytes(chance.randrange(1, 300)))

        thread = threading.Thread(target=disturb)
        thread.start()
        result = send([running], file)
        thread.join(PATIENCE)
        assert result.complete == 1
        assert (running.directory / file.name).read_bytes() == content


def test_a_full_directory_is_that_receivers_reason(tmp_path: Path, file: Path) -> None:
    with receiving(tmp_path / "ok") as fine, receiving(tmp_path / "gone") as gone:
        gone.directory.rmdir()
        result = send([fine, gone], file)
        assert [outcome.complete for outcome in result.receivers] == [True, False]
        assert "No such file" in result.receivers[1].reason


def test_unicast_to_three(tmp_path: Path, file: Path, content: bytes) -> None:
    with ExitStack() as stack:
        running = [stack.enter_context(receiving(tmp_path / f"r{index}")) for index in range(3)]
        sender = stack.enter_context(Sender([one.address for one in running], interface_address=LOOPBACK))
        for _ in range(2):
            result = send_unicast(sender, file)
            assert result.complete == 3
            assert result.datagrams == 0
            assert result.repaired_bytes == 0
            assert all(only_file(one.directory) == content for one in running)


def test_a_file_that_shrinks_is_our_typed_error(tmp_path: Path, file: Path) -> None:
    with receiving(tmp_path / "r") as running:
        threading.Timer(0.2, os.truncate, [file, 1000]).start()
        group, port = random_group()
        with (
            Sender([running.address], interface_address=LOOPBACK, mtu=MTU) as sender,
            pytest.raises(SourceChangedError),
        ):
            sender.send(file, group, port, 100e6)
        assert isinstance(running.next_event(), Failed)
        assert list(running.directory.iterdir()) == []


def test_an_unpaced_sender_cannot_be_had(tmp_path: Path, file: Path) -> None:
    with (
        Sender([("a", LOOPBACK, 9)], interface_address=LOOPBACK) as sender,
        pytest.raises(WrongInputError, match="rate"),
    ):
        sender.send(file, *random_group(), 0)


def test_the_command_end_to_end(tmp_path: Path, file: Path, content: bytes) -> None:
    group, group_port = random_group()
    with receiver_process(tmp_path / "a") as (first, port), receiver_process(tmp_path / "b") as (second, other):
        command = [sys.executable, "-m", "blast_transport", "send", str(file), "--interface-address", LOOPBACK]
        command += ["--to", f"a={LOOPBACK}:{port},b={LOOPBACK}:{other}", "--group", group, "--port", str(group_port)]
        done = subprocess.run(
            [*command, "--rate-mbps", "400", "--mtu", "9000", "--repeat", "2"], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert [sum(one["complete"] for one in line["receivers"]) for line in lines] == [2, 2]
        assert only_file(tmp_path / "a") == only_file(tmp_path / "b") == content
        assert first.stdout is not None
        event = json.loads(first.stdout.readline())
        assert (event["event"], event["bytes"], event["digest"]) == ("received", SIZE, lines[0]["digest"])
        second.kill()
        second.wait()
        assert subprocess.run([*command, "--rate-mbps", "400"], capture_output=True, check=False).returncode == 3
        first.terminate()
        assert first.wait(PATIENCE) == 0


# -------------------------------------------------------------------------------------------- light that pauses


@contextmanager
def transmitting(running: list[Running], file: Path, beam: Beam) -> Iterator[list[TransferResult]]:
    """A transfer in a thread of its own; its result when the block has ended."""
    results: list[TransferResult] = []

    def transmit() -> None:
        with Sender([one.address for one in running], interface_address=LOOPBACK, mtu=MTU) as sender:
            results.append(sender.transmit(file, beam))

    thread = threading.Thread(target=transmit)
    thread.start()
    try:
        yield results
    finally:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def until_dark(beam: Beam) -> int:
    """How far the transfer is when it has stopped."""
    reached = -1
    while reached != beam.reached:
        reached = beam.reached
        time.sleep(0.05)
    return reached


def test_it_stops_in_time_and_goes_on_at_another_group(tmp_path: Path, file: Path, content: bytes) -> None:
    """Half a second of light in all, in three pieces, without a byte sent twice or repaired."""
    with receiving(tmp_path / "a") as first, receiving(tmp_path / "b") as second:
        beam = Beam(Light(*random_group(), 150e6, time.monotonic() + 0.15))
        with transmitting([first, second], file, beam) as results:
            time.sleep(0.2)
            reached = until_dark(beam)
            assert 0 < reached <= 0.16 * 150e6 / 8
            beam.shine(Light(*random_group(), 150e6, time.monotonic() + 0.15))
            time.sleep(0.2)
            further = until_dark(beam)
            assert reached < further <= reached + 0.16 * 150e6 / 8
            beam.shine(Light(*random_group(), 400e6))
        (result,) = results
        assert (result.complete, result.repaired_bytes, beam.reached) == (2, 0, SIZE)
        assert result.datagrams == -(-SIZE // 8956)
        assert only_file(first.directory) == only_file(second.directory) == content


def test_losses_before_and_after_a_pause_are_repaired(tmp_path: Path, file: Path, content: bytes) -> None:
    lossy = Lossy(0.1, 5)
    with receiving(tmp_path / "a", lossy) as running:
        beam = Beam(Light(*random_group(), 150e6, time.monotonic() + 0.15))
        with transmitting([running], file, beam) as results:
            time.sleep(0.2)
            beam.shine(Light(*random_group(), 400e6))
        assert results[0].complete == 1 and results[0].repaired_bytes > 0
        assert only_file(running.directory) == content


def test_darkness_stops_it_at_once_and_giving_up_ends_it(tmp_path: Path, file: Path) -> None:
    with receiving(tmp_path / "a") as running:
        beam = Beam(Light(*random_group(), 50e6))
        with transmitting([running], file, beam) as results:
            time.sleep(0.1)
            beam.darken()
            time.sleep(0.05)
            reached = beam.reached
            time.sleep(0.2)
            assert beam.reached == reached < SIZE
            beam.give_up("the request was withdrawn")
        assert results[0].receivers[0].reason == "the request was withdrawn"
        assert isinstance(running.next_event(), Failed)
        assert list(running.directory.iterdir()) == []

"""Refusals of receivers, errors of senders, and wrong input; on loopback."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from blast_transport.base.errors import SourceChangedError, WrongInputError
from blast_transport.session.receiver_core import ReceiverTimings
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.store.sources.source import StreamSource
from blast_transport.transports.choices import Chain, TransportChoice, Unicast
from blast_transport.wire.codec import FRAME, VERSION, ControlDecoder, encode
from blast_transport.wire.messages import (
    EndOfData,
    Fin,
    Heartbeat,
    Hello,
    Message,
    Nack,
    Phase,
    PhaseReady,
    Ready,
    Repair,
)
from tests.support.transport.transport_hosts import (
    LOOPBACK,
    MTU,
    TIMEOUT,
    agent,
    light,
    sender_to,
)
from tests.support.waiting import HANGING

SIZE = 2 << 20


def choices() -> list[TransportChoice]:
    return [light(), Chain(), Unicast()]


def talk(address: tuple[str, str, int], hello: Hello) -> tuple[socket.socket, Message]:
    """Send an invitation to a receiver; return the connection and the answer."""
    control = socket.create_connection(address[1:], TIMEOUT)
    control.sendall(encode(hello))
    return control, next_message(control)


def next_message(control: socket.socket) -> Message:
    decoder = ControlDecoder()
    while True:
        for message in decoder.feed(control.recv(1)):
            return message


def hello(**more: object) -> Hello:
    fields = {"session": 5, "size": 1000, "segment_size": 100, "block_segments": 4, "suite": "blake3"}
    return Hello(**{**fields, "kind": "file", "name": "half", **more})  # type: ignore[arg-type]


def test_receiver_closes_and_counts_sender_of_another_version(tmp_path: Path) -> None:
    with agent(tmp_path / "r") as there, socket.create_connection(there.address[1:], TIMEOUT) as control:
        old = bytearray(encode(hello()))
        old[FRAME.size - 2 : FRAME.size] = (VERSION - 1).to_bytes(2, "little")
        control.sendall(old)
        assert control.recv(1) == b""
        assert there.server.refusals.totals.total() == 1


def test_vanished_sender_leaves_only_resumable_files(tmp_path: Path) -> None:
    with agent(tmp_path / "r") as there:
        for session, content, left in ((5, "", []), (6, "c0ffee", [".blast", ".blast"])):
            control, ready = talk(there.address, hello(session=session, content=content))
            assert isinstance(ready, Ready)
            assert len(there.files()) == 2
            control.close()
            assert "closed" in there.failed().reason
            assert [name[:6] for name in there.files()] == left


def test_slow_message_of_sender_is_not_silence(tmp_path: Path) -> None:
    with agent(tmp_path / "r", timings=ReceiverTimings(silence=1.5)) as there:
        control, _ = talk(there.address, hello())
        for byte in encode(Heartbeat(hello().session, 0))[:-1]:
            control.sendall(bytes([byte]))
            time.sleep(0.1)  # as over a link that many share
        control.close()
        assert "control connection" in there.failed().reason


# ------------------------------------------------------------------------------------------------ errors of ours


def test_shrinking_file_raises_source_changed_error(tmp_path: Path, file: Path) -> None:
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


def test_sender_rejects_unpaced_rate(tmp_path: Path, file: Path) -> None:
    with agent(tmp_path / "r") as there, sender_to([there]) as sender:
        for rate in (0.0, -1.0, float("nan"), float("inf")):
            with pytest.raises(WrongInputError, match="rate"):
                sender.send_file(file, Route(light(rate)))


def test_optical_transport_requires_interface_address(tmp_path: Path, file: Path) -> None:
    with agent(tmp_path / "r") as there, sender_to([there], SenderSettings()) as sender:
        with pytest.raises(WrongInputError, match="interface"):
            sender.send_file(file, Route(light()))
        assert sender.send_file(file, Route(Chain())).complete == 1


@pytest.mark.parametrize("used", [True, False])
def test_connection_with_unread_repairs_is_not_reused(tmp_path: Path, file: Path, used: bool) -> None:
    """A scripted receiver requests a segment at the end, and may report that it did not use the repair."""
    left_open: list[bool] = []

    def receive(listening: socket.socket) -> None:
        control, _ = listening.accept()
        with control:
            session, digest, done = 0, b"", False
            while not done:
                match next_message(control):
                    case Hello() as hello:
                        session = hello.session
                        control.sendall(encode(Ready(session)))
                    case Phase(number=number):
                        control.sendall(encode(PhaseReady(session, number)))
                    case EndOfData() as end:
                        digest = end.digest
                        control.sendall(encode(Nack(session, ((0, 1),))))
                    case Repair(pieces=((_, data),)):
                        control.sendall(encode(Fin(session, digest, repaired=len(data) if used else 0)))
                        done = True
            control.settimeout(0.5 if used else HANGING)
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
            thread.join(TIMEOUT)
    assert left_open == [used]


@pytest.mark.parametrize("way", choices(), ids=["light", "chain", "unicast"])
def test_agent_ends_stream_that_exceeds_size_limit(tmp_path: Path, content: bytes, way: TransportChoice) -> None:
    """The size of a stream is unknown until its end, and without an end it would fill the disk."""
    reader, writer = os.pipe()
    fed = threading.Thread(target=feed_on_and_on, args=(writer, content), daemon=True)
    with (
        agent(tmp_path / "small", file_bytes=SIZE) as there,
        StreamSource(reader) as stream,
        sender_to([there]) as sender,
    ):
        fed.start()
        result = sender.transmit(stream, Route(way), Destination("endless"))
        (outcome,) = result.receivers
        assert not outcome.complete and f"more bytes came than the {SIZE} that this agent takes" in outcome.reason
        there.failed()
        assert there.files() == {}
    os.close(reader)
    fed.join(TIMEOUT)
    assert not fed.is_alive()


def feed_on_and_on(writer: int, content: bytes) -> None:
    """Write much more than the agent accepts, or until the pipe is closed."""
    with suppress(BrokenPipeError), os.fdopen(writer, "wb", buffering=0) as pipe:
        for _ in range(16):
            pipe.write(content)

"""Whatever the wire brings: a typed error or nothing, never anything else, and never a wrong file."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from pathlib import Path
from typing import cast

from blast_transport.connection import ControlConnection
from blast_transport.control import Decoder, EndOfData, Fin, Hello, Message, Nack, Progress, Ready, Repair, Tune, encode
from blast_transport.datagram import HEADER
from blast_transport.errors import LocalProtocolError, RemoteProtocolError, UnsafeNameError
from blast_transport.receiver_core import ReceiverCore, ReceiverState
from blast_transport.receiver_session import Channel, Client, Session
from blast_transport.sender_core import SenderCore
from blast_transport.store_old import TargetFile, new_hash, plain_name
from tests.support.fuzzing import inputs

INPUTS = inputs(20_000)
SAMPLES: list[Message] = [
    Hello(1, "name", 1000, 100, "239.1.2.3", 5000),
    Ready(1),
    Nack(1, ((0, 1), (7, 3))),
    Repair(1, 9, b"data" * 10),
    Progress(1, 12),
    EndOfData(1, bytes(32)),
    Fin(1, bytes(32), "reason", 12.5, 100, 2),
    Tune(1, "239.1.2.3", 5000),
]


def mutated(chance: random.Random, data: bytes) -> bytes:
    """One to four bytes changed, cut, doubled or inserted."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(changed) + 1)
        match chance.randrange(4):
            case 0 if place < len(changed):
                changed[place] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
            case 1:
                del changed[place:]
            case 2:
                changed[place:place] = changed[: chance.randrange(20)]
            case _:
                changed[place:place] = chance.randbytes(chance.randrange(8))
    return bytes(changed)


def test_control_streams() -> None:
    chance = random.Random(1)
    accepted = refused = 0
    for number in range(INPUTS):
        valid = b"".join(encode(message) for message in chance.choices(SAMPLES, k=chance.randint(1, 3)))
        stream = chance.randbytes(chance.randrange(60)) if number % 5 == 0 else mutated(chance, valid)
        try:
            messages = Decoder().feed(stream)
        except RemoteProtocolError:
            refused += 1
            continue
        accepted += 1
        # What was understood is what was said. Only a Fin may read differently: its reason is text to show.
        if not any(isinstance(message, Fin) for message in messages):
            assert stream.startswith(b"".join(encode(message) for message in messages))
    assert accepted > INPUTS // 20
    assert refused > INPUTS // 20


def test_whole_and_byte_by_byte_agree_on_garbage() -> None:
    chance = random.Random(2)
    for _ in range(3000):
        stream = mutated(chance, b"".join(encode(message) for message in chance.choices(SAMPLES, k=2)))
        assert outcome(stream, len(stream)) == outcome(stream, 1)


def outcome(stream: bytes, step: int) -> bool | list[Message]:
    decoder, messages = Decoder(), list[Message]()
    try:
        for start in range(0, len(stream), max(step, 1)):
            messages += decoder.feed(stream[start : start + step])
    except RemoteProtocolError:
        return False
    return [message for message in messages if not isinstance(message, Fin)]


def test_names() -> None:
    chance = random.Random(3)
    alphabet = "ab./\\\0\n-ü .\udcff"
    for _ in range(INPUTS):
        name = "".join(chance.choices(alphabet, k=chance.randrange(6)))
        try:
            taken = plain_name(name)
        except UnsafeNameError:
            continue
        assert Path("/directory", taken).resolve().parent == Path("/directory")


def test_sender_core_survives_any_conversation() -> None:
    chance = random.Random(4)
    hello = Hello(1, "f", 95, 10, "239.0.0.1", 80)
    for _ in range(2000):
        core, now = SenderCore(hello, ["a", "b"], 0.0), 0.0
        for _ in range(10):
            now += chance.random() * 2
            core.receive(chance.choice("ab"), chance.choice([*SAMPLES, Nack(1, ((1, 2),)), Ready(1)]), now)
            for name in "ab":
                segment = core.take_repair(name)
                assert segment is None or segment < hello.segments
            if core.sending and chance.random() < 0.2:
                core.tune("239.0.0.2", 80, now)
            if core.sending and chance.random() < 0.2:
                core.end_of_data(bytes(32), now)
            core.tick(now)
            limit = core.deadline()
            assert (limit is None) == core.over
        core.tick(now + 100)


def test_receiver_core_survives_any_conversation() -> None:
    chance = random.Random(5)
    hello = Hello(1, "f", 95, 10, "239.0.0.1", 80)
    for _ in range(2000):
        core, now = ReceiverCore(hello, 0.0), 0.0
        for _ in range(15):
            now += chance.random()
            segment, length = chance.choice([0, 1, 2, 8, 9, 10, 1 << 63]), chance.choice([10, 10, 5, 0])
            match chance.randrange(4):
                case 0:
                    core.datagram(segment, length, now)
                case 1:
                    core.repair(segment, length, now)
                case 2 if core.state is ReceiverState.RECEIVING:
                    core.end_of_data(EndOfData(1, bytes(32)), now)
                case _:
                    core.tick(now)
            core.check_complete()
            limit = core.deadline()
            assert (limit is None) == core.over
        core.tick(now + 100)
        assert core.over or core.state is ReceiverState.VERIFYING


class ScriptedSocket:
    """The receive side of a UDP socket that brings what it is told."""

    def __init__(self, datagrams: list[bytes]) -> None:
        self._datagrams = datagrams

    def recv_into(self, buffer: memoryview) -> int:
        if not self._datagrams:
            raise BlockingIOError
        datagram = self._datagrams.pop()
        buffer[: len(datagram)] = datagram
        return len(datagram)


def test_datagrams(tmp_path: Path) -> None:
    chance = random.Random(6)
    content = chance.randbytes(9_950)
    hello = Hello(0xB1A5, "file", len(content), 100, "239.0.0.1", 80)
    valid = [
        HEADER.pack(hello.session, 0, segment) + content[segment * 100 : segment * 100 + 100]
        for segment in range(hello.segments)
    ]
    wild = [corrupted(chance, chance.choice(valid)) for _ in range(INPUTS)]
    arriving = wild + valid
    chance.shuffle(arriving)

    core = ReceiverCore(hello, 0.0)
    session = Session(core, TargetFile(tmp_path, hello), Client(cast(ControlConnection, None), "test"), 0.0)
    channel = Channel(cast(socket.socket, ScriptedSocket(arriving)), ("239.0.0.1", 80))
    channel.sessions[hello.session] = session
    buffer = memoryview(bytearray(1 << 16))
    while arriving:
        channel.read(buffer)
    core.end_of_data(EndOfData(hello.session, digest(content)), 1.0)
    assert core.state is ReceiverState.VERIFYING
    session.commit(fsync=False)
    assert core.state is ReceiverState.COMPLETE
    assert (tmp_path / "file").read_bytes() == content
    assert channel.ignored + core.malformed + core.duplicates == INPUTS


def corrupted(chance: random.Random, datagram: bytes) -> bytes:
    """Garbage that its header or length gives away; changed payload of the right length only the digest can find."""
    match chance.randrange(6):
        case 0:
            return os.urandom(chance.randrange(200))
        case 1:
            return datagram[: chance.randrange(len(datagram))]
        case 2:
            return datagram + bytes(chance.randint(1, 50))
        case 3:
            return HEADER.pack(0xB1A5, chance.randint(1, 2**32 - 1), 0) + datagram[HEADER.size :]
        case 4:
            return HEADER.pack(0xB1A5, 0, chance.randint(100, 2**64 - 1)) + datagram[HEADER.size :]
        case _:
            return HEADER.pack(chance.randrange(0xB1A5), 0, 3) + datagram[HEADER.size :]


def digest(content: bytes) -> bytes:
    digesting = new_hash()
    digesting.update(content)
    return digesting.digest()


def test_encode_refuses_with_its_own_error_only() -> None:
    chance = random.Random(7)
    for _ in range(INPUTS):
        number = chance.choice([-1, 0, 2**32, 2**64, chance.randrange(2**64)])
        message = chance.choice(
            [Ready(number), Progress(number, number), Nack(1, ((number, 1),)), Repair(1, number, b"")]
        )
        with contextlib.suppress(LocalProtocolError):
            assert Decoder().feed(encode(message)) == [message]

"""Frames and message bodies from chance: half random bytes, half valid messages damaged. Nothing but typed errors.

Driven directly, without sockets, with a fixed seed: a failure names the input and can be repeated.
"""

from __future__ import annotations

import logging
import random
import struct

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from blast_api import BlastOperator
from blast_api.ttypes import Extension, MulticastRequest, PartState, RequestFilter, TransferReport
from blast_controller.rpc.connection import Connection
from blast_controller.rpc.dispatch import Deferred, Reply, answer
from blast_controller.rpc.errors import CallRefused, ClientFault, MalformedMessage
from blast_controller.rpc.frames import FrameDecoder, encode_frame
from blast_controller.rpc.messages import Call, ServiceCodec
from tests.support.fuzzing import inputs
from tests.support.memory_controller import MemoryController

BODIES = inputs(24_000)
STREAMS = 4_000

REQUEST = MulticastRequest("key", "h11", ["h21", "h31", "h41"], 3 * 10**8, "default", patienceMs=5000, maySplit=True)
CALLS = [
    ("submit", REQUEST),
    ("awaitEvent", "key", 3, 1000),
    ("request", REQUEST, 1000),
    ("extend", "key", Extension(["h22"], ["h21"], 5000, 10**9)),
    ("finish", "key", 0, TransferReport(10**9, 5000, 17, ["h31"])),
    ("status", "key"),
    ("listRequests", RequestFilter("default", [PartState.ACTIVE, PartState.PENDING]), 100, ""),
    ("fabric",),
    ("ping",),
    ("quarantine", "splitter:s1", "dirty connector"),
    ("drain", True),
]


def valid_bodies() -> list[bytes]:
    bodies = []
    for protocol in (TBinaryProtocolAccelerated, TCompactProtocolAccelerated):
        for method, *arguments in CALLS:
            buffer = TMemoryBuffer()
            client = BlastOperator.Client(protocol(buffer))
            client._seqid = 7
            getattr(client, f"send_{method}")(*arguments)
            bodies.append(buffer.getvalue())
    return bodies


def damaged(chance: random.Random, body: bytes) -> bytes:
    data = bytearray(body)
    for _ in range(chance.choice((1, 1, 2, 5))):
        place = chance.randrange(len(data)) if data else 0
        match chance.randrange(6):
            case 0 if data:
                data[place] ^= 1 << chance.randrange(8)
            case 1 if data:
                data[place] = chance.randrange(256)
            case 2:
                data[place:place] = chance.randbytes(chance.randrange(1, 9))
            case 3:
                del data[place : place + chance.randrange(1, 9)]
            case 4:
                data[place : place + 4] = struct.pack("!i", chance.choice((-1, 0, 1 << 20, (1 << 31) - 1, 70_000)))
            case _:
                del data[place:]
    return bytes(data)


def random_body(chance: random.Random) -> bytes:
    head = chance.choice(
        (b"", b"\x80", b"\x80\x01\x00\x01", b"\x82\x21", b"\x82", b"\x80\x01\x00\x01\x00\x00\x00\x06submit")
    )
    return head + chance.randbytes(chance.randrange(200))


@pytest.fixture(scope="module")
def codec() -> ServiceCodec:
    return ServiceCodec(BlastOperator)


def test_valid_bodies_decode(codec):
    for body in valid_bodies():
        assert isinstance(codec.read_call(codec.read_header(body), body), Call)


def test_bodies_from_chance_give_calls_or_typed_errors(codec):
    chance, valid = random.Random(20261120), valid_bodies()
    outcomes: dict[str, int] = {}
    for number in range(BODIES):
        body = damaged(chance, chance.choice(valid)) if number % 2 else random_body(chance)
        try:
            outcome = type(codec.read_call(codec.read_header(body), body)).__name__
        except (MalformedMessage, CallRefused) as error:
            outcome = type(error).__name__
        except Exception as error:
            raise AssertionError(f"{error!r} from {body.hex()}") from error
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    # The inputs are worth something only if they reach every way out.
    assert min(outcomes.get(name, 0) for name in ("Call", "CallRefused", "MalformedMessage")) > 200, outcomes


def test_damaged_calls_with_a_handler_behind_them_are_answered_or_refused(codec, caplog):
    caplog.set_level(logging.CRITICAL)
    chance, valid = random.Random(7), valid_bodies()
    connection, handler = Connection(1, "test"), MemoryController()
    for _ in range(2000):
        body = damaged(chance, chance.choice(valid))
        try:
            outcome = answer(codec, handler, connection, body)
        except MalformedMessage:
            continue
        assert isinstance(outcome, Reply | Deferred), body.hex()
        if isinstance(outcome, Deferred):
            outcome.future.cancel()


def test_streams_from_chance_give_frames_or_a_typed_error():
    chance = random.Random(42)
    refused = 0
    for number in range(STREAMS):
        bodies = [chance.randbytes(chance.randrange(1, 60)) for _ in range(chance.randrange(1, 5))]
        stream = b"".join(encode_frame(body) for body in bodies)
        is_damaged = number % 2 == 1
        stream = damaged(chance, stream) if is_damaged else stream
        decoder, out = FrameDecoder(frame_bytes=64), []
        try:
            while stream:
                cut = chance.randrange(1, 40)
                decoder.receive(stream[:cut])
                stream = stream[cut:]
                out += iter(decoder.next_frame, None)
        except ClientFault:
            refused += 1
            assert is_damaged
        assert is_damaged or out == bodies
        assert all(0 < len(frame) <= 64 for frame in out)
    assert refused > STREAMS // 8

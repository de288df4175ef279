"""Fuzz tests of frames and message bodies: half random bytes, half damaged valid messages. All errors are typed.

The tests call the decoders directly, without sockets, with a fixed seed: a failure names the input and is repeatable.
"""

from __future__ import annotations

import logging
import random
import struct
from collections import Counter

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TMessageType
from thrift.transport.TTransport import TMemoryBuffer, TTransportException

from blast_api import BlastOperator
from blast_api.ttypes import (
    Extension,
    Grant,
    MulticastRequest,
    PartState,
    Rejected,
    RequestFilter,
    RequestStatus,
    TransferReport,
    Unsupported,
)
from blast_controller.core.model.requests import Extension as CoreExtension
from blast_controller.core.model.requests import MulticastRequest as CoreRequest
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.connections.dispatch import Deferred, Reply, answer
from blast_controller.rpc.connections.errors import CallRefusedError, ClientError, HandlerError, MalformedMessageError
from blast_controller.rpc.connections.frames import RpcFrameDecoder, encode_frame
from blast_controller.rpc.connections.messages import Call, ServiceCodec
from blast_controller.rpc.convert import to_extension, to_request
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.methods import ROLES
from blast_controller.rpc.pages import PageQuery, to_page_query
from tests.support.controller.core import World, make_fabric
from tests.support.controller.direct_runtime import DirectRuntime
from tests.support.fuzzing import Decoder, fuzz, inputs

BODIES = inputs(8000)
STREAMS = inputs(6000)
ANSWERS = 3000
FRAME_BYTES = 64

REQUEST = MulticastRequest("key", "r1h1", ["r2h1", "r3h1", "r4h1"], 3 * 10**8, "default", pendingTimeoutMs=5000)
FULL = MulticastRequest("key", "r1h1", ["r2h1"], 1, "default", 10**9, 5, 1, 5000, maySplit=True, mayPause=False)
CALLS = [
    ("submit", REQUEST),
    ("submit", FULL),
    ("submit", MulticastRequest("b", "r1h1", ["r2h1"], 5)),
    ("submit", MulticastRequest("key", "r1h1", ["r2h1"], 5)),
    ("request", MulticastRequest("c", "r2h1", ["r3h1"], 5), 1000),
    ("withdraw", "b"),
    ("explain", "key"),
    ("elements",),
    ("reconcile", True),
    ("verifyFabric",),
    ("releaseElement", "splitter:s1"),
    ("journal", 0, 10),
    ("version",),
    ("login", "token"),
    ("awaitEvent", "key", 3, 1000),
    ("request", REQUEST, 1000),
    ("extend", "key", Extension(["r2h2"], ["r2h1"], 5000, 10**9)),
    ("finish", "key", 0, TransferReport(10**9, 5000, 17, ["r3h1"])),
    ("status", "key"),
    ("listRequests", RequestFilter("default", [PartState.ACTIVE, PartState.PENDING]), 100, "17"),
    ("listRequests", RequestFilter(), 0, "not a cursor"),
    ("fabric",),
    ("ping",),
    ("quarantine", "splitter:s1", "dirty connector"),
    ("drain", True),
]
SIZES = (-1, 0, 1 << 20, (1 << 31) - 1, 70_000)
PROTOCOLS = (TBinaryProtocolAccelerated, TCompactProtocolAccelerated)


def valid_bodies() -> list[bytes]:
    return [body_of(protocol, method, *arguments) for protocol in PROTOCOLS for method, *arguments in CALLS]


def body_of(protocol, method: str, *arguments: object) -> bytes:
    buffer = TMemoryBuffer()
    client = BlastOperator.Client(protocol(buffer))
    client._seqid = 7
    getattr(client, f"send_{method}")(*arguments)
    return buffer.getvalue()


def empty_bodies() -> list[bytes]:
    """Return calls without arguments."""
    return [empty_body(protocol, name) for protocol in PROTOCOLS for name, *_ in CALLS]


def empty_body(protocol, method: str) -> bytes:
    buffer = TMemoryBuffer()
    writer = protocol(buffer)
    writer.writeMessageBegin(method, TMessageType.CALL, 7)
    writer.writeStructBegin(method)
    writer.writeFieldStop()
    writer.writeStructEnd()
    writer.writeMessageEnd()
    return buffer.getvalue()


def damaged(chance: random.Random, body: bytes) -> bytes:
    data = bytearray(body)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        place = chance.randrange(len(data)) if data else 0
        match chance.choice((0, 0, 1, 1, 1, 2, 3, 4, 5)):
            case 0 if data:
                data[place] ^= 1 << chance.randrange(8)
            case 1 if data:
                data[place] = chance.randrange(256)
            case 2:
                data[place:place] = chance.randbytes(chance.randrange(1, 9))
            case 3:
                del data[place : place + chance.randrange(1, 9)]
            case 4:
                data[place : place + 4] = struct.pack("!i", chance.choice(SIZES))
            case _:
                del data[place:]
    return bytes(data)


def random_body(chance: random.Random) -> bytes:
    head = chance.choice(
        (b"", b"\x80", b"\x80\x01\x00\x01", b"\x82\x21", b"\x82", b"\x80\x01\x00\x01\x00\x00\x00\x06submit")
    )
    return head + chance.randbytes(chance.randrange(200))


CODEC = ServiceCodec(BlastOperator)


def check_body(chance: random.Random, body: bytes) -> str:
    """Check that a body is a call that the handler can accept or refuse, or an error that names the party at fault."""
    try:
        call = CODEC.read_call(CODEC.read_header(body), body)
    except (MalformedMessageError, CallRefusedError) as error:
        return type(error).__name__
    assert isinstance(call, Call)
    try:
        check_arguments(call)
    except (Rejected, Unsupported) as error:
        return f"call, {type(error).__name__}"
    return "call"


def check_arguments(call: Call) -> None:
    match call.header.name, call.arguments:
        case (("submit" | "request"), (struct_, *_)):
            assert isinstance(to_request(struct_, "default"), CoreRequest)
        case "extend", (_, struct_):
            assert isinstance(to_extension(struct_), CoreExtension)
        case "listRequests", (filter_, limit, cursor):
            assert isinstance(to_page_query(filter_, limit, cursor, None), PageQuery)


def random_stream(chance: random.Random) -> bytes:
    return chance.randbytes(chance.choice((0, 3, 4, 5, 40)))


def valid_streams() -> list[bytes]:
    chance = random.Random(42)
    bodies = [[chance.randbytes(chance.randrange(1, 60)) for _ in range(chance.randrange(1, 5))] for _ in range(50)]
    return [b"".join(map(encode_frame, some)) for some in bodies]


def check_stream(chance: random.Random, stream: bytes) -> str:
    """Check that every split of a stream yields the same frames, then none, an incomplete one, or a lasting error."""
    whole = frames_of(chance, stream, len(stream))
    assert whole == frames_of(chance, stream, 40)
    frames, refused = whole
    assert all(0 < len(frame) <= FRAME_BYTES for frame in frames)
    assert stream.startswith(b"".join(map(encode_frame, frames)))
    return refused or ("whole frames" if sum(4 + len(frame) for frame in frames) == len(stream) else "more to come")


def frames_of(chance: random.Random, stream: bytes, max_bytes: int) -> tuple[list[bytes], str | None]:
    decoder, out = RpcFrameDecoder(FRAME_BYTES), []
    try:
        while stream:
            cut = max_bytes if max_bytes >= len(stream) else chance.randrange(1, max_bytes)
            decoder.receive(stream[:cut])
            stream = stream[cut:]
            out += iter(decoder.next_frame, None)
    except ClientError as error:
        with pytest.raises(type(error)):
            decoder.next_frame()
        return out, type(error).__name__
    return out, None


class FuzzedHandler:
    """The real handler over a small fabric. It restarts now and then, so that it does not fill up."""

    PERIOD = 400

    def __init__(self) -> None:
        self.calls = 0

    def answered(self, chance: random.Random, body: bytes) -> str:
        """Return the kind of the answer to a message: a reply, now or later, or an error."""
        if self.calls % self.PERIOD == 0:
            world = World(make_fabric(4, [4, 2]), CoreSettings(tenants={"default": TenantLimits(max_pending=20)}))
            self.handler = BlastHandler(
                DirectRuntime(world), "os-ken", lambda after, limit: [], Gate(OPEN_POLICY, ROLES)
            )
            self.connection = Connection(1, "192.0.2.1:5")
            self.handler.submit(self.connection, REQUEST)
        self.calls += 1
        try:
            outcome = answer(CODEC, self.handler, self.connection, body)
        except MalformedMessageError:
            return "MalformedMessageError"
        assert isinstance(outcome, Reply | Deferred)
        if isinstance(outcome, Deferred):
            outcome.future.cancel()
        return "answered"


ANSWERED = Decoder(
    "thrift calls with the handler behind them",
    valid_bodies(),
    damaged,
    lambda chance: damaged(chance, chance.choice(valid_bodies()[: len(CALLS)])),
    FuzzedHandler().answered,
    ("/rpc/convert.py", "/rpc/handler.py"),
)
BODY = Decoder(
    "thrift bodies",
    [*valid_bodies(), *empty_bodies()],
    damaged,
    random_body,
    check_body,
    ("/rpc/messages.py", "/rpc/convert.py"),
)
STREAM = Decoder("thrift frames", valid_streams(), damaged, random_stream, check_stream, ("/rpc/frames.py",))


def test_random_bodies_give_calls_or_typed_errors():
    run = fuzz(BODY, BODIES)
    # The inputs must reach every outcome.
    kinds = ("call", "call, Rejected", "CallRefusedError", "MalformedMessageError")
    assert min(run.outcomes[name] for name in kinds) > 30, run.outcomes


def test_random_streams_give_frames_or_a_typed_error():
    run = fuzz(STREAM, STREAMS)
    kinds = ("whole frames", "more to come", "FrameTooLargeError", "FrameLengthError")
    assert min(run.outcomes[name] for name in kinds) > STREAMS // 100, run.outcomes


def test_handler_answers_or_rejects_damaged_calls(caplog):
    caplog.set_level(logging.CRITICAL)
    run = fuzz(ANSWERED, ANSWERS)
    assert min(run.outcomes[name] for name in ("answered", "MalformedMessageError")) > run.inputs // 10, run.outcomes


def test_codec_reads_binary_headers_as_thrift_does():
    chance, bodies, outcomes = random.Random(13), valid_bodies()[: len(CALLS)], Counter[bool]()
    for _ in range(5000):
        body = damaged(chance, chance.choice(bodies)[: chance.randrange(1, 40)])
        if body[:1] == b"\x80":
            expected = thrift_header(body)
            assert blast_header(body) == expected, body
            outcomes[expected is None] += 1
    assert min(outcomes[True], outcomes[False]) > 500, outcomes


def thrift_header(body: bytes) -> tuple[object, ...] | None:
    buffer = TMemoryBuffer(body)
    try:
        return (*TBinaryProtocolAccelerated(buffer).readMessageBegin(), buffer.cstringio_buf.tell())
    except (TProtocolException, TTransportException, EOFError, ValueError):
        return None


def blast_header(body: bytes) -> tuple[object, ...] | None:
    try:
        header = CODEC.read_header(body)
    except MalformedMessageError:
        return None
    return header.name, header.kind, header.sequence, header.length


def test_invalid_result_of_a_handler_is_a_handler_error():
    """Any result of a handler becomes a readable reply, or a fault that states the problem."""
    chance, calls = random.Random(11), [CODEC.read_call(CODEC.read_header(body), body) for body in valid_bodies()]
    small = ServiceCodec(BlastOperator, frame_bytes=200)
    values = [None, 5, "text", b"\xff", True, 1 << 80, [], [5], RequestStatus(), Grant(), "x" * 1000, object()]
    outcomes = Counter[str]()
    for _ in range(3000):
        call, value = chance.choice(calls), chance.choice(values)
        try:
            reply = chance.choice([CODEC, small]).returned(call, value)
        except HandlerError:
            outcomes["fault"] += 1
            continue
        decoder = RpcFrameDecoder()
        decoder.receive(reply)
        assert decoder.next_frame()
        outcomes["reply"] += 1
    assert min(outcomes["fault"], outcomes["reply"]) > 50, outcomes
    assert CODEC.raised(calls[0], ValueError("not declared")) is None
    assert CODEC.raised(calls[0], Rejected("code", "sentence"))

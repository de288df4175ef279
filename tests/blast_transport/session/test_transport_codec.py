from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.base.errors import LocalProtocolError, RemoteProtocolError
from blast_transport.transports.pipeline.parameters import PipelineParameters, pipeline_phase
from blast_transport.transports.pipeline.protocol.messages import decode_failed, encode_failed
from blast_transport.transports.pipeline.protocol.phase import PipelineTimings
from blast_transport.wire.codec import FRAME, PIECES_PER_REPAIR, REPAIR_BYTES, VERSION, ControlDecoder, encode
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.messages import (
    Abort,
    Credit,
    Digests,
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
from blast_transport.wire.pipeline_bounds import LARGEST_BUFFER, LONGEST_TIMEOUT, SHORTEST_TIMEOUT, SMALLEST_BUFFER
from blast_transport.wire.reasons import MAX_REASON, safe_reason
from blast_transport.wire.transports import OPTICAL, PIPELINE
from tests.support.transport.transport_messages import SAMPLES


def test_stream_decodes_alike_whole_and_byte_by_byte() -> None:
    stream = b"".join(encode(message) for message in SAMPLES)
    assert ControlDecoder().feed(stream) == SAMPLES
    decoder = ControlDecoder()
    assert [message for byte in stream for message in decoder.feed(bytes([byte]))] == SAMPLES


def test_frames_have_golden_bytes() -> None:
    assert encode(Heartbeat(1, 2)).hex() == "0c000000" + "0b00" + "0900" + "01000000" + "0200000000000000"
    assert encode(Nack(1, ((2, 3),))).hex() == (
        "14000000" + "0700" + "0900" + "01000000" + "0200000000000000" + "0300000000000000"
    )
    assert encode(Credit(1, 4, 3, 2)).hex() == "1c000000" + "0600" + "0900" + "01000000" + "".join(
        f"0{number}" + "00" * 7 for number in (4, 3, 2)
    )
    assert encode(Repair(1, ((2, b"abcd"), (9, b"e")))).hex() == (
        "23000000" + "0800" + "0900" + "01000000" + "0200"
        "0200000000000000" + "04000000" + "0900000000000000" + "01000000" + "6162636465"
    )
    assert encode(Abort(1, "no"))[FRAME.size :] == b'{"session":1,"reason":"no"}'


def frame(number: int, body: bytes, version: int = VERSION, length: int | None = None) -> bytes:
    return FRAME.pack(len(body) if length is None else length, number, version) + body


def json_frame(number: int, /, **fields: object) -> bytes:
    return frame(number, json.dumps(fields).encode())


HELLO_FIELDS: dict[str, object] = {
    "session": 1,
    "size": 5,
    "segment_size": 4,
    "block_segments": 1,
    "suite": "blake3",
    "kind": "file",
    "name": "f",
}
PHASE_FIELDS: dict[str, object] = {"session": 1, "number": 1, "transport": OPTICAL, "first": 0}


@pytest.mark.parametrize(
    "stream",
    [
        frame(99, b""),
        frame(11, bytes(12), version=1),
        frame(11, b"", length=13),
        frame(8, b"", length=REPAIR_BYTES + 7 + PIECES_PER_REPAIR * 12),
        frame(8, bytes(6)),
        frame(8, bytes(4) + b"\1\0" + bytes(12)),
        frame(8, bytes(4) + b"\1\0" + bytes(8) + b"\2\0\0\0" + b"x"),
        frame(11, b"abc"),
        frame(7, bytes(4)),
        frame(7, bytes(4) + bytes(16)),
        frame(7, bytes(4) + bytes(15)),
        frame(7, bytes(4) + b"\xff" * 16),
        frame(5, bytes(12)),
        frame(5, bytes(12) + bytes(17)),
        frame(5, bytes(4) + b"\xff" * 8 + bytes(16)),
        frame(9, bytes(12) + bytes(31)),
        frame(1, b"{}"),
        frame(1, b"[]"),
        frame(1, b"\xff"),
        frame(1, b"[" * 100_000),
        frame(2, b'{"session": 1, "max_rate": NaN}'),
        frame(2, b'{"session": 1, "max_rate": 1e999}'),
        frame(2, b'{"session": 1, "max_rate": 1' + b"0" * 400 + b"}"),
        json_frame(2, session=1, max_rate=True),
        json_frame(2, session=1, max_rate=1e-300),
        json_frame(2, session=1, max_rate=0),
        json_frame(2, session=-1),
        json_frame(2, session=1 << 32),
        json_frame(2, session=1, held=[[0]]),
        json_frame(2, session=1, held=[[0, "1"]]),
        json_frame(2, session=1, held={"0": 1}),
        json_frame(1, **HELLO_FIELDS | {"size": -1}),
        json_frame(1, **HELLO_FIELDS | {"size": 1 << 60}),
        json_frame(1, **HELLO_FIELDS | {"size": True}),
        json_frame(1, **HELLO_FIELDS | {"segment_size": 0}),
        json_frame(1, **HELLO_FIELDS | {"block_segments": 65}),
        json_frame(1, **HELLO_FIELDS | {"kind": "device"}),
        json_frame(1, **HELLO_FIELDS | {"key": "ab"}),
        json_frame(1, **HELLO_FIELDS | {"key": "zz"}),
        json_frame(1, **HELLO_FIELDS | {"key": "00" * 32}),
        json_frame(1, **HELLO_FIELDS | {"holes": [[0, 3]]}),
        json_frame(1, **HELLO_FIELDS | {"holes": [[0, 0]]}),
        json_frame(1, **HELLO_FIELDS | {"holes": [[-1, 1]]}),
        json_frame(1, **HELLO_FIELDS | {"holes": [[1, 1], [0, 1]]}),
        json_frame(1, **HELLO_FIELDS | {"holes": [[0, 2], [1, 1]]}),
        json_frame(1, **HELLO_FIELDS | {"holes": [[0]]}),
        json_frame(1, **HELLO_FIELDS | {"size": None, "holes": [[0, 1]]}),
        json_frame(1, **HELLO_FIELDS | {"size": 1 << 25, "holes": [[2 * n, 1] for n in range(4097)]}),
        json_frame(1, **HELLO_FIELDS | {"size": 1 << 25, "holes": [[0, (1 << 22) + 1]]}),
        json_frame(3, **PHASE_FIELDS | {"transport": "pigeon"}),
        json_frame(3, **PHASE_FIELDS | {"first": -1}),
        json_frame(3, **PHASE_FIELDS | {"number": 0}),
        json_frame(3, **PHASE_FIELDS | {"credit": 0}),
        json_frame(3, **PHASE_FIELDS | {"window": 0}),
        json_frame(3, **PHASE_FIELDS | {"token": "zz"}),
        json_frame(3, **PHASE_FIELDS | {"parameters": []}),
        json_frame(13, phase=1),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_invalid_frame_raises_remote_error(stream: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        ControlDecoder().feed(stream)


HOSTILE = "\x1b[2Jall is well\n\u202efdp.exe\x9b31m" + "x" * 9_000


def test_holes_within_limits_are_accepted() -> None:
    max_holes = tuple((2 * number, 1) for number in range(4096))
    for size, holes in ((5, ((0, 1), (1, 1))), (1 << 25, max_holes), (1 << 25, ((5, 1 << 22),))):
        (hello,) = ControlDecoder().feed(json_frame(1, **HELLO_FIELDS | {"size": size, "holes": holes}))
        assert isinstance(hello, Hello) and hello.holes == holes
        assert ControlDecoder().feed(encode(hello)) == [hello]


def test_received_reason_is_short_printable_line() -> None:
    shown = "?[2Jall is well??fdp.exe?31m"
    for message in (Abort(1, HOSTILE), PhaseReady(1, 1, HOSTILE), Fin(1, b"", HOSTILE)):
        (received,) = ControlDecoder().feed(encode(message))
        assert (
            received.reason.startswith(shown) and len(received.reason) == MAX_REASON and received.reason.isprintable()
        )
    assert decode_failed(encode_failed({1: HOSTILE}))[1].startswith(shown)


@given(st.text(max_size=600))
def test_safe_reason_is_printable_and_idempotent(text: str) -> None:
    safe = safe_reason(text)
    assert safe.isprintable() and len(safe) <= MAX_REASON and safe_reason(safe) == safe
    assert safe == text or not text.isprintable() or len(text) > MAX_REASON


def test_unknown_fields_are_ignored() -> None:
    (quit_,) = ControlDecoder().feed(json_frame(12, session=1, reason="over", color="red"))
    assert quit_ == Abort(1, "over")


@pytest.mark.parametrize(
    "message",
    [
        Heartbeat(1 << 32, 0),
        Heartbeat(1, -1),
        EndOfData(1, -1, bytes(32)),
        Abort(1, "x" * (1 << 20)),
        Nack(1, ((0, 1),) * 1025),
        Digests(1, 0, bytes(16 * 1025)),
        Repair(1, ((0, bytes(REPAIR_BYTES + PIECES_PER_REPAIR * 12)),)),
        Repair(1, ((0, b""),) * (1 << 16)),
        Ready(1, ((0, 1 << 60),) * 70_000),
    ],
    ids=lambda message: type(message).__name__,
)
def test_message_out_of_bounds_raises_local_error(message: Message) -> None:
    with pytest.raises(LocalProtocolError):
        encode(message)


def test_phase_check_rejects_invalid_phase() -> None:
    for phase in (Phase(1, 1, OPTICAL, -1), Phase(1, 1, OPTICAL, 0, window=0), Phase(1, 1, "pigeons", 0)):
        with pytest.raises(RemoteProtocolError):
            phase.check()


def test_pipeline_phase_requires_valid_position_and_limits() -> None:
    chain = (("", "10.0.0.1", 9), ("h2", "10.0.0.2", 10))
    parameters = to_parameters(PipelineParameters(chain, 1, 5.0))
    phase = pipeline_phase(Phase(6, 2, PIPELINE, 7, token=b"t" * 16, parameters=parameters))
    assert (phase.chain[1].name, phase.index, phase.first_block, phase.slowest_rate) == ("h2", 1, 7, 5.0)
    far, below = [["", "h", 1], ["a", "h", 1 << 16]], [["", "h", -1], ["a", "h", 1]]
    assert (phase.timings, phase.buffer) == (PipelineTimings(), 0)
    bounds = {"node_timeout": (0.1, 11.0), "buffer": (1, (8 << 20) - 1, (64 << 20) + 1, -1)}
    beyond = [{name: value} for name, values in bounds.items() for value in values]
    for changed in ({"position": 2}, {"position": -1}, {"chain": far}, {"chain": below}, {"chain": 7}, *beyond):
        with pytest.raises(RemoteProtocolError):
            pipeline_phase(Phase(6, 2, PIPELINE, 7, parameters=parameters | changed))
    with pytest.raises(RemoteProtocolError):
        pipeline_phase(Phase(6, 2, PIPELINE, 7))


@given(st.floats(SHORTEST_TIMEOUT, LONGEST_TIMEOUT), st.integers(SMALLEST_BUFFER, LARGEST_BUFFER))
def test_pipeline_phase_uses_timings_and_buffer_of_sender(timeout: float, buffer: int) -> None:
    chain = (("", "10.0.0.1", 9), ("h2", "10.0.0.2", 10))
    parameters = to_parameters(PipelineParameters(chain, 1, 0.0, timeout, buffer))
    phase = pipeline_phase(Phase(6, 2, PIPELINE, 7, parameters=parameters))
    assert (phase.timings.silence, phase.timings.answer, phase.buffer) == (timeout, timeout, buffer)
    assert phase.timings.heartbeat <= timeout / 5, "several heartbeats fit into the timeout"

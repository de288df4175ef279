"""Pipeline messages: each decodes to what was encoded, and matches its row in docs/reference/wire-protocol.md."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from blast_transport.base.errors import LocalProtocolError, RemoteProtocolError
from blast_transport.transports.pipeline.protocol import messages
from blast_transport.transports.pipeline.protocol.messages import (
    LARGEST_CHUNK,
    TEXT_BYTES,
    Data,
    End,
    Forget,
    Get,
    Held,
    Join,
    Message,
    Passed,
    Pget,
    PipelineDecoder,
    PipelineHeartbeat,
    Quit,
    QuitReason,
    Report,
    StorePace,
    encode,
    short,
)
from blast_transport.wire.codec import FRAME, VERSION

SAMPLES: list[Message] = [
    Join(7, 2, bytes(range(16)), "n1"),
    Get(1 << 40),
    Pget(5, 9),
    Forget(77),
    Data(64064),
    End(1 << 50, True),
    End(0, False),
    Quit(QuitReason.INTERRUPTED, "Strg-C – ü"),
    Quit(QuitReason.DONE),
    Report({3: "connection reset", 65535: ""}),
    Report({}),
    Passed({1: "x" * TEXT_BYTES}),
    PipelineHeartbeat(12, True),
    PipelineHeartbeat(12, False),
    PipelineHeartbeat(12, False, starved=True),
    PipelineHeartbeat(12, False, store=StorePace.SLOW),
]


@pytest.mark.parametrize("message", SAMPLES, ids=lambda message: type(message).__name__)
def test_encoded_message_is_decoded_unchanged(message: Message) -> None:
    decoder, stream, decoded = PipelineDecoder(), encode(message), None
    while stream:
        assert decoded is None
        needed = decoder.needed
        decoded = decoder.feed(stream[:needed])
        stream = stream[needed:]
    assert decoded == message


def test_messages_have_golden_bytes() -> None:
    assert encode(Get(258)) == bytes.fromhex("08000000 2100 0900 0201000000000000".replace(" ", ""))
    assert encode(Data(64064)) == bytes.fromhex("40fa0000 2400 0900".replace(" ", ""))
    assert encode(End(1, True)) == bytes.fromhex("09000000 2500 0900 0100000000000000 01".replace(" ", ""))
    assert encode(Report({2: "ab"})) == bytes.fromhex("05000000 2700 0900 0200 02 6162".replace(" ", ""))


def test_decoder_leaves_payload_to_caller() -> None:
    decoder = PipelineDecoder()
    assert decoder.feed(encode(Data(100))) == Data(100)
    assert (decoder.needed, decoder.payload) == (0, 100)
    with pytest.raises(LocalProtocolError):
        decoder.feed(b"x")
    decoder.passed(60)
    with pytest.raises(LocalProtocolError):
        decoder.passed(41)
    decoder.passed(40)
    assert decoder.payload == 0
    header = encode(PipelineHeartbeat(1, False))
    assert decoder.feed(header[:8]) is None
    assert decoder.feed(header[8:]) == PipelineHeartbeat(1, False)


def frame(number: int, body: bytes = b"", version: int = 2, length: int | None = None) -> bytes:
    return struct.pack("<IHH", len(body) if length is None else length, number, version) + body


@pytest.mark.parametrize(
    "stream",
    [
        frame(33, bytes(8), version=1),
        frame(99),
        frame(33, length=9),
        frame(33, bytes(7)),
        frame(34, struct.pack("<QQ", 5, 5)),
        frame(36, length=0),
        frame(36, length=LARGEST_CHUNK + 1),
        frame(37, struct.pack("<QB", 1, 2)),
        frame(38, b""),
        frame(38, bytes([9])),
        frame(38, bytes([1]) + b"\xff"),
        frame(42, bytes(7)),
        frame(42, length=9),
        frame(39, struct.pack("<HB", 1, 5) + b"shor"),
        frame(39, struct.pack("<HB", 1, 0) * 2),
        frame(32, bytes(23)),
        frame(32, bytes(24) + b"\xff\xfe"),
    ],
)
def test_invalid_message_raises_remote_error(stream: bytes) -> None:
    decoder = PipelineDecoder()
    with pytest.raises(RemoteProtocolError):
        while stream:
            needed = decoder.needed
            decoder.feed(stream[:needed])
            stream = stream[needed:]


@pytest.mark.parametrize(
    "message",
    [
        Get(-1),
        Get(1 << 64),
        Data(0),
        Data(LARGEST_CHUNK + 1),
        Join(1, 1, b"short", "n"),
        Join(1, 1, bytes(16), "n" * 256),
    ],
)
def test_unencodable_message_raises_local_error(message: Message) -> None:
    with pytest.raises(LocalProtocolError):
        encode(message)


def test_texts_are_truncated_between_characters() -> None:
    assert short("a" * 300) == "a" * 255
    assert short("ü" * 200) == "ü" * 127
    assert PipelineDecoder().feed(b"") is None


PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "wire-protocol.md").read_text()
SECTION = PAGE[PAGE.index("## The pipeline") : PAGE.index("## Trees")]
ROWS = {
    int(number): (name, re.findall(r"\b(u8|u16|u32|u64|\d+ bytes)\b", body.partition(":")[0]))
    for number, name, body in re.findall(r"^\| (\d+) \| (\w+) \| [^|]+ \| ([^|]+) \|$", SECTION, re.MULTILINE)
}
LETTERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "16 bytes": "16s"}
ON_PAGE: list[tuple[int, Message, tuple[object, ...], bytes]] = [
    (32, Join(7, 2, bytes(range(16)), "n1"), (7, 2, bytes(range(16))), b"n1"),
    (33, Get(1 << 40), (1 << 40,), b""),
    (34, Pget(5, 9), (5, 9), b""),
    (35, Forget(77), (77,), b""),
    (37, End(1 << 50, True), (1 << 50, 1), b""),
    (42, Held(1 << 50), (1 << 50,), b""),
    (38, Quit(QuitReason.LEFT, "ü"), (4,), "ü".encode()),
    (39, Report({3: "gone"}), (3, 4), b"gone"),
    (40, Passed({3: "gone"}), (3, 4), b"gone"),
    (41, PipelineHeartbeat(12, True, False, StorePace.SLOW), (12, 1, 0, 2), b""),
]


def test_each_message_has_row_on_page() -> None:
    assert {number: name.upper() for number, (name, _) in ROWS.items()} == {
        number: kind.__name__.removeprefix("Pipeline").upper() for kind, number in messages._TYPES.items()
    }


@pytest.mark.parametrize(("number", "message", "values", "rest"), ON_PAGE, ids=lambda value: str(value)[:30])
def test_message_body_matches_row_on_page(number, message, values, rest):
    letters = [LETTERS[field] for field in ROWS[number][1] if field in LETTERS]
    body = struct.pack("<" + "".join(letters), *values) + rest
    assert encode(message) == FRAME.pack(len(body), number, VERSION) + body


def test_data_message_is_encoded_as_head_only():
    assert encode(Data(9)) == FRAME.pack(9, 36, VERSION)


def test_page_lists_all_quit_reasons():
    listed = re.search(r"why u8 \(([^)]*)\)", SECTION)
    assert listed is not None
    assert listed[1].split(", ") == [f"{reason.value} {reason.name.lower()}" for reason in QuitReason]

from __future__ import annotations

import pytest

from blast_transport.control import (
    LARGEST_SEGMENT,
    Decoder,
    EndOfData,
    Fin,
    Hello,
    Message,
    Nack,
    Progress,
    Ready,
    Repair,
    Tune,
    encode,
    repair_header,
)
from blast_transport.errors import LocalProtocolError, RemoteProtocolError

MESSAGES: list[Message] = [
    Hello(1, "naïve name.bin", 10_000_000_000, 8956, "239.1.2.3", 5000),
    Hello(2, "unicast", 0, 65536, "", 0),
    Ready(0xFFFFFFFF),
    Nack(3, ((0, 1), (7, 100), (1 << 40, 2))),
    Repair(4, 9, b"data"),
    Progress(5, 12),
    EndOfData(6, bytes(range(32))),
    Fin(7, bytes(32), "", 12.5, 100, 2),
    Fin(8, bytes(32), "disk full", None, 0, 0),
    Tune(9, "239.1.2.4", 5001),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_round_trip(message: Message) -> None:
    assert Decoder().feed(encode(message)) == [message]


def test_whole_and_byte_by_byte_are_the_same() -> None:
    stream = b"".join(encode(message) for message in MESSAGES)
    assert Decoder().feed(stream) == MESSAGES
    decoder = Decoder()
    assert [message for byte in stream for message in decoder.feed(bytes([byte]))] == MESSAGES


def test_golden_frames() -> None:
    assert encode(Ready(1)).hex() == "04000000" + "0200" + "0100" + "01000000"
    assert encode(Nack(1, ((2, 3),))).hex() == (
        "14000000" + "0300" + "0100" + "01000000" + "0200000000000000" + "0300000000000000"
    )
    hello = encode(Hello(1, "f", 5, 4, "239.0.0.1", 80))
    assert hello.hex() == (
        "17000000" + "0100" + "0100" + "01000000" + "0500000000000000" + "04000000" + "ef000001" + "5000" + "66"
    )
    assert encode(Tune(1, "239.0.0.1", 80)).hex() == "0a000000" + "0800" + "0100" + "01000000" + "ef000001" + "5000"


def test_a_repair_may_be_sent_in_two_pieces() -> None:
    assert repair_header(1, 2, 4) + b"abcd" == encode(Repair(1, 2, b"abcd"))


def test_segments_and_their_lengths() -> None:
    hello = Hello(1, "f", 25, 10, "239.0.0.1", 80)
    assert hello.segments == 3
    assert [hello.length(segment) for segment in range(3)] == [10, 10, 5]
    assert Hello(1, "f", 0, 10, "", 0).segments == 0


def frame(number: int, body: bytes, version: int = 1, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return size.to_bytes(4, "little") + number.to_bytes(2, "little") + version.to_bytes(2, "little") + body


@pytest.mark.parametrize(
    "stream",
    [
        frame(99, b""),
        frame(2, bytes(4), version=2),
        frame(2, b"", length=5),
        frame(4, b"", length=LARGEST_SEGMENT + 13),
        frame(2, b"abc"),
        frame(3, bytes(4)),
        frame(3, bytes(4) + bytes(16)),
        frame(3, bytes(4) + bytes(15)),
        frame(6, bytes(4) + bytes(31)),
        frame(1, bytes(22) + b"name"),
        encode(Hello(1, "f", 5, 4, "239.0.0.1", 80))[:-1] + b"\xff",
        encode(Hello(1, "f", 5, 4, "10.0.0.1", 80)),
        encode(Hello(1, "f", 5, 4, "239.0.0.1", 0)),
        encode(Tune(1, "10.0.0.1", 80)),
        encode(Tune(1, "239.0.0.1", 0)),
        encode(Hello(1, "f", 1 << 60, 4, "239.0.0.1", 80)),
        encode(Hello(1, "f", 5, LARGEST_SEGMENT + 1, "239.0.0.1", 80)),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_cannot_be_right_is_the_other_sides_fault(stream: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        Decoder().feed(stream)


def test_an_oversized_frame_is_refused_at_its_header() -> None:
    with pytest.raises(RemoteProtocolError, match="most"):
        Decoder().feed(frame(4, b"", length=0xFFFFFFFF))


@pytest.mark.parametrize(
    "message",
    [
        Ready(1 << 32),
        Hello(1, "n" * 2000, 5, 4, "239.0.0.1", 80),
        Hello(1, "\udcff", 5, 4, "239.0.0.1", 80),
        Hello(1, "f", 5, 4, "nowhere", 80),
        Tune(1, "", 80),
        Nack(1, ((0, 1),) * 1025),
        Repair(1, 0, bytes(LARGEST_SEGMENT + 1)),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_does_not_fit_is_our_fault(message: Message) -> None:
    with pytest.raises(LocalProtocolError):
        encode(message)


def test_a_long_reason_is_cut() -> None:
    (fin,) = Decoder().feed(encode(Fin(1, bytes(32), "x" * 5000, None, 0, 0)))
    assert isinstance(fin, Fin)
    assert fin.reason == "x" * 1024

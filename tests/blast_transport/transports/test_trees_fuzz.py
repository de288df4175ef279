"""Fuzz tests of tree edges: input in any pieces yields a message or the one typed error, and memory stays bounded."""

from __future__ import annotations

import random

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.transports.trees.protocol.fields import HostReport, decode_report, encode_report
from blast_transport.transports.trees.protocol.messages import (
    BlockHeld,
    EdgeCredit,
    EdgeEnd,
    Have,
    Message,
    Open,
    TreeAbort,
    TreeBlock,
    TreeDecoder,
    TreeHeartbeat,
    encode,
)
from tests.support.fuzzing import inputs
from tests.support.transport.transport_data import mutated

INPUTS = inputs(6_000)
ODD_BYTES = (0, 1, 2, 0x24, 0x7F, 0x80, 0xFF)
MAX_SIZE = 500
SAMPLES: list[Message] = [
    Open(3, 7),
    Have(((0, 5), (9, 1))),
    Have(()),
    TreeBlock(7, bytearray(b"a block's bytes")),
    TreeBlock(8, bytearray(MAX_SIZE)),
    TreeBlock(9, bytearray(1)),
    BlockHeld(12),
    EdgeEnd(1 << 40),
    EdgeCredit(5, True),
    EdgeCredit(6, False),
    TreeHeartbeat(),
    TreeAbort("the disk is full"),
]


def check(number: int, size: int) -> None:
    if not 0 < size <= MAX_SIZE:
        raise RemoteProtocolError(f"block {number} of {size} bytes")


def decoded(stream: bytes, chance: random.Random, max_piece: int) -> list[Message | str]:
    """Return the messages of a stream in pieces of up to `max_piece` bytes, with an error as the last entry."""
    reader, found = TreeDecoder(check), list[Message | str]()
    try:
        while stream:
            count, left = 0, min(len(stream), chance.randint(1, max_piece))
            for view in reader.room():
                piece = stream[count : count + min(left, len(view))]
                view[: len(piece)] = piece
                count, left = count + len(piece), left - len(piece)
                assert len(view) <= max(MAX_SIZE, 256)
            stream = stream[count:]
            found += reader.filled(count)
    except RemoteProtocolError:
        found.append("refused")
    return found


def test_messages_decode_for_any_cut_of_stream() -> None:
    chance = random.Random(4)
    for _ in range(INPUTS // 20):
        sent = chance.choices(SAMPLES, k=chance.randint(1, 12))
        stream = b"".join(map(encode, sent))
        for maximum in (1, 3, 100, 10_000):
            assert decoded(stream, chance, maximum) == sent


def test_message_streams_are_decoded_or_rejected() -> None:
    chance = random.Random(5)
    accepted = refused = 0
    for number in range(INPUTS):
        valid = b"".join(map(encode, chance.choices(SAMPLES, k=chance.randint(1, 3))))
        stream = chance.randbytes(chance.randrange(60)) if number % 5 == 0 else mutated(chance, valid, ODD_BYTES)
        found = decoded(stream, chance, 10_000)
        again = decoded(stream, chance, 3)
        # Refused input may arrive together with valid input.
        assert found == again or (found[-1] == again[-1] == "refused" and found[:-1] == again[: len(found) - 1])
        refused += found[-1:] == ["refused"]
        accepted += len(found) > 0 and found[0] != "refused"
        if found and isinstance(found[0], Open | BlockHeld | EdgeEnd | EdgeCredit | TreeHeartbeat | Have | TreeBlock):
            assert stream.startswith(encode(found[0]))
    assert accepted > INPUTS // 10
    assert refused > INPUTS // 10


def test_host_reports_are_decoded_or_rejected() -> None:
    chance = random.Random(6)
    samples = [
        HostReport(),
        HostReport(((1, 2.5e6, True),), ((0, 1, "no way"),), 2, 0.5),
        HostReport(lost=((3, 1, ""), (1, 2, "é"))),
    ]
    accepted = refused = 0
    for _ in range(INPUTS // 4):
        try:
            word = decode_report(mutated(chance, encode_report(chance.choice(samples)), ODD_BYTES), 4)
        except RemoteProtocolError:
            refused += 1
            continue
        accepted += 1
        assert decode_report(encode_report(word), 4).flows == word.flows
    assert accepted > INPUTS // 400
    assert refused > INPUTS // 20

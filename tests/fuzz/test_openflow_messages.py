"""Whatever a switch sends, reading it ends: messages of every type, through the framework's own parsers."""

from __future__ import annotations

import random
import struct

import pytest

from blast_controller.openflow import framework
from blast_controller.openflow.screening import is_readable
from tests.support.fuzzing import inputs

MESSAGES = inputs(20_000)
LONGEST = 400
_parse = framework._ofproto_parser.msg


class _Datapath:
    ofproto, ofproto_parser, address = framework.ofproto_v1_3, framework.ofproto_v1_3_parser, "fuzz"


def message(dice: random.Random) -> bytes:
    """Zeros with some random bytes in them: what lists without an end are made of."""
    kind = dice.choice([0, 0, 4, 6, 10, 10, 11, 12, 19, 19, 19, dice.randrange(256)])
    body = bytearray(dice.randrange(LONGEST))
    for _ in range(dice.randrange(1 + len(body) // 4)):
        body[dice.randrange(len(body))] = dice.choice([1, 4, 8, 16, dice.randrange(256)])
    if kind == 19:
        body[:2] = struct.pack("!H", dice.choice([1, 2, 13, dice.randrange(16)]))
    version = 4 if dice.random() < 0.9 else dice.randrange(256)
    return struct.pack("!BBHI", version, kind, 8 + len(body), dice.randrange(1 << 32)) + bytes(body)


# By a thread: the parsers swallow every exception, the one of a signal too.
@pytest.mark.timeout(60, method="thread")
def test_every_message_that_may_be_parsed_is_parsed_in_the_end() -> None:
    dice = random.Random("openflow messages")
    read = 0
    for _ in range(MESSAGES):
        sent = message(dice)
        try:
            readable = is_readable(sent)
        except ValueError:
            assert sent[0] != 4
            continue
        if readable:
            version, kind, length, xid = framework.HEADER.unpack_from(sent)
            try:
                read += _parse(_Datapath(), version, kind, length, xid, sent) is not None
            except Exception as error:  # noqa: BLE001 - the frameworks' errors have no common class
                assert type(error).__name__ in ("OFPTruncatedMessage", "OFPUnknownVersion")
    assert read > MESSAGES / 20, "some are understood"


def test_a_hello_ends_where_its_elements_do() -> None:
    bitmap = struct.pack("!HHI", 1, 8, 1 << 4)
    for elements, expected in (
        (b"", True),
        (bitmap, True),
        (bitmap + bitmap, True),
        (bytes(4), False),
        (bitmap + b"\0", False),
        (struct.pack("!HH", 1, 3), False),
    ):
        assert is_readable(struct.pack("!BBHI", 5, 0, 8 + len(elements), 1) + elements) is expected

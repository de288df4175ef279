"""docs/protocol.md: whoever follows its table of a pipeline's messages writes the same bytes as we do."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from blast_transport.carriers.pipeline.protocol import messages
from blast_transport.carriers.pipeline.protocol.messages import (
    Alive,
    Data,
    End,
    Forget,
    Get,
    Join,
    Message,
    Passed,
    Pget,
    Quit,
    Report,
    Why,
    encode,
)
from blast_transport.store.store_pace import StorePace
from blast_transport.wire.codec import FRAME, VERSION

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "protocol.md").read_text()
SECTION = PAGE[PAGE.index("## The pipeline") : PAGE.index("## Trees")]
ROWS = {
    int(number): (name, re.findall(r"\b(u8|u16|u32|u64|\d+ bytes)\b", body.partition(":")[0]))
    for number, name, body in re.findall(r"^\| (\d+) \| (\w+) \| [^|]+ \| ([^|]+) \|$", SECTION, re.MULTILINE)
}
LETTERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "16 bytes": "16s"}
SAMPLES: list[tuple[int, Message, tuple[object, ...], bytes]] = [
    (32, Join(7, 2, bytes(range(16)), "n1"), (7, 2, bytes(range(16))), b"n1"),
    (33, Get(1 << 40), (1 << 40,), b""),
    (34, Pget(5, 9), (5, 9), b""),
    (35, Forget(77), (77,), b""),
    (37, End(1 << 50, True), (1 << 50, 1), b""),
    (38, Quit(Why.LEFT, "ü"), (4,), "ü".encode()),
    (39, Report({3: "gone"}), (3, 4), b"gone"),
    (40, Passed({3: "gone"}), (3, 4), b"gone"),
    (41, Alive(12, True, False, StorePace.SLOW), (12, 1, 0, 2), b""),
]


def test_every_message_has_a_row():
    assert {number: name.upper() for number, (name, _) in ROWS.items()} == {
        number: kind.__name__.upper() for kind, number in messages._TYPES.items()
    }


@pytest.mark.parametrize(("number", "message", "values", "rest"), SAMPLES, ids=lambda value: str(value)[:30])
def test_a_body_is_as_its_row_says(number, message, values, rest):
    letters = [LETTERS[field] for field in ROWS[number][1] if field in LETTERS]
    body = struct.pack("<" + "".join(letters), *values) + rest
    assert encode(message) == FRAME.pack(len(body), number, VERSION) + body


def test_data_follows_its_head():
    assert encode(Data(9)) == FRAME.pack(9, 36, VERSION)


def test_the_reasons_to_quit_are_those_of_the_code():
    told = re.search(r"why u8 \(([^)]*)\)", SECTION)
    assert told is not None
    assert told[1].split(", ") == [f"{why.value} {why.name.lower()}" for why in Why]

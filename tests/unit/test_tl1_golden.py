"""Transcripts written by hand from the grammar, each with the messages it holds.

In the `.txt` files a line end stands for CR LF and `\\xNN` for that byte.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from tl1_driver.codec import Decoder
from tl1_driver.messages import Message, Unparsed

DATA = Path(__file__).parent.parent / "data" / "tl1"
TRANSCRIPTS = sorted(path.stem for path in DATA.glob("*.txt"))


def stream(name: str) -> bytes:
    text = (DATA / f"{name}.txt").read_bytes().replace(b"\n", b"\r\n")
    return re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), text)


def plain(message: Message) -> dict[str, object]:
    if isinstance(message, Unparsed):
        return {"type": "Unparsed", "text": message.text, "error": type(message.error).__name__}
    return json.loads(json.dumps({"type": type(message).__name__, **dataclasses.asdict(message)}))


@pytest.mark.parametrize("name", TRANSCRIPTS)
@pytest.mark.parametrize("size", [0, 1, 2, 7], ids=["whole", "bytes", "pairs", "sevens"])
def test_golden_transcript(name: str, size: int) -> None:
    data = stream(name)
    decoder = Decoder()
    chunks = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    found = [plain(message) for chunk in chunks for message in decoder.feed(chunk)]
    assert found == json.loads((DATA / f"{name}.json").read_text())


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 10

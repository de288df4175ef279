"""`blast tl1 decode` as a process, and the JSON form of each message."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tl1_driver.command import described
from tl1_driver.protocol.codec import Tl1Decoder

HEADER = b"\r\n\n   sw1 26-11-20 10:00:00\r\n"
TEXT = (
    b"<ent-crs-fiber::10001,20005:2;\r\nIP 2\r\n<"
    + HEADER
    + b'M  2 COMPLD\r\n   "a;b"\r\n>\r\n'
    + HEADER
    + b'*C 104 REPT ALM EQPT\r\n   "10001:CR,LOS,SA"\r\n;'
    + HEADER
    + b'M  2 COMPLD\r\n   "c"\r\n;'
    + HEADER
    + b"M  3 DENY\r\n   IICM\r\n   /* no such command */\r\n;"
    + b"\x1b[2Jwelcome, \xc3 operator\r\n"
    + HEADER
    + b"M  4 COMPLD\r\n   half an ans"
)
NO_TL1 = "text between messages is neither prompt nor echo nor acknowledgment"
ALARM = '"10001:CR,LOS,SA"'
LINES = [
    {"kind": "acknowledgment", "ctag": "2", "code": "IP"},
    {"kind": "autonomous", "sid": "sw1", "ctag": "104", "code": "*C", "verb": "REPT ALM EQPT", "lines": [ALARM]},
    {"kind": "response", "sid": "sw1", "ctag": "2", "code": "COMPLD", "lines": ['"a;b"', '"c"']},
    {
        "kind": "response",
        "sid": "sw1",
        "ctag": "3",
        "code": "DENY",
        "lines": ["IICM", "/* no such command */"],
        "error": "IICM",
    },
    {"kind": "unparsed", "lines": ["welcome, \\xc3 operator"], "error": NO_TL1},
    {"kind": "unparsed", "lines": ["half an ans"], "error": "the text ends inside a message"},
]
OPEN_QUOTE = HEADER + b'M  1 COMPLD\r\n "'


def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [str(Path(sys.executable).with_name("blast")), "tl1", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=120)


def printed(output: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_messages_as_json(size: int) -> None:
    decoder = Tl1Decoder()
    messages = [m for at in range(0, len(TEXT), size) for m in decoder.feed(TEXT[at : at + size])] + decoder.finish()
    assert [json.loads(json.dumps(described(message))) for message in messages] == LINES


def test_file_and_standard_input_give_same_output(tmp_path: Path) -> None:
    file = tmp_path / "transcript.txt"
    file.write_bytes(TEXT)
    for result in (run("decode", str(file)), run("decode", "-", stdin=TEXT)):
        assert (result.returncode, result.stderr) == (0, b"")
        assert printed(result.stdout) == LINES


@pytest.mark.parametrize("stdin", [b"", OPEN_QUOTE + b"y;" * 600_000], ids=["empty", "open quote and oversized"])
def test_any_text_is_status_0(stdin: bytes) -> None:
    result = run("decode", "-", stdin=stdin)
    assert (result.returncode, result.stderr) == (0, b"")
    assert all(line["kind"] == "unparsed" and len(" ".join(line["lines"])) <= 200 for line in printed(result.stdout))
    assert bool(result.stdout) == bool(stdin)


@pytest.mark.parametrize(("body", "error"), [(b"   XQZT\r\n", "XQZT"), (b"   /* busy */\r\n", "busy"), (b"", None)])
def test_error_of_a_refusal(body: bytes, error: str | None) -> None:
    [message] = Tl1Decoder().feed(HEADER + b"M  1 DENY\r\n" + body + b";")
    assert described(message).get("error") == error


def test_file_that_cannot_be_read_is_status_2(tmp_path: Path) -> None:
    result = run("decode", str(tmp_path / "absent"))
    assert (result.returncode, result.stdout, result.stderr.count(b"\n")) == (2, b"", 1)
    assert str(tmp_path / "absent").encode() in result.stderr
    assert run("decode").returncode == 2

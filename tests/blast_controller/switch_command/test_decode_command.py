"""`blast switch decode` as a process: TL1 messages, the recognized protocol, and errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from blast_controller.cli.switch.command import PROTOCOLS
from blast_controller.cli.switch.decode.decoding import UnknownTranscriptError, records
from blast_controller.cli.switch.decode.recognition import MAX_UNRECOGNIZED, recognize
from blast_controller.cli.switch.decode.tl1 import described
from blast_controller.cli.switch.decode.transcript import TranscriptProtocol
from tests.support.interrupted import ended, started
from tests.support.waiting import eventually
from tl1_driver.protocol.codec import Tl1Decoder

DATA = Path(__file__).parents[2] / "data"
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
HELLO = b'<hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><capabilities/></hello>]]>]]>'


def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [str(Path(sys.executable).with_name("blast")), "switch", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=120)


def printed(output: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


# ------------------------------------------------------------------------------------------------------------ TL1


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_tl1_messages_as_json(size: int) -> None:
    found = list(records(TEXT[at : at + size] for at in range(0, len(TEXT), size)))
    assert json.loads(json.dumps(found)) == LINES


def test_file_and_standard_input_give_same_output(tmp_path: Path) -> None:
    file = tmp_path / "transcript.txt"
    file.write_bytes(TEXT)
    for result in (run("decode", str(file)), run("decode", "-", "--json", "--protocol", "tl1", stdin=TEXT)):
        assert (result.returncode, result.stderr) == (0, b"")
        assert printed(result.stdout) == LINES


@pytest.mark.parametrize("stdin", [b"", OPEN_QUOTE + b"y;" * 600_000], ids=["empty", "open quote and oversized"])
def test_unfinished_text_is_status_0(stdin: bytes) -> None:
    result = run("decode", "-", stdin=stdin)
    assert (result.returncode, result.stderr) == (0, b"")
    lines = printed(result.stdout)
    assert all(line["kind"] == "unparsed" and len(" ".join(line["lines"])) <= 200 for line in lines)
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


# ---------------------------------------------------------------------------------------------------- recognition


@pytest.mark.parametrize(
    ("text", "protocol"),
    [
        (b"<", None),
        (b"; ", None),
        (b"\xff\xfd\x01welcome to <ocs1>\r\n\r\n\n   sw1 26-11-20 10:00:00\r\n", "tl1"),
        (b"<rtrv-crs-fiber::all:1;", "tl1"),
        (b"IP 2\r\n<", "tl1"),
        (b"M  2 COMPLD\r\n", "tl1"),
        (HELLO, "netconf"),
        (b"\n#145\n<nc:rpc xmlns", "netconf"),
        (b"2026-11-29 10:00:00,123 DEBUG x: [host a session 0x1] queueing <?xml?><nc:hello xmlns", "netconf"),
        (b"*2\r\n$6\r\nSELECT\r\n$1\r\n4\r\n", "redis"),
        (b"+PONG\r\n", "redis"),
        (b"-NOAUTH Authentication required.\r\n", "redis"),
        (b'OK\n1790012345.123456 [4 10.0.0.9:51324] "HSET" "a" "b" "c"\n', "redis"),
        (b'{\n  "sync-response": true\n}\n', "gnmi"),
        (b'[\n  {\n    "name": "s1",', "gnmi"),
        (b"no protocol at all: 26-11-20 10:00:00 is a time\n", None),
        (b"*C 104 REPT ALM\r\n", None),
    ],
)
def test_protocol_is_recognized_by_content(text: bytes, protocol: str | None) -> None:
    assert recognize(text) == protocol


def test_first_line_decides_about_the_protocol() -> None:
    assert recognize(b'{\n"a": "*1\\r\\n$"}\nM  2 COMPLD\r\n' + HELLO) == "gnmi"
    assert recognize(HELLO + b"\nM  2 COMPLD\r\n") == "netconf"
    assert recognize(HEADER + b"M  2 COMPLD\r\n" + HELLO) == "tl1"


def test_protocols_of_the_option_are_those_with_a_decoder() -> None:
    assert list(PROTOCOLS) == [protocol.value for protocol in TranscriptProtocol]
    for protocol in TranscriptProtocol:
        assert list(records([], protocol)) == []


def test_unknown_protocol_is_status_2_and_names_the_option() -> None:
    result = run("decode", "-", "--json", stdin=b"\0\0\0\0\x05hello\n")
    assert (result.returncode, result.stdout) == (2, b"")
    [line] = printed(result.stderr)
    assert line["status"] == 2 and "give --protocol" in str(line["error"])


def test_text_without_a_protocol_is_not_stored_without_end() -> None:
    def endless():
        for _ in range(MAX_UNRECOGNIZED // 1000 + 1):
            yield b"x" * 1000
        raise AssertionError("it was read on")

    with pytest.raises(UnknownTranscriptError):
        list(records(endless()))


def test_records_are_printed_while_the_transcript_is_still_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [str(Path(sys.executable).with_name("blast")), "switch", "decode", "-"]
    with out.open("wb") as file, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file) as process:
        assert process.stdin is not None
        process.stdin.write(HELLO)
        process.stdin.flush()
        eventually(lambda: out.read_bytes().endswith(b"\n"), "the record")
        process.stdin.close()
        assert process.wait(60) == 0


def test_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with started("switch", "decode", str(pipe)) as process, pipe.open("wb", buffering=0) as written:
        written.write(b"x")
        assert ended(process) == (130, "", "")

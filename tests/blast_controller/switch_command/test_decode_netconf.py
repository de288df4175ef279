"""Transcripts of NETCONF: captured bytes of both directions, and a recorded log of ncclient."""

from __future__ import annotations

from pathlib import Path

import pytest

from blast_controller.cli.switch.decode.decoding import records
from blast_controller.cli.switch.decode.netconf import netconf_record
from blast_controller.cli.switch.decode.netconf_text import CUT_OFF, OUTSIDE, TOO_LONG, WRONG_LENGTH
from blast_controller.cli.switch.decode.transcript import MAX_TEXT_MESSAGE, Record, TranscriptProtocol

LOG = Path(__file__).parents[2] / "data" / "netconf" / "ncclient_debug.log"
BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
END = b"]]>]]>"
HELLO = (
    f'<?xml version="1.0" encoding="UTF-8"?>\n<hello xmlns="{BASE}"><capabilities><capability>a</capability>'
    "<capability>b</capability></capabilities></hello>"
).encode()
SERVER_HELLO = HELLO.replace(b"</hello>", b"<session-id>4</session-id></hello>")
RPC = f'<nc:rpc xmlns:nc="{BASE}" message-id="1"><nc:commit/></nc:rpc>'.encode()
OK = f'<rpc-reply xmlns="{BASE}" message-id="1"><ok/></rpc-reply>'.encode()
HELLO_RECORD = {"kind": "hello", "from": "client", "capabilities": ["a", "b"]}
SERVER_RECORD = {"kind": "hello", "from": "server", "session_id": 4, "capabilities": ["a", "b"]}
RPC_RECORD = {"kind": "rpc", "message_id": "1", "operation": "commit", "content": None}
OK_RECORD = {"kind": "rpc-reply", "message_id": "1", "ok": True}


def chunks(message: bytes, size: int = 1 << 20) -> bytes:
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\n#%d\n%s" % (len(part), part) for part in parts) + b"\n##\n"


def decoded(text: bytes, size: int = 1 << 30, protocol: TranscriptProtocol | None = None) -> list[Record]:
    return list(records((text[at : at + size] for at in range(0, len(text), size)), protocol))


@pytest.mark.parametrize("size", [1, 13, 1 << 30])
def test_both_directions_and_both_framings_are_read(size: int) -> None:
    text = SERVER_HELLO + END + HELLO + END + chunks(RPC) + chunks(OK, 5) + b"\n" + RPC + END + b"\n" + OK + END
    assert decoded(text, size) == [SERVER_RECORD, HELLO_RECORD, *[RPC_RECORD, OK_RECORD] * 2]


def test_messages_without_framing_are_read() -> None:
    assert decoded(b"\r\n".join([HELLO, RPC, OK])) == [HELLO_RECORD, RPC_RECORD, OK_RECORD]


def test_header_of_a_chunk_inside_a_message_is_text() -> None:
    text = RPC.replace(b"<nc:commit/>", b"<nc:x>\n#3\nabc</nc:x>")
    assert decoded(text + END) == [{**RPC_RECORD, "operation": "x", "content": "#3\nabc"}]


def test_empty_message_ends_with_its_tag() -> None:
    text = f'<rpc-reply xmlns="{BASE}" message-id="7"/>'.encode()
    assert decoded(text + END + RPC) == [
        {"kind": "rpc-reply", "message_id": "7", "data": None},
        RPC_RECORD,
    ]


@pytest.mark.parametrize("size", [1, 13, 1 << 30])
@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"Password:\n" + HELLO + END + b"bye\n", [("Password:", OUTSIDE), HELLO_RECORD, ("bye", OUTSIDE)]),
        (HELLO + END + RPC[:40], [HELLO_RECORD, (RPC[:40].decode(), CUT_OFF)]),
        (HELLO + END + chunks(RPC)[:30], [HELLO_RECORD, (chunks(RPC)[:30].decode().strip(), CUT_OFF)]),
        (
            HELLO + END + b"\n#5\n<rpc>x\n" + RPC + END,
            [HELLO_RECORD, ("<rpc>", WRONG_LENGTH), ("x", OUTSIDE), RPC_RECORD],
        ),
        (HELLO + END + b"\n#9999999999\n" + RPC, [HELLO_RECORD, ("", TOO_LONG), RPC_RECORD]),
    ],
    ids=["around", "cut off", "chunk cut off", "wrong length", "huge chunk"],
)
def test_text_that_is_no_message_is_reported(text: bytes, found: list[object], size: int) -> None:
    expected = [
        {"kind": "unparsed", "lines": one[0].splitlines(), "error": one[1]} if isinstance(one, tuple) else one
        for one in found
    ]
    assert decoded(text, size) == expected


def test_message_without_end_is_bounded() -> None:
    pieces = [b"<rpc>", *[b"x" * (1 << 16)] * (MAX_TEXT_MESSAGE // (1 << 16) + 2), b"\n", RPC]
    first, *others = records(pieces)
    assert first["error"] == TOO_LONG and others[-1] == RPC_RECORD
    assert all(len(str(one["lines"])) < 300 for one in [first, *others[:-1]])


@pytest.mark.parametrize(
    ("content", "record"),
    [
        (
            "<data><a xmlns='x' y='1'><b>2</b><b/><c> d </c></a></data>",
            {"data": {"a": {"@y": "1", "b": ["2", None], "c": "d"}}},
        ),
        ("<count xmlns='x'>3</count>", {"data": {"count": "3"}}),
        (
            "<rpc-error><error-type>application</error-type><error-tag>lock-denied</error-tag><error-severity>error"
            "</error-severity><error-message>held</error-message><error-info><session-id>4</session-id></error-info>"
            "</rpc-error>",
            {
                "errors": [
                    {
                        "type": "application",
                        "tag": "lock-denied",
                        "severity": "error",
                        "message": "held",
                        "info": {"session-id": "4"},
                    }
                ]
            },
        ),
    ],
    ids=["data", "output", "errors"],
)
def test_replies_as_records(content: str, record: Record) -> None:
    message = f'<rpc-reply xmlns="{BASE}" message-id="1">{content}</rpc-reply>'.encode()
    assert netconf_record(message) == {"kind": "rpc-reply", "message_id": "1", **record}


def test_notification_as_record() -> None:
    text = (
        b'<notification xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0"><eventTime>2026-11-29T10:00:00Z'
        b'</eventTime><port-power-alarm xmlns="http://p"><port-id>3</port-id></port-power-alarm></notification>'
    )
    assert netconf_record(text) == {
        "kind": "notification",
        "time": "2026-11-29T10:00:00Z",
        "event": "port-power-alarm",
        "content": {"port-id": "3"},
    }


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"<rpc><a></rpc>", "a message that is no XML"),
        (b"<!DOCTYPE rpc [<!ENTITY a 'b'>]><rpc>&a;</rpc>", "document type definition"),
        (b"<rpc>" + b"<a>" * 100 + b"</a>" * 100 + b"</rpc>", "more than 64 levels"),
        (b"<other/>", "other is no message of NETCONF"),
    ],
)
def test_xml_that_netconf_does_not_permit_is_unparsed(message: bytes, reason: str) -> None:
    record = netconf_record(message)
    assert record["kind"] == "unparsed" and reason in str(record["error"])


# ------------------------------------------------------------------------------------------------ log of ncclient


@pytest.mark.parametrize("size", [1, 100, 1 << 30])
def test_log_of_ncclient_has_every_message_once(size: int) -> None:
    found = decoded(LOG.read_bytes(), size)
    kinds = [(one["kind"], one.get("operation", one.get("from", ""))) for one in found]
    reply = ("rpc-reply", "")
    assert kinds == [
        ("hello", "client"),
        ("hello", "server"),
        ("rpc", "get-config"),
        reply,
        ("rpc", "edit-config"),
        reply,
        ("rpc", "commit"),
        reply,
        ("rpc", "edit-config"),
        reply,
        ("rpc", "close-session"),
        reply,
    ]
    ids = [one.get("message_id") for one in found[2:]]
    assert ids[::2] == ids[1::2] and len(set(ids)) == 5
    [error] = found[9]["errors"]
    assert (error["tag"], error["message"]) == ("invalid-value", "The value '77' is no egress port of this switch.")


def test_log_with_a_line_that_is_cut_off_is_read_on() -> None:
    entry = b"[host a session-id 1] Sending:\n"
    text = entry + b"b'<rpc\n" + entry + b"b'\\n#%d\\n%s\\n##\\n'\n" % (len(RPC), RPC)
    assert decoded(text) == [{"kind": "unparsed", "lines": ["b'<rpc"], "error": CUT_OFF}, RPC_RECORD]


def test_received_message_without_end_stops_at_the_next_entry() -> None:
    entry = b"[host a session-id 1] "
    text = entry + b"Received:\n" + OK[:-8] + b"\n" + entry + b"Received:\n" + OK + b"\n"
    first, second = decoded(text, protocol=TranscriptProtocol.NETCONF)
    assert (first["error"], second) == (CUT_OFF, OK_RECORD)

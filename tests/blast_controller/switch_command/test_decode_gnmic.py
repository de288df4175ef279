"""Transcripts of gNMI in the formats of gnmic."""

from __future__ import annotations

import json

import pytest

from blast_controller.cli.switch.decode.decoding import records
from blast_controller.cli.switch.decode.json_text import CUT_OFF, MAX_JSON_DEPTH, OUTSIDE
from blast_controller.cli.switch.decode.transcript import MAX_TEXT_MESSAGE, Record

PATH = "OCS_CROSS_CONNECT_TABLE/7A-9B"
PLACE = {"source": "ocs1:8080", "timestamp": 1790012345123456789, "time": "2026-09-21T17:39:05.123456789Z"}
VALUE = {"status": "enabled", "insertion_loss_dB": "1.20"}
NOTIFICATION = {**PLACE, "target": "STATE_DB", "updates": [{"Path": PATH, "values": {PATH: VALUE}}], "deletes": ["x"]}
SET = {**PLACE, "results": [{"operation": "UPDATE", "path": "OCS_CROSS_CONNECT/7A-9B"}]}
CAPABILITIES = {
    "version": "0.10.0",
    "supported-models": [{"name": "sonic-ocs", "version": "2024-11-21"}],
    "encodings": ["JSON_IETF"],
}
EVENT = {"name": "s1", "timestamp": 17, "tags": {"source": "ocs1:8080"}, "values": {"a": "connected"}}
RECORD = {
    "kind": "notification",
    **PLACE,
    "target": "STATE_DB",
    "updates": [{"path": PATH, "value": VALUE}],
    "deletes": ["x"],
}


def decoded(text: str, size: int = 1 << 30) -> list[Record]:
    raw = text.encode()
    return list(records(raw[at : at + size] for at in range(0, len(raw), size)))


@pytest.mark.parametrize("size", [1, 7, 1 << 30])
@pytest.mark.parametrize("indent", [None, 2])
def test_messages_on_one_line_or_several(indent: int | None, size: int) -> None:
    values: list[object] = [NOTIFICATION, {"sync-response": True}, [NOTIFICATION, NOTIFICATION], SET, CAPABILITIES]
    values += [[EVENT, EVENT]]
    text = "\n".join(json.dumps(value, indent=indent) for value in values)
    set_response = {"kind": "set_response", **SET}
    capabilities = {"kind": "capabilities", **{name.replace("-", "_"): found for name, found in CAPABILITIES.items()}}
    assert decoded(text, size) == [
        RECORD,
        {"kind": "sync_response", "sync_response": True},
        RECORD,
        RECORD,
        set_response,
        capabilities,
        {"kind": "event", **EVENT},
        {"kind": "event", **EVENT},
    ]


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        ({"paths": ["a"], "encoding": "JSON_IETF"}, "get_request"),
        ({"delete": ["OCS_CROSS_CONNECT/1A-2B"]}, "set_request"),
        ({"update": [{"path": "a", "val": "b"}]}, "set_request"),
        ({"subscribe": {"mode": "STREAM"}}, "subscribe_request"),
    ],
)
def test_printed_requests_have_kinds(request_: Record, kind: str) -> None:
    assert decoded(f"Some Request:\n{json.dumps(request_)}")[-1] == {"kind": kind, **request_}


def test_titles_of_printed_requests_are_left_out() -> None:
    text = f'Get Request:\n{{"paths": ["a"]}}\nGet Response:\n{json.dumps([NOTIFICATION])}\n'
    assert [one["kind"] for one in decoded(text)] == ["get_request", "notification"]


def test_notifications_with_extensions_are_read() -> None:
    assert decoded(json.dumps({"notifications": [NOTIFICATION], "extensions": [1]})) == [RECORD]


@pytest.mark.parametrize("size", [1, 7, 1 << 30])
def test_other_text_is_reported(size: int) -> None:
    text = 'Error: "quote" not } closed\n{"sync-response": true}\n{"a": 1}\n[1, 2]\n{"b": tru}\n{"c": "\\"}'
    first, sync, unknown, one, two, malformed, cut = decoded(text, size)
    assert (first["error"], first["lines"]) == (OUTSIDE, ['Error: "quote" not } closed'])
    assert sync["kind"] == "sync_response"
    assert unknown["error"] == one["error"] == two["error"] == "a value of unknown kind"
    assert "no JSON" in str(malformed["error"]) and cut["error"] == CUT_OFF


def test_update_with_several_values_is_left_as_it_is() -> None:
    update = {"Path": "a", "values": {"a": 1, "b": 2}}
    assert decoded(json.dumps({"updates": [update, 3]})) == [{"kind": "notification", "updates": [update, 3]}]


def test_member_named_kind_does_not_replace_the_kind() -> None:
    assert decoded('{"kind": "x", "updates": []}') == [{"kind": "notification", "updates": []}]


@pytest.mark.parametrize(
    "text",
    ["[" * (MAX_JSON_DEPTH + 1) + "]" * (MAX_JSON_DEPTH + 1), '{"a": ' + "9" * 5000 + "}"],
    ids=["deep", "long number"],
)
def test_values_that_python_cannot_read_are_unparsed(text: str) -> None:
    assert [one["kind"] for one in decoded('{"sync-response": true}\n' + text)] == ["sync_response", "unparsed"]


def test_value_without_end_is_bounded() -> None:
    pieces = [b'{"a": "', *[b"x" * (1 << 16)] * (MAX_TEXT_MESSAGE // (1 << 16) + 1)]
    first, *others = records(pieces)
    assert "more than" in str(first["error"]) and all(len(str(one)) < 500 for one in [first, *others])

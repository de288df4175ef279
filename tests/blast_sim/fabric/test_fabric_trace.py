"""Traces of the rack fabric: written here by hand, read back, and rejected when they are incomplete."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_client.cli.command import main
from blast_sim.base.wrong_input import InputError
from blast_sim.fabric.trace import (
    HEADER,
    MAGIC,
    NONE,
    OVER_PAYLOAD_LINE,
    RECORD,
    DropReason,
    TraceEventKind,
    read_trace,
)

EVENTS = [
    (0, TraceEventKind.FRAME_IN, 0, 3, 1, NONE, 1522, 0),
    (2_203, TraceEventKind.PACKET_SENT, OVER_PAYLOAD_LINE, 3, 1, 17, 5, 2**63),
    (2_203, TraceEventKind.PACKET_SENT, 0, 1023, 1, 18, 5, 0),
    (3_000_000, TraceEventKind.RESUMED, 0, 3, NONE, 17, DropReason.TIMEOUT, 0),
]
HEAD = HEADER.pack(MAGIC, 1, 32)


def trace(path: Path, events: list[tuple[int, ...]], head: bytes = HEAD) -> Path:
    path.write_bytes(head + np.array(events, RECORD).tobytes())
    return path


def test_record_has_the_documented_bytes(tmp_path: Path) -> None:
    data = trace(tmp_path / "t", EVENTS[1:2]).read_bytes()
    assert data[:16] == b"BLASTRF1" + bytes([1, 0, 0, 0, 32, 0, 0, 0])
    assert data[16:24] == (2_203).to_bytes(8, "little") and data[24:28] == bytes([8, 1, 3, 0])
    assert [int.from_bytes(data[at : at + 4], "little") for at in (28, 32, 36)] == [1, 17, 5]
    assert data[40:] == bytes([0] * 7 + [128]) and len(data) == 48


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_reader_returns_the_written_events(tmp_path: Path, at_once: int) -> None:
    parts = list(read_trace(trace(tmp_path / "t", EVENTS), at_once))
    assert [tuple(event) for part in parts for event in part.tolist()] == EVENTS
    assert all(len(part) <= at_once for part in parts)
    assert list(read_trace(trace(tmp_path / "nothing", []), at_once)) == []


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"", "is no trace of the rack fabric: name a file that"),
        (b"BLASTRF2" + HEAD[8:], "is no trace of the rack fabric"),
        (HEAD[:12], "is cut off in its header: write the trace again"),
        (HEADER.pack(MAGIC, 2, 32), "version 2 with records of 32 bytes, and only version 1 with 32 is known: "),
        (HEADER.pack(MAGIC, 1, 40), "is a trace of version 1 with records of 40 bytes"),
    ],
)
def test_reader_rejects_other_files_and_versions(tmp_path: Path, head: bytes, message: str) -> None:
    (tmp_path / "t").write_bytes(head)
    with pytest.raises(InputError, match=message):
        list(read_trace(tmp_path / "t"))


def test_reader_rejects_a_truncated_trace(tmp_path: Path) -> None:
    path = trace(tmp_path / "t", EVENTS)
    path.write_bytes(path.read_bytes()[: 16 + 4 * 32 - 1])
    with pytest.raises(InputError, match="is cut off in the middle of an event: write the trace again"):
        list(read_trace(path))


@pytest.mark.parametrize("kind", [0, 24])
def test_reader_rejects_an_unknown_event_kind(tmp_path: Path, kind: int) -> None:
    with pytest.raises(InputError, match=f"has an event of the unknown kind {kind}: "):
        list(read_trace(trace(tmp_path / "t", [EVENTS[0], (1, kind, 0, 0, 0, 0, 0, 0)])))


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_rejected_in_a_sentence(tmp_path_factory, data: bytes, headed: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(HEAD + data if headed else data)
    try:
        assert sum(map(len, read_trace(path))) == len(data) // 32
    except InputError as wrong:
        assert str(path) in str(wrong) and "\n" not in str(wrong)


def test_command_counts_events_by_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trace(tmp_path / "t", EVENTS)
    assert main(["sim", "fabric-trace", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "version": 1,
        "events": 4,
        "kinds": [
            {"kind": "frame_in", "events": 1, "first_ps": 0, "last_ps": 0},
            {"kind": "packet_sent", "events": 2, "first_ps": 2203, "last_ps": 2203},
            {"kind": "resumed", "events": 1, "first_ps": 3_000_000, "last_ps": 3_000_000},
        ],
    }
    assert main(["sim", "fabric-trace", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["packet_sent", "2", "2203", "2203"]


def test_command_rejects_files_that_are_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t").write_bytes(b"something")
    assert main(["sim", "fabric-trace", str(tmp_path / "t")]) == 2
    assert main(["sim", "fabric-trace", str(tmp_path / "nothing")]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2 and all(line.startswith("blast: ") for line in errors)

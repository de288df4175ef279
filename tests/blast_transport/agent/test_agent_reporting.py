"""What an agent tells: events, a log that strangers cannot flood or forge, counts at the door, the service manager."""

from __future__ import annotations

import io
import json
import logging
import socket
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.agent.notify import READY, STOPPING, AgentNotifier
from blast_transport.agent.process import _report
from blast_transport.agent.reporting import (
    AgentJsonFormatter,
    AgentTextFormatter,
    RefusalCounters,
    RefusalReason,
    Reporter,
)
from blast_transport.base.report import Received
from blast_transport.links.connection_limits import ConnectionLimiter


def record(message: str, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("blast.agent", logging.INFO, __file__, 1, "%s", (message,), None)
    made.blast_fields = fields
    return made


def test_events_are_lines_of_json():
    out = io.StringIO()
    Reporter(out).report("ready", "listening", host="::1", port=80, light=None)
    assert json.loads(out.getvalue()) == {"event": "ready", "host": "::1", "port": 80}
    assert out.getvalue().endswith("\n")


def test_without_a_stream_events_are_in_the_log_only(caplog):
    with caplog.at_level(logging.INFO):
        Reporter().report("ready", "listening on h:1", port=1)
    assert caplog.records[0].getMessage() == "listening on h:1"
    assert caplog.records[0].blast_fields == {"event": "ready", "port": 1}


def test_received_files_are_events():
    out = io.StringIO()
    _report(Reporter(out), Received(7, "10.0.0.9:1", "/data/a", 5, "00", 0.5, 0, 0, None))
    assert json.loads(out.getvalue())["file"] == "/data/a"


def test_json_lines_have_their_fields_and_keep_their_own():
    line = json.loads(AgentJsonFormatter().format(record("hello\n", event="e", level="forged", port=3)))
    assert line["message"] == "hello\n" and line["level"] == "info" and line["port"] == 3 and line["event"] == "e"
    assert line["time"].endswith("Z")


def test_strangers_cannot_forge_lines():
    line = AgentTextFormatter().format(record("refused 1.2.3.4\n2026-01-01 INFO all is well\x1b[2J"))
    assert "\n" not in line and "\x1b" not in line and line.count("INFO") == 2


def test_refusals_are_all_counted_and_seldom_told():
    out, now = io.StringIO(), [100.0]
    refusals = RefusalCounters(Reporter(out), lambda: now[0])
    for _ in range(50):
        refusals.add(RefusalReason.CROWD, "10.0.0.9:1", "full")
    refusals.add(RefusalReason.PROTOCOL, "10.0.0.8:1", "garbage")
    now[0] += 1
    refusals.add(RefusalReason.CROWD, "10.0.0.9:1", "full")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["category"], line["total"]) for line in lines] == [("crowd", 1), ("protocol", 1), ("crowd", 51)]
    assert refusals.totals == {RefusalReason.CROWD: 51, RefusalReason.PROTOCOL: 1}


STEPS = st.lists(st.tuples(st.sampled_from(["enter", "welcome", "leave"]), st.sampled_from("abc")), max_size=60)


@given(steps=STEPS)
def test_the_door_counts_like_a_list_of_who_is_there(steps):
    door = ConnectionLimiter(connections=6, unauthenticated=4, unauthenticated_per_host=2)
    strangers: list[str] = []
    guests: list[str] = []
    for step, host in steps:
        if step == "enter":
            crowded = len(strangers) + len(guests) >= 6 or len(strangers) >= 4 or Counter(strangers)[host] >= 2
            crowded = crowded or Counter(guests)[host] >= 3
            assert bool(door.enter(host)) == crowded
            strangers += [] if crowded else [host]
        elif step == "welcome" and host in strangers:
            strangers.remove(host)
            guests.append(host)
            door.welcome(host)
        elif step == "leave" and host in strangers + guests:
            guest = host in guests
            (guests if guest else strangers).remove(host)
            door.leave(host, guest=guest)
        assert (door.unauthenticated, door.guests) == (len(strangers), len(guests))


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_the_service_manager_hears(tmp_path, kind):
    name = str(tmp_path / "notify") if kind == "path" else f"@{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name[1:]}" if kind == "abstract" else name)
        listening.settimeout(30)
        AgentNotifier({"NOTIFY_SOCKET": name}).send(READY, "STATUS=0 sessions")
        AgentNotifier({"NOTIFY_SOCKET": name}).send(STOPPING)
        assert [listening.recv(100), listening.recv(100)] == [b"READY=1\nSTATUS=0 sessions", b"STOPPING=1"]

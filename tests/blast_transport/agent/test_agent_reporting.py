"""Events, logs and connection counts of an agent, and its notifications to the service manager."""

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


def test_reporter_writes_events_as_json_lines():
    out = io.StringIO()
    Reporter(out).report("ready", "listening", host="::1", port=80, light=None)
    assert json.loads(out.getvalue()) == {"event": "ready", "host": "::1", "port": 80}
    assert out.getvalue().endswith("\n")


def test_reporter_without_stream_only_logs_events(caplog):
    with caplog.at_level(logging.INFO):
        Reporter().report("ready", "listening on h:1", port=1)
    assert caplog.records[0].getMessage() == "listening on h:1"
    assert caplog.records[0].blast_fields == {"event": "ready", "port": 1}


def test_received_file_is_reported_as_event():
    out = io.StringIO()
    _report(Reporter(out), Received(7, "10.0.0.9:1", "/data/a", 5, "00", 0.5, 0, 0, None))
    assert json.loads(out.getvalue())["file"] == "/data/a"


def test_json_log_fields_do_not_override_own_fields():
    line = json.loads(AgentJsonFormatter().format(record("hello\n", event="e", level="forged", port=3)))
    assert line["message"] == "hello\n" and line["level"] == "info" and line["port"] == 3 and line["event"] == "e"
    assert line["time"].endswith("Z")


def test_text_log_escapes_newlines_and_control_characters():
    line = AgentTextFormatter().format(record("refused 1.2.3.4\n2026-01-01 INFO all is well\x1b[2J"))
    assert "\n" not in line and "\x1b" not in line and line.count("INFO") == 2


def test_refusals_are_counted_and_rate_limited_in_log():
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
def test_limiter_matches_model_of_connection_lists(steps):
    limiter = ConnectionLimiter(connections=6, unauthenticated=4, unauthenticated_per_host=2)
    unauthenticated: list[str] = []
    guests: list[str] = []
    for step, host in steps:
        if step == "enter":
            crowded = (
                len(unauthenticated) + len(guests) >= 6
                or len(unauthenticated) >= 4
                or Counter(unauthenticated)[host] >= 2
            )
            crowded = crowded or Counter(guests)[host] >= 3
            assert bool(limiter.enter(host)) == crowded
            unauthenticated += [] if crowded else [host]
        elif step == "welcome" and host in unauthenticated:
            unauthenticated.remove(host)
            guests.append(host)
            limiter.welcome(host)
        elif step == "leave" and host in unauthenticated + guests:
            guest = host in guests
            (guests if guest else unauthenticated).remove(host)
            limiter.leave(host, guest=guest)
        assert (limiter.unauthenticated, limiter.guests) == (len(unauthenticated), len(guests))


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_notifier_sends_state_to_service_manager(tmp_path, kind):
    name = str(tmp_path / "notify") if kind == "path" else f"@{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name[1:]}" if kind == "abstract" else name)
        listening.settimeout(30)
        AgentNotifier({"NOTIFY_SOCKET": name}).send(READY, "STATUS=0 sessions")
        AgentNotifier({"NOTIFY_SOCKET": name}).send(STOPPING)
        assert [listening.recv(100), listening.recv(100)] == [b"READY=1\nSTATUS=0 sessions", b"STOPPING=1"]

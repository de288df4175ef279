"""One log line for each grant, change, release, failure and drift, with the fields to search by."""

from __future__ import annotations

import logging

import pytest

from blast_controller.core.model.events import (
    DeviceConnected,
    DeviceDisconnected,
    PortChanged,
    StepConfirmed,
    StepFailed,
)
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind, Grant, RequestEvent, Timings
from blast_controller.ops.activity import DriftWatch, device_line, request_line, write_line

GRANT = Grant(
    0, ("h2", "h3"), "239.77.0.1", 5001, 1e10, 24.0, 48.0, 0, (), 7, Timings(0.0004, 0.003, 0.0142, 0.0162)
)  # fmt: skip
KEY = ("default", "nightly")


def event(kind, **more):
    return RequestEvent(1, kind, 0, **more)


def test_grant_has_one_line_with_its_fields():
    line = request_line(KEY, event(EventKind.GRANTED, grant=GRANT))
    assert (line.level, line.event) == (logging.INFO, "grant")
    assert line.message == "granted nightly: group 239.77.0.1, 2 receivers, reservation 7, 16.2 ms after the request"
    expected = {"tenant": "default", "request": "nightly", "reservation": 7, "total_ms": 16.2}
    assert expected.items() <= line.known.items()


@pytest.mark.parametrize(
    ("happened", "level", "name"),
    [
        (event(EventKind.CHANGED, grant=GRANT), logging.INFO, "change"),
        (event(EventKind.CHANGED), logging.INFO, "change"),
        (event(EventKind.CHANGED, grant=GRANT, reason="a ToR refused"), logging.WARNING, "failure"),
        (event(EventKind.PAUSED, reason="preempted"), logging.INFO, "pause"),
        (event(EventKind.REVOKED, reason="light lost"), logging.WARNING, "revoke"),
        (event(EventKind.ENDED, reason="done", state=PartState.DONE), logging.INFO, "release"),
        (event(EventKind.ENDED, reason="lease over", state=PartState.EXPIRED), logging.INFO, "release"),
        (event(EventKind.ENDED, reason="no light", state=PartState.FAILED), logging.WARNING, "failure"),
    ],
)
def test_event_of_a_request_has_level_and_name(happened, level, name):
    line = request_line(KEY, happened)
    assert (line.level, line.event, line.known["request"]) == (level, name, "nightly")
    assert line.known["reason"] == happened.reason


def test_every_event_kind_has_a_message():
    for kind in EventKind:
        assert request_line(KEY, event(kind, grant=GRANT, reason="reason", state=PartState.DONE)).message


def test_failed_step_names_device_and_reservation():
    line = device_line(StepFailed(1, 7, 2, "the table is full"))
    assert (line.level, line.event) == (logging.WARNING, "failure")
    assert line.known == {"device": "tor:0000000000000001", "reservation": 7, "reason": "the table is full"}


def test_connected_and_lost_tors_and_ports_have_a_line():
    assert device_line(DeviceConnected(0xA)).event == "device_up"
    assert device_line(DeviceDisconnected(0xA, "closed")).message == "tor:000000000000000a is disconnected: closed"
    assert device_line(PortChanged(0xA, 49, False, "link down")).event == "port_down"
    assert device_line(PortChanged(0xA, 49, True)).event == "port_up"


@pytest.mark.parametrize(
    "routine", [StepConfirmed(1, 7, 2, 0.001), DeviceConnected("ocs1"), DeviceDisconnected("ocs1", "closed")]
)
def test_routine_events_have_no_line(routine):
    assert device_line(routine) is None
    write_line(device_line(routine))


def test_drift_is_logged_when_it_changes():
    drift = DriftWatch()
    assert drift.occupied("ocs1", {}) is None
    circuit, other = CrossConnect("ocs1", 4, 7), CrossConnect("ocs1", 5, 8)
    occupied = {"splitter:s1": circuit, "port:r1/49": circuit}
    found = drift.occupied("ocs1", occupied)
    assert (found.level, found.event, found.known) == (
        logging.WARNING,
        "drift",
        {"device": "switch:ocs1", "foreign": 2},
    )
    assert "ocs1 has circuits that this controller did not set: 4 to 7 (port:r1/49, splitter:s1); end" in found.message
    assert drift.occupied("ocs1", dict(occupied)) is None
    assert "5 to 8 (splitter:s1)" in drift.occupied("ocs1", occupied | {"splitter:s1": other}).message
    cleared = drift.occupied("ocs1", {})
    assert cleared.level == logging.INFO and cleared.known["foreign"] == 0
    assert drift.rules(1, 12).level == logging.INFO, "the packet network's own rules are no fault"


def test_write_line_logs_message_and_fields(caplog):
    with caplog.at_level(logging.INFO, "blast.activity"):
        write_line(request_line(KEY, event(EventKind.GRANTED, grant=GRANT)))
    (record,) = caplog.records
    assert record.blast_fields["event"] == "grant" and record.blast_fields["reservation"] == 7

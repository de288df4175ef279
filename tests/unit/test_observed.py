"""The runtime with its log: what was granted, released, refused and found is written, with fields, as it happens."""

from __future__ import annotations

import logging
import socket
import threading

import pytest

from blast_controller.core.events import DeviceUp, RequestSubmitted, WithdrawAsked
from blast_controller.core.fabric import CrossConnect
from blast_controller.observed import DeviceReports, ToldWaitingRoom
from blast_controller.ops.notify import Notifier, Watchdog
from tests.support.core import key_of, make_fabric, multicast
from tests.support.runtime import PATIENCE, running


@pytest.fixture
def lab(caplog):
    with running(make_fabric(4, [4])) as lab, caplog.at_level(logging.INFO, "blast.activity"):
        lab.runtime.waiting = ToldWaitingRoom()
        yield lab


def told(caplog):
    return [record.blast_fields for record in caplog.records if record.name == "blast.activity"]


def grants(lab):
    return [event.grant for event in lab.look().request(key_of("a")).events if event.grant is not None]


def test_a_grant_and_its_release(lab, caplog):
    lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])))
    lab.settle()
    lab.runtime.post(WithdrawAsked(key_of("a")))
    lab.settle()
    assert [(line["event"], line["request"]) for line in told(caplog)] == [("grant", "a"), ("release", "a")]
    assert told(caplog)[0]["reservation"] in {line.reservation for line in grants(lab)}


def test_a_step_that_fails(lab, caplog):
    reports = DeviceReports(lab.runtime)
    lab.devices.denied = "the table is full"
    lab.devices._runtime = reports  # the devices report by this door
    lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])))
    lab.settle()
    assert next(line["reason"] for line in told(caplog)) == "the table is full"
    assert {line["event"] for line in told(caplog)} == {"failure"}


def test_drift_on_an_optical_switch(lab, caplog):
    fabric = lab.look().fabric
    (switch,) = fabric.switches
    port = fabric.ports_on(switch)[0]
    reports = DeviceReports(lab.runtime)
    for circuits in ({CrossConnect(switch, port.input, 999)}, {CrossConnect(switch, port.input, 999)}, set()):
        reports.post(DeviceUp(switch, frozenset(circuits)))
    lab.settle()
    drifts = [(line["device"], line["foreign"]) for line in told(caplog) if line["event"] == "drift"]
    assert drifts == [(f"switch:{switch}", 1), (f"switch:{switch}", 0)], "told when it changes, not at each look"


def test_the_watchdog_falls_silent_when_the_core_hangs(lab, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(PATIENCE)
        notifier = Notifier({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"})
        watchdog = Watchdog(notifier, lambda errand: lab.runtime.call(lambda turn: errand()))
        watchdog.beat()
        assert manager.recv(100) == b"WATCHDOG=1"
        lab.settle()  # a sign of life has left before it is noted that it did
        hang = threading.Event()
        lab.runtime.call(lambda turn: hang.wait(PATIENCE))
        for _ in range(3):
            watchdog.beat()
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(100)
        hang.set()
        manager.settimeout(PATIENCE)
        assert manager.recv(100) == b"WATCHDOG=1"

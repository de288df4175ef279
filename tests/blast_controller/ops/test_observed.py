"""The runtime logs grants, releases, failures and drift, with fields."""

from __future__ import annotations

import logging
import socket
import threading

import pytest

from blast_controller.core.model.events import DeviceConnected, RequestSubmitted, WithdrawRequested
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.ops.activity_log import ActivityLog
from blast_controller.ops.notify import Notifier, Watchdog
from tests.support.controller.core import key_of, make_fabric, multicast
from tests.support.controller.runtime import TIMEOUT, running


@pytest.fixture
def lab(caplog):
    with running(make_fabric(4, [4]), observers=[ActivityLog()]) as lab, caplog.at_level(logging.INFO):
        yield lab


def logged(caplog):
    return [record.blast_fields for record in caplog.records if record.name == "blast.activity"]


def grants(lab):
    return [event.grant for event in lab.look().request(key_of("a")).events if event.grant is not None]


def test_grant_and_release_are_logged(lab, caplog):
    lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])))
    lab.settle()
    lab.runtime.post(WithdrawRequested(key_of("a")))
    lab.settle()
    assert [(line["event"], line["request"]) for line in logged(caplog)] == [("grant", "a"), ("release", "a")]
    assert logged(caplog)[0]["reservation"] in {line.reservation for line in grants(lab)}


def test_failed_step_is_logged_with_its_reason(lab, caplog):
    lab.devices.denied = "the table is full"
    lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])))
    lab.settle()
    assert next(line["reason"] for line in logged(caplog)) == "the table is full"
    assert {line["event"] for line in logged(caplog)} == {"failure"}


def test_drift_of_a_switch_is_logged_when_it_changes(lab, caplog):
    fabric = lab.look().fabric
    (switch,) = fabric.switches
    port = fabric.ports_on(switch)[0]
    for circuits in ({CrossConnect(switch, port.input, 999)}, {CrossConnect(switch, port.input, 999)}, set()):
        lab.runtime.post(DeviceConnected(switch, frozenset(circuits)))
    lab.settle()
    drifts = [(line["device"], line["foreign"]) for line in logged(caplog) if line["event"] == "drift"]
    assert drifts == [(f"switch:{switch}", 1), (f"switch:{switch}", 0)], "logged when it changes, not at each report"


class Broken:
    """An observer whose methods fail."""

    def __init__(self) -> None:
        self.calls = 0

    def on_event(self, event, core) -> None:
        self.calls += 1
        raise ValueError("cannot observe")

    def on_command(self, command) -> None:
        raise AssertionError("it was notified although it had failed")

    def on_published(self, snapshot, changes) -> None:
        assert not self.calls, "it was notified although it had failed"


class Toy:
    """An observer as users write it: it imports nothing of the package."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_event(self, event, core) -> None:
        self.seen.append(f"{type(event).__name__} with {core.pending_count} waiting")

    def on_command(self, command) -> None:
        self.seen.append(type(command).__name__)

    def on_decision(self, seconds) -> None:
        self.seen.append("decision")

    def on_commit(self, records, seconds) -> None:
        self.seen.append("commit")

    def on_published(self, snapshot, changes) -> None:
        assert len(snapshot.trees) <= 1
        self.seen.append("published")


def test_failing_observer_is_disabled_and_commands_follow_the_commit(caplog):
    broken, toy = Broken(), Toy()
    with running(make_fabric(4, [4]), observers=[broken, toy]) as lab:
        toy.seen.clear()
        lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])))
        lab.settle()
        assert grants(lab)
    assert broken.calls == 1 and "Broken failed and is disabled" in caplog.text
    assert toy.seen[0] == "RequestSubmitted with 1 waiting"
    assert toy.seen[1:3] == ["decision", "commit"]
    assert toy.seen.index("commit") < toy.seen.index("published") < toy.seen.index("SetCircuits")
    assert toy.seen.index("SetCircuits") < toy.seen.index("StepConfirmed with 0 waiting") < toy.seen.index("Publish")


class Counting:
    """An observer of commits only."""

    def __init__(self) -> None:
        self.commits = 0

    def on_commit(self, records, seconds) -> None:
        self.commits += 1


def test_observer_of_one_method_is_notified_of_nothing_else(caplog):
    counting = Counting()
    with running(make_fabric(4, [4]), observers=[counting]) as lab:
        lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])))
        lab.settle()
    assert counting.commits and "disabled" not in caplog.text


def test_watchdog_sends_nothing_while_the_core_hangs(lab, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(TIMEOUT)
        notifier = Notifier({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"})
        watchdog = Watchdog(notifier, lambda errand: lab.runtime.call(lambda context: errand()))
        watchdog.beat()
        assert manager.recv(100) == b"WATCHDOG=1"
        lab.settle()  # the datagram leaves before the watchdog notes that it was sent
        hang = threading.Event()
        lab.runtime.call(lambda context: hang.wait(TIMEOUT))
        for _ in range(3):
            watchdog.beat()
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(100)
        hang.set()
        manager.settimeout(TIMEOUT)
        assert manager.recv(100) == b"WATCHDOG=1"

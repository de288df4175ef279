"""The controller notifies the service manager of readiness and liveness by the protocol of sd_notify(3)."""

from __future__ import annotations

import os
import socket
import uuid

import pytest

from blast_controller.ops.notify import READY, STOPPING, Notifier, Watchdog


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """Yield (environment, a function that reads one datagram) of a service manager's socket."""
    name = f"@blast-test-{uuid.uuid4().hex}" if request.param == "abstract" else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name[1:]}" if name.startswith("@") else name)
        listening.settimeout(30)
        yield {"NOTIFY_SOCKET": name}, lambda: listening.recv(4096).decode().split("\n")


def received_nothing(read, notifier):
    """Return whether no datagram was sent before this call."""
    notifier.send("MARK=1")
    return read() == ["MARK=1"]


def test_ready_and_stopping_are_datagrams(manager):
    environment, read = manager
    notifier = Notifier(environment)
    notifier.send(READY, "STATUS=serving 3 racks")
    notifier.send(STOPPING)
    assert read() == ["READY=1", "STATUS=serving 3 racks"]
    assert read() == ["STOPPING=1"]


def test_reloading_datagram_has_the_monotonic_time(manager):
    environment, read = manager
    Notifier(environment).reloading()
    first, second = read()
    assert first == "RELOADING=1" and int(second.removeprefix("MONOTONIC_USEC=")) > 0


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere/at/all"}])
def test_notifier_ignores_a_missing_service_manager(environment):
    Notifier(environment).send(READY)


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "10000000"}, 10.0),
        ({"WATCHDOG_USEC": "10000000", "WATCHDOG_PID": str(os.getpid())}, 10.0),
        ({"WATCHDOG_USEC": "10000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_watchdog_interval_is_read_from_the_environment(environment, seconds):
    assert Notifier(environment).watchdog_seconds == seconds


class Loop:
    """A loop that runs one errand at each call of `step`."""

    def __init__(self):
        self.errands = []

    def step(self):
        self.errands.pop(0)()


def test_watchdog_notifies_only_after_the_loop_ran(manager):
    environment, read = manager
    notifier = Notifier({**environment, "WATCHDOG_USEC": "4000000"})
    loop = Loop()
    watchdog = Watchdog(notifier, loop.errands.append)
    assert watchdog.interval == 1.0
    for _ in range(2):
        for _ in range(3):
            watchdog.beat()
        assert len(loop.errands) == 1, "a loop that hangs gets one errand"
        assert received_nothing(read, notifier)
        loop.step()
        assert read() == ["WATCHDOG=1"]


def test_watchdog_without_interval_gives_the_loop_no_errand():
    loop = Loop()
    watchdog = Watchdog(Notifier({}), loop.errands.append)
    watchdog.beat()
    assert watchdog.interval is None and loop.errands == []

"""The service manager is told when we are ready and that we live, by the protocol of sd_notify(3)."""

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


def heard_nothing(read, notifier):
    """Whether the next thing heard is what is sent now."""
    notifier.send("MARK=1")
    return read() == ["MARK=1"]


def test_ready_and_stopping_are_datagrams(manager):
    environment, read = manager
    notifier = Notifier(environment)
    notifier.send(READY, "STATUS=serving 3 racks")
    notifier.send(STOPPING)
    assert read() == ["READY=1", "STATUS=serving 3 racks"]
    assert read() == ["STOPPING=1"]


def test_reloading_names_the_moment(manager):
    environment, read = manager
    Notifier(environment).reloading()
    first, second = read()
    assert first == "RELOADING=1" and int(second.removeprefix("MONOTONIC_USEC=")) > 0


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere/at/all"}])
def test_without_a_service_manager_nothing_happens(environment):
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
def test_who_is_watched_and_how_closely(environment, seconds):
    assert Notifier(environment).patience == seconds


class Loop:
    """A loop that does its errands when told to."""

    def __init__(self):
        self.errands = []

    def turn(self):
        self.errands.pop(0)()


def test_a_sign_of_life_leaves_only_when_the_loop_has_turned(manager):
    environment, read = manager
    notifier = Notifier({**environment, "WATCHDOG_USEC": "4000000"})
    loop = Loop()
    watchdog = Watchdog(notifier, loop.errands.append)
    assert watchdog.interval == 1.0
    for _ in range(2):
        for _ in range(3):
            watchdog.beat()
        assert len(loop.errands) == 1, "a loop that hangs gets one errand"
        assert heard_nothing(read, notifier)
        loop.turn()
        assert read() == ["WATCHDOG=1"]


def test_nobody_watches_nobody_is_asked():
    loop = Loop()
    watchdog = Watchdog(Notifier({}), loop.errands.append)
    watchdog.beat()
    assert watchdog.interval is None and loop.errands == []

"""Ctrl-C in commands of a controller: real processes, and the state of their requests afterwards."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from blast_api import ttypes
from blast_client import Client, MulticastRequest, PartState
from tests.support.controller.memory_controller import MemoryController, serving
from tests.support.interrupted import TIMEOUT, ended, started
from tests.support.waiting import eventually

REQUEST = ("request", "--from", "h11", "--to", "h21,h31", "--bytes", "300MB", "--key", "k")


class WaitingController(MemoryController):
    """One splitter; its operator's calls, and `extend`, never come to an end."""

    def __init__(self) -> None:
        super().__init__(splitters=1)
        self.released = threading.Event()
        self._asked_at: dict[str, float] = {}

    def submit(self, connection, request):
        asked_at = self._asked_at.setdefault(request.key, time.monotonic())
        status = super().submit(connection, request)
        status.ageMs = int((time.monotonic() - asked_at) * 1000)
        return status

    def _hang(self, name):
        self.calls.append(name)
        self.released.wait(TIMEOUT)
        raise ttypes.Denied("too late")

    def extend(self, connection, key, extension):
        self._hang("extend")

    def drain(self, connection, on):
        self._hang("drain")

    def reconcile(self, connection, dryRun):  # noqa: N803 - the interface's name
        self._hang("reconcile")

    def verifyFabric(self, connection):  # noqa: N802 - the interface's name
        self._hang("verifyFabric")

    def quarantine(self, connection, element, reason):
        self._hang("quarantine")


@pytest.fixture
def controller(monkeypatch):
    handler = WaitingController()
    with serving(handler) as (server, host, port):
        handler.server, handler.address = server, f"{host}:{port}"
        monkeypatch.setenv("BLAST_CONTROLLER", handler.address)
        with Client(handler.address) as client:
            client.submit(MulticastRequest("first", "h11", ["h21"], 1))
            yield handler
        handler.released.set()


def waits(controller, key="k"):
    """Wait until the request exists and a client waits for its grant."""
    return eventually(lambda: key in controller.requests and controller.requests[key].waits, f"{key} to be waited for")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_request_is_withdrawn(controller, number, status):
    with started(*REQUEST) as process:
        waits(controller)
        assert ended(process, number) == (status, "", "blast: interrupted: request k is withdrawn\n")
    assert controller.requests["k"].state == PartState.WITHDRAWN
    assert controller.requests["first"].state == PartState.ACTIVE


def test_interrupt_keeps_request_that_existed_before(controller):
    with Client(controller.address) as client:
        client.submit(MulticastRequest("k", "h11", ["h21", "h31"], 300_000_000))
        # Long ago: older than any call of the command takes.
        controller._asked_at["k"] -= 3600
    with started(*REQUEST) as process:
        waits(controller)
        status, _, err = ended(process)
    assert (status, err) == (
        130,
        "blast: interrupted: request k existed before and continues (`blast withdraw k` withdraws it)\n",
    )
    assert controller.requests["k"].state == PartState.PENDING


def test_failed_withdrawal_is_reported(controller):
    with started(*REQUEST) as process:
        waits(controller)
        # Frozen, it does not notice that its controller stops before the interrupt.
        os.kill(process.pid, signal.SIGSTOP)
        stat = Path(f"/proc/{process.pid}/stat")
        eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "the process to stop")
        controller.server.stop()
        os.kill(process.pid, signal.SIGINT)
        os.kill(process.pid, signal.SIGCONT)
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("blast: interrupted: request k could not be withdrawn, run `blast withdraw k`: ")
    assert err.count("\n") == 1


def test_lost_controller_error_names_continuing_request(controller):
    with started(*REQUEST) as process:
        waits(controller)
        controller.server.stop()
        _, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1
    assert err.endswith("; request k continues if the controller does (`blast withdraw k` withdraws it)\n")


GOING_ON = {
    ("extend", "first", "--add", "h41"): ("extend", "the outcome is unknown, `blast status first`"),
    ("drain", "on"): ("drain", "the outcome is unknown, `blast drain status` shows it"),
    ("reconcile", "--dry-run"): ("reconcile", "the controller continues the comparison\n"),
    ("fabric", "verify"): ("verifyFabric", "the controller continues to probe"),
    ("quarantine", "splitter:s1", "--reason", "x"): ("quarantine", "the outcome is unknown"),
}


@pytest.mark.parametrize("words", GOING_ON, ids=" ".join)
def test_interrupted_command_reports_continuing_work(controller, words):
    call, sentence = GOING_ON[words]
    with started(*words) as process:
        eventually(lambda: call in controller.calls, f"{call} to be asked")
        status, out, err = ended(process)
    assert (status, out) == (130, "")
    assert err.startswith(f"blast: interrupted: {sentence}") and err.count("\n") == 1


def test_interrupted_top_prints_nothing(controller):
    with started("top", "--interval", "1h") as process:
        assert process.stdout is not None
        eventually(lambda: "first" in process.stdout.readline(), "the first view")
        status, _, err = ended(process)
    assert (status, err) == (130, "")


def test_second_interrupt_stops_withdrawal(controller):
    def silent(*_):
        controller._hang("status")

    controller.status = silent
    with started(*REQUEST) as process:
        waits(controller)
        process.send_signal(signal.SIGINT)
        eventually(lambda: "status" in controller.calls, "the withdrawal to begin")
        status, out, err = ended(process)
    assert (status, out) == (130, "")
    assert err.endswith("could not be withdrawn, run `blast withdraw k`: interrupted again\n")

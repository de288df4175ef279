"""Safe mode: a controller that a request crashes repeatedly decides nothing until an operator resumes it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from blast_client import Client, ControllerUnreachableError, Extension, MulticastRequest, Rejected
from tests.support.waiting import eventually

BLAST = str(Path(sys.executable).with_name("blast"))
TIMEOUT = 60.0
FABRIC = dedent("""
    [controller]
    thrift = "127.0.0.1:0"
    openflow = "127.0.0.1:0"
    min_lease_ms = 1
    [journal]
    file = "{journal}"
    [[rack]]
    name = "r1"
    datapath = "0000000000000001"
    hosts = [{{ name = "h1", port = 1, ip = "10.0.0.1" }}, {{ name = "h2", port = 2, ip = "10.0.0.2" }}]
    """)
POISON = MulticastRequest("poison", "h1", ["h2"], 10**6)
HARMLESS = MulticastRequest("harmless", "h1", ["h2"], 10**6)


class Controller:
    """A controller process that can be restarted, as by a service manager, and its clients."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "blast.toml"
        self.config.write_text(FABRIC.format(journal=folder / "journal.sqlite"))
        self.log = folder / "log"
        self.process: subprocess.Popen[str] | None = None
        self.address = ""

    def start(self) -> Client:
        command = [sys.executable, "-m", "tests.support.controller.poisonable_controller"]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*command, "controller", "run", "--config", str(self.config), "--log-format", "json"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert ready, self.log.read_text()
        self.address = json.loads(ready)["thrift"]
        return Client(self.address, timeout=TIMEOUT)

    def ended(self) -> int:
        assert self.process is not None
        status = self.process.wait(TIMEOUT)
        self.process.communicate()
        return status

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()

    def blast(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [BLAST, *arguments, "--controller", self.address]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    controller = Controller(tmp_path)
    try:
        yield controller
    finally:
        controller.kill()


def poison(controller: Controller) -> None:
    """Start the controller and crash it by a request that it cannot handle."""
    with controller.start() as client, pytest.raises(ControllerUnreachableError):
        client.submit(POISON)
    assert controller.ended() == 1


def test_safe_mode_lasts_until_operator_resumes(controller: Controller) -> None:
    with controller.start() as client:
        client.submit(HARMLESS)
        with pytest.raises(ControllerUnreachableError):
            client.submit(POISON)
    assert controller.ended() == 1
    poison(controller)
    for _ in range(2):
        # A restart does not end it.
        with controller.start() as client:
            assert refusals(client) == {"safe_mode"}
            assert client.status("harmless").sender == "h1", "reads still work"
            assert [r.key for r in client.list_requests()] == ["harmless"]
            (warning,) = client.fabric().warnings
            assert "KeyError" in warning and "blast resume" in warning
            assert "safe mode" in controller.blast("status").stderr
            assert "WARNING" in controller.blast("fabric", "show").stdout
        assert '"event": "safe_mode"' in controller.log.read_text()
        controller.kill()
    with controller.start() as client:
        resumed = controller.blast("resume")
        assert (resumed.returncode, resumed.stderr) == (0, "")
        assert client.fabric().warnings is None
        assert client.submit(MulticastRequest("next", "h1", ["h2"], 10**6)).key == "next"
        again = controller.blast("resume")
        assert again.returncode == 2 and "not in safe mode" in again.stderr
    controller.kill()
    with controller.start() as client:
        assert client.fabric().warnings is None, "the record is empty"


def refusals(client: Client) -> set[str]:
    """Return the codes with which the controller rejects every change."""
    changes = (
        lambda: client.submit(POISON),
        lambda: client.submit(HARMLESS),
        lambda: client.request(MulticastRequest("x", "h1", ["h2"], 1), timeout=TIMEOUT),
        lambda: client.extend("harmless", Extension(addLeaseMs=1000)),
        lambda: client.finish("harmless"),
        lambda: client.withdraw("harmless"),
        lambda: client.drain(True),
        client.reconcile,
        client.verify_fabric,
        lambda: client.quarantine("port:r1/1", "no"),
    )
    codes = set()
    for change in changes:
        with pytest.raises(Rejected) as refusal:
            change()
        codes.add(refusal.value.code)
    return codes


def test_controller_warns_of_journal_in_memory(controller: Controller) -> None:
    text = controller.config.read_text()
    file = next(line for line in text.splitlines() if line.startswith("file = "))
    controller.config.write_text(text.replace(file, "in_memory = true"))
    with controller.start() as client:
        assert any("in memory" in warning for warning in client.fabric().warnings)
        assert "in memory" in controller.blast("status").stderr
    eventually(lambda: '"event": "journal_in_memory"' in controller.log.read_text(), "the warning in the log")
    command = [BLAST, "controller", "check", "--config", str(controller.config)]
    checked = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT)
    assert "WARNING" in checked.stderr and "journal: in memory" in checked.stdout

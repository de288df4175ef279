"""The controller as a service manager sees it: ready, alive, reloaded, ended; its log; its exit statuses."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pytest

from blast_api.ttypes import MulticastRequest
from blast_client import Client
from tests.support.waiting import eventually
from tl1_driver.emulator.agent import EmulatedSwitch

BLAST = str(Path(sys.executable).with_name("blast"))
TIMEOUT = 30.0


class ServiceManager:
    """Starts the controller as systemd does, and receives its notifications."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "blast.toml"
        self.log = folder / "log"
        self._manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._manager.bind(str(folder / "notify"))
        self._manager.settimeout(TIMEOUT)
        self._environment = {"NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": "400000", "PATH": "/usr/bin"}
        self._process: subprocess.Popen[str] | None = None
        self.write()

    def write(self, *replacements: tuple[str, str]) -> None:
        """Write the example's configuration, on free ports, with changes."""
        text = files("blast_controller").joinpath("example.toml").read_text()
        ports = (("127.0.0.1:9090", "127.0.0.1:0"), ("127.0.0.1:6653", "127.0.0.1:0"), ("192.0.2.10", "127.0.0.1"))
        journal = ("/var/lib/blast/journal.sqlite", str(self.config.with_name("journal.sqlite")))
        for old, new in (*ports, journal, *replacements):
            assert old in text
            text = text.replace(old, new, 1)
        self.config.write_text(text)

    def start(self, *options: str) -> str:
        """Start the controller; return the address of its Thrift server once it is ready."""
        self.log.write_text("")
        with self.log.open("a") as log:
            command = [BLAST, "controller", "run", "--config", str(self.config), *options]
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment
            )
        assert self._process.stdout is not None
        ready = json.loads(self._process.stdout.readline())
        assert ready["event"] == "ready" and set(ready) == {"event", "thrift", "openflow"}
        return str(ready["thrift"])

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    def await_notification(self, expected: str) -> list[str]:
        """Return the next datagram that contains the line `expected`."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            lines = self._manager.recv(4096).decode().split("\n")
            if expected in lines:
                return lines
        raise AssertionError(f"the controller did not send {expected}")

    def lines(self) -> list[dict[str, object]]:
        """Return the JSON lines of its log."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def run_again(self) -> subprocess.CompletedProcess[str]:
        """Run another process with this configuration, to its end."""
        command = [BLAST, "controller", "run", "--config", str(self.config)]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT, env=self._environment
        )

    def reload(self) -> dict[str, object]:
        """Reload the configuration and return the log entry of the reload."""
        before = len(self._reloads())
        self.signal(signal.SIGHUP)
        self.await_notification("RELOADING=1")
        self.await_notification("READY=1")
        return self._reloads()[before]

    def _reloads(self) -> list[dict[str, object]]:
        return [line for line in self.lines() if line.get("event") == "reload"]

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._manager.close()


@pytest.fixture
def manager(tmp_path):
    manager = ServiceManager(tmp_path)
    yield manager
    manager.close()


@contextmanager
def optical_switch() -> Iterator[str]:
    """Serve TL1 as an emulated optical switch, on a thread."""
    loop, sock = asyncio.new_event_loop(), socket.create_server(("127.0.0.1", 0))

    async def apply(removed, added) -> None:
        """Connect no fibers: there are none."""

    async def serve() -> None:
        agent = EmulatedSwitch(96, 96, apply=apply)
        server = await agent.serve(sock)
        await ended.wait()
        agent.cut()
        server.close()

    ended = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        yield f"127.0.0.1:{sock.getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(TIMEOUT)
        loop.close()


@pytest.mark.component
def test_controller_serves_clients_and_keeps_requests_after_kill(manager):
    with optical_switch() as address:
        manager.write(("127.0.0.1:10033", address))
        thrift = manager.start("--log-format", "json")
        assert "STATUS=serving 3 racks, 2 splitters" in manager.await_notification("READY=1")
        with Client(thrift) as client:
            eventually(lambda: client.fabric().opticalSwitches[0].connected, "the TL1 session")
            asked = client.submit(MulticastRequest("k", "r1h1", ["r2h1", "r3h1"], 10**9))
        manager.signal(signal.SIGKILL)
        manager.process.communicate(timeout=TIMEOUT)
        with Client(manager.start("--log-format", "json")) as client:
            assert client.status("k").state == asked.state
        for _ in range(3):
            manager.await_notification("WATCHDOG=1")
        manager.signal(signal.SIGTERM)
        manager.await_notification("STOPPING=1")
        assert manager.process.wait(TIMEOUT) == 0
    lines = manager.lines()
    assert {"ready", "end"} <= {line.get("event") for line in lines}
    serving = lines[[line.get("event") for line in lines].index("ready") :]
    assert {line["epoch"] for line in serving} == {2}, "every line names the run"


def test_frozen_controller_sends_no_watchdog_signal(manager):
    manager.start()
    manager.await_notification("WATCHDOG=1")
    manager.signal(signal.SIGSTOP)
    manager._manager.settimeout(1.0)
    with pytest.raises(TimeoutError):
        for _ in range(10):
            manager.await_notification("WATCHDOG=1")
    manager._manager.settimeout(TIMEOUT)
    manager.signal(signal.SIGCONT)
    manager.await_notification("WATCHDOG=1")


def test_reload_applies_warm_settings_and_reports_the_rest(manager):
    thrift = manager.start()
    manager.await_notification("READY=1")
    assert not manager.log.read_text().startswith("{")
    as_json = ('format = "text"', 'format = "json"')
    manager.write(as_json)
    assert manager.reload()["applied"] == ["log.format"]
    manager.write(as_json, ("lease_factor = 2.0", "lease_factor = 3.0"))
    warm = manager.reload()
    assert (warm["result"], warm["applied"], warm["level"]) == ("warm", ["controller.lease_factor"], "info")
    manager.write(as_json, ('ip = "10.0.2.1"', 'ip = "10.0.2.9"'))
    cold = manager.reload()
    assert (cold["result"], cold["applied"], cold["level"]) == ("cold", ["controller.lease_factor"], "warning")
    assert [reason.partition(":")[0] for reason in cold["refused"]] == ["rack"]
    manager.config.write_text("[controller\n")
    refused = manager.reload()
    assert (refused["result"], refused["level"]) == ("refused", "error") and "not TOML" in refused["message"]
    assert refused["config_reload_total"] == {"warm": 2, "cold": 1, "refused": 1}
    with Client(thrift) as client:
        assert [rack.name for rack in client.fabric().racks] == ["r1", "r2", "r3"]
    manager.signal(signal.SIGINT)
    assert manager.process.wait(TIMEOUT) == 0


def test_optimizer_process_follows_setting_and_controller(manager):
    manager.start("--log-format", "json")
    manager.await_notification("READY=1")
    assert optimizers(manager) == []
    for setting, count in (("50", 1), ("0", 0), ("50", 1)):
        manager.write(("optimizer_budget_ms = 0", f"optimizer_budget_ms = {setting}"))
        assert manager.reload()["result"] == "warm"
        eventually(lambda count=count: len(optimizers(manager)) == count, f"{count} optimizers")
    (pid,) = optimizers(manager)
    manager.signal(signal.SIGKILL)
    manager.process.wait(TIMEOUT)
    command_line = Path(f"/proc/{pid}/cmdline")
    eventually(lambda: not (command_line.exists() and command_line.read_bytes()), "the end of a controller's optimizer")


def optimizers(manager):
    """Return the optimizer's processes of a controller."""
    tasks = Path(f"/proc/{manager.process.pid}/task").glob("*/children")
    children = [int(pid) for task in tasks for pid in task.read_text().split()]
    return [pid for pid in children if b"optimizer.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.parametrize(
    ("replacement", "status", "words"),
    [
        (("lease_factor", "lease_faktor"), 2, "did you mean lease_factor?"),
        (("127.0.0.1:0", "127.0.0.1:{taken}"), 1, "is another controller running?"),
    ],
)
def test_failed_start_prints_reason_and_is_never_ready(manager, replacement, status, words):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        old, new = replacement
        manager.write((old, new.format(taken=taken.getsockname()[1])))
        done = manager.run_again()
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr and "Traceback" not in done.stderr
    manager._manager.settimeout(0.1)
    with pytest.raises(TimeoutError):
        manager.await_notification("READY=1")


def test_second_controller_on_same_journal_does_not_start(manager):
    manager.start()
    done = manager.run_again()
    assert done.returncode == 1
    assert "journal" in done.stderr and f"in use by process {manager.process.pid}" in done.stderr


def test_controller_logs_no_switch_password(manager, tmp_path):
    secret = tmp_path / "password"
    secret.write_text("open-sesame-7\n")
    secret.chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as switch:
        manager.write(
            ('# user = "blast"', 'user = "blast"'),
            ('# password_file = "/etc/blast/ocs1.password"', f'password_file = "{secret}"'),
            ("127.0.0.1:10033", f"127.0.0.1:{switch.getsockname()[1]}"),
        )
        manager.start("--log-format", "json", "--log-level", "debug")
        switch.settimeout(TIMEOUT)
        session, _ = switch.accept()
        with session:
            session.settimeout(TIMEOUT)
            assert b"open-sesame-7" in session.recv(4096), "the switch gets the password"
            session.sendall(b"open-sesame-7 is what you said\r\n\r\n nonsense;\r\n>")
            session.shutdown(socket.SHUT_WR)
            while session.recv(4096):
                """Until the controller has read all of it and closes."""
        manager.signal(signal.SIGTERM)
        assert manager.process.wait(TIMEOUT) == 0
    assert "open-sesame-7" not in manager.log.read_text()


def test_recording_survives_kill_of_controller(manager):
    recording = manager.config.with_name("recording.sqlite")
    manager.write(('# file = "/var/lib/blast/recording.sqlite"', f'file = "{recording}"'))
    thrift = manager.start()
    with Client(thrift) as client:
        client.submit(MulticastRequest("k", "r1h1", ["r2h1", "r3h1"], 10**9))

    def past() -> dict[str, object]:
        command = [BLAST, "journal", "at", "now", "--json", "--config", str(manager.config)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
        return json.loads(done.stdout) if done.returncode == 0 else {"rows": {}}

    found = eventually(
        lambda: past() if "request/default/k" in past()["rows"] else None, "the request in the recording"
    )
    assert found["rows"]["request/default/k"]["state"] == "pending"
    assert found["run"]["epoch"] == 1 and found["gap"] is None
    manager.signal(signal.SIGKILL)
    manager.process.communicate(timeout=TIMEOUT)
    assert past()["rows"] == found["rows"]
    manager.start()
    again = eventually(lambda: found if (found := past()).get("run", {}).get("epoch") == 2 else None, "the next run")
    assert "request/default/k" in again["rows"] and again["run"]["instance"] == "127.0.0.1:0"

"""The optical executor, and a whole controller, with a switch that is reached by SSH: what TCP promises, and faults."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from blast_client import Client
from blast_controller.core.model.commands import CircuitChange
from blast_controller.core.model.events import DeviceDown, DeviceUp, StepConfirmed, StepFailed
from tests.support import ssh_switch
from tests.support.executor_contract import Bench, ExecutorContract, SwitchThread, bench, circuits, unused_port
from tests.support.ssh_switch import PASSWORD, SETTLED, USER, SshSwitch
from tests.support.waiting import eventually
from tl1_driver.ssh import Ssh, host_keys, private_key

pytestmark = pytest.mark.skipif(ssh_switch.lacks() is not None, reason=ssh_switch.lacks() or "")
BLAST = str(Path(sys.executable).with_name("blast"))
CONFIG = dedent("""
    [controller]
    thrift = "127.0.0.1:0"
    openflow = "127.0.0.1:0"
    [journal]
    in_memory = true
    [[optical_switch]]
    name = "ocs1"
    address = "127.0.0.1:{port}"
    inputs = 16
    outputs = 16
    [optical_switch.ssh]
    user = "{user}"
    password_file = "{folder}/password"
    known_hosts = "{folder}/{known}"
    subsystem = "tl1"
    open_timeout_ms = 60_000
    [[rack]]
    name = "r1"
    datapath = "0000000000000001"
    optical_ports = [{{ port = 9, optical_switch = "ocs1", input = 1, output = 1 }}]
    hosts = [{{ name = "h1", port = 1, ip = "10.0.0.1" }}, {{ name = "h2", port = 2, ip = "10.0.0.2" }}]
    """)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[SshSwitch]:
    with SshSwitch(tmp_path_factory.mktemp("sshd")).running() as server:
        yield server
        eventually(server.at_rest, "the sessions to end")


@pytest.fixture
def switch(server: SshSwitch) -> Iterator[SwitchThread]:
    switch = SwitchThread(unused_port())
    (server.folder / "port").write_text(str(switch.port))
    try:
        yield switch
    finally:
        switch.stop()


@pytest.fixture
def way(server: SshSwitch) -> Ssh:
    trusted = host_keys((server.folder / "host_key.pub").read_text())
    return Ssh(USER, trusted, key=private_key((server.folder / "user_key").read_text()), seconds=SETTLED)


class TestBySsh(ExecutorContract):
    @pytest.fixture
    def lab(self, server: SshSwitch, switch: SwitchThread, way: Ssh) -> Iterator[tuple[SwitchThread, Bench]]:
        with bench(server.port, way=way) as found:
            assert found.next(DeviceUp) == DeviceUp("ocs1")
            yield switch, found
            found.quiet()


def test_a_session_killed_in_a_change_fails_it_and_what_was_made_is_found(server, switch, way) -> None:
    with bench(server.port, timeout=SETTLED, way=way) as found:
        found.next(DeviceUp)
        switch.do(lambda: setattr(switch.switch.faults, "lose_answer", True))
        found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
        eventually(lambda: switch.lit, "the change to be made")
        server.kill_sessions()
        assert isinstance(found.answers(1)[1, 1], StepFailed)
        found.next(DeviceDown)
        switch.do(lambda: setattr(switch.switch.faults, "lose_answer", False))
        assert found.next(DeviceUp) == DeviceUp("ocs1", frozenset(circuits((1, 2))))


def test_a_server_that_is_away_is_seen_when_it_is_back(server, switch, way) -> None:
    with bench(server.port, way=way) as found:
        found.next(DeviceUp)
        server.stop()
        found.next(DeviceDown)
        found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
        assert isinstance(found.answers(1)[1, 1], StepFailed)
        server.start()
        event = found.events.get(timeout=SETTLED)
        while isinstance(event, DeviceDown):
            event = found.events.get(timeout=SETTLED)
        assert event == DeviceUp("ocs1")
        found.apply(CircuitChange(1, 2, (), circuits((1, 2))))
        assert isinstance(found.answers(1)[1, 2], StepConfirmed)


@pytest.mark.parametrize("wrong", ["host key", "password"])
def test_who_is_refused_is_away_with_a_sentence(server, switch, way, wrong) -> None:
    stranger = host_keys((server.folder / "other_host_key.pub").read_text())
    change = {"host key": {"trusted": stranger}, "password": {"key": None, "password": "wrong"}}[wrong]
    with bench(server.port, way=replace(way, **change)) as found:
        down = found.next(DeviceDown)
        assert ("another SSH host key" if wrong == "host key" else "does not let 'tl1' in by SSH") in down.reason
        found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
        assert found.answers(1)[1, 1].reason == f"optical switch ocs1: {down.reason}"


# ------------------------------------------------------------------------------------------------- a whole controller


@pytest.mark.parametrize(("known", "says"), [("known_hosts", ""), ("strangers", "another SSH host key (SHA256:")])
def test_a_controller_with_a_switch_by_ssh(server: SshSwitch, switch, tmp_path: Path, known: str, says: str) -> None:
    key = (server.folder / "other_host_key.pub").read_text()
    (server.folder / "strangers").write_text(f"[127.0.0.1]:{server.port} {key}")
    config, log = tmp_path / "blast.toml", tmp_path / "log"
    config.write_text(CONFIG.format(port=server.port, user=USER, folder=server.folder, known=known))
    with log.open("w") as output:
        command = [BLAST, "controller", "run", "--config", str(config)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said, log.read_text()
        with Client(json.loads(said)["thrift"], timeout=SETTLED) as client:
            if says:
                eventually(lambda: says in log.read_text(), "the refusal in the log")
                assert not client.fabric().opticalSwitches[0].connected
            else:
                eventually(lambda: client.fabric().opticalSwitches[0].connected, "the switch to be connected")
        process.terminate()
        assert process.wait(SETTLED) == 0
    finally:
        process.kill()
        process.communicate()
    logged = log.read_text()
    assert PASSWORD not in logged and "Traceback" not in logged
    assert "Beginning auth" not in logged, "asyncssh's own lines are no matter of the operator's"
    eventually(server.at_rest, "the session to end")

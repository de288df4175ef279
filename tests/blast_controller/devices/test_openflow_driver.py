"""The driver in one process: rejected input, and failures of its threads, which end the process."""

from __future__ import annotations

import os
import queue
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from blast_controller.core.model.commands import ForwardingChange, SetForwarding
from blast_controller.core.model.events import StepFailed
from blast_controller.openflow.__main__ import main
from blast_controller.openflow.app import ForwardingApplication
from blast_controller.openflow.driver import OpenFlowDriver
from blast_controller.openflow.framework import (
    HANDSHAKE_DISPATCHER,
    MAIN_DISPATCHER,
    RyuApplication,
    dispatch,
    handles,
    ofp_event,
)
from blast_controller.openflow.rules import RuleSettings
from blast_controller.openflow.vocabulary import BarrierAnswered, ChangeRequested, Effect, Event, Fence, Input, Transmit
from blast_controller.serving.tls import ServerTlsSettings, TlsFileError
from tests.support.certificates import Authority

ANYWHERE = ("127.0.0.1", 0)
NOTHING = SetForwarding(1, (ForwardingChange(7, 1), ForwardingChange(7, 1), ForwardingChange(8, 1)))


def _driver(events: queue.Queue[Event], fatal: queue.Queue[BaseException]) -> OpenFlowDriver:
    return OpenFlowDriver(ANYWHERE, RuleSettings(), {1: [9]}, "239.77.0.0/16", events.put, fatal.put)


def test_driver_can_start_and_stop_repeatedly_in_one_process() -> None:
    for _ in range(2):
        events: queue.Queue[Event] = queue.Queue()
        driver = _driver(events, queue.Queue())
        driver.start()
        driver.apply(NOTHING)
        answers = [events.get(timeout=30) for _ in range(2)]
        assert [(a.reservation, a.step) for a in answers if isinstance(a, StepFailed)] == [(7, 1), (8, 1)]
        driver.stop()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", driver.port), timeout=30)
        assert events.empty()


def test_reloaded_certificate_applies_to_new_connections(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    first, second = (authority.issue("/CN=blast", "IP:127.0.0.1") for _ in range(2))
    tor = authority.issue("/CN=tor")
    context = ssl.create_default_context(cafile=str(authority.cert))
    context.load_cert_chain(tor.cert, tor.key)
    settings = ServerTlsSettings(first.cert, first.key, authority.cert)
    events: queue.Queue[Event] = queue.Queue()
    driver = OpenFlowDriver(ANYWHERE, RuleSettings(), {}, "239.77.0.0/16", events.put, print, tls=settings)
    driver.start()

    def connect() -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", driver.port), timeout=30)
        return context.wrap_socket(plain, server_hostname="127.0.0.1")

    def shown(stream: ssl.SSLSocket) -> str:
        return ssl.DER_cert_to_PEM_cert(stream.getpeercert(binary_form=True) or b"")

    with connect() as before:
        assert shown(before) == first.cert.read_text()
        with pytest.raises(TlsFileError):
            driver.reload_certificate(ServerTlsSettings(tmp_path / "nothing", second.key))
        driver.reload_certificate(ServerTlsSettings(second.cert, second.key))
        with connect() as after:
            assert shown(after) == second.cert.read_text()
        assert before.recv(1) == b"\x04", "the older connection lives"
        driver.stop()


def test_failing_callback_ends_the_process() -> None:
    fatal: queue.Queue[BaseException] = queue.Queue()

    def fail(_: Event) -> None:
        raise RuntimeError("the daemon's fault")

    driver = OpenFlowDriver(ANYWHERE, RuleSettings(), {}, "239.77.0.0/16", fail, fatal.put)
    driver.start()
    driver.apply(NOTHING)
    assert str(fatal.get(timeout=30)) == "the daemon's fault"
    driver.stop()


def test_failing_handler_ends_the_process() -> None:
    reached: list[BaseException] = []

    class Failing(RyuApplication):
        @handles(ofp_event.EventOFPHello, [])
        def fails(self, event: object) -> None:
            raise KeyError(event)

    Failing(reached.append).fails("event")
    assert isinstance(reached[0], KeyError)


BARRIER_REPLY = bytes.fromhex("04 15 0008 00000007")


def _receive(state: str, application: RyuApplication) -> None:
    dispatch(SimpleNamespace(state=state, ofp_brick=SimpleNamespace(application=application)), BARRIER_REPLY)


def test_barrier_reply_is_ignored_before_the_handshake_is_complete() -> None:
    delivered: list[Input] = []
    application = ForwardingApplication(delivered.append, print)
    _receive(HANDSHAKE_DISPATCHER, application)
    assert delivered == []
    _receive(MAIN_DISPATCHER, application)
    assert [answer.xid for answer in delivered if isinstance(answer, BarrierAnswered)] == [7]


def test_failure_at_a_barrier_reply_ends_the_process() -> None:
    fatal: list[BaseException] = []

    def fail(_: Input) -> None:
        raise KeyError("the driver's fault")

    _receive(MAIN_DISPATCHER, ForwardingApplication(fail, fatal.append))
    assert isinstance(fatal[0], KeyError)


def test_driver_sends_queued_commands_in_one_write_per_tor(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = _driver(queue.Queue(), queue.Queue())
    written: list[tuple[int, bytes]] = []
    due: list[Callable[[], None]] = []

    class Connection:
        def __init__(self, datapath: int) -> None:
            self.datapath = datapath

        def transmit(self, messages: bytes) -> bool:
            written.append((self.datapath, messages))
            return True

    connections = {datapath: Connection(datapath) for datapath in (1, 2)}

    class OneBarrierForEachCommand:
        def receive(self, happened: Input, now: float) -> list[Effect]:
            assert isinstance(happened, ChangeRequested)
            reservation = happened.change.changes[0].reservation
            return [Transmit(connections[happened.change.datapath], ((reservation, Fence()),))]

        def next_deadline(self) -> None:
            return None

    monkeypatch.setattr(driver, "_steps", OneBarrierForEachCommand())
    monkeypatch.setattr(driver._server, "soon", due.append)
    for reservation, datapath in enumerate((1, 2, 1), start=1):
        driver.apply(SetForwarding(datapath, (ForwardingChange(reservation, 1),)))
    for work in due:
        work()
    driver.stop()
    first, second, third = (bytes.fromhex(f"04 14 0008 {reservation:08x}") for reservation in (1, 2, 3))
    assert written == [(1, first + third), (2, second)]


def test_driver_rejects_a_port_in_use() -> None:
    with socket.create_server(ANYWHERE) as taken, pytest.raises(OSError, match="in use"):
        OpenFlowDriver(taken.getsockname(), RuleSettings(), {}, "239.77.0.0/16", print, print)


@pytest.mark.parametrize("network", ["10.0.0.0/8", "239.77.0.1/16", "239.77", "ff02::/16"])
def test_driver_rejects_an_invalid_group_network(network: str) -> None:
    with pytest.raises(ValueError, match=network.partition("/")[0]):
        OpenFlowDriver(ANYWHERE, RuleSettings(), {}, network, print, print)


def test_import_error_names_the_unknown_framework() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import blast_controller.openflow.framework"],
        env={**os.environ, "BLAST_OPENFLOW_FRAMEWORK": "pox"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "'pox', but must be one of: os-ken, ryu" in done.stderr


def test_invalid_configuration_exits_with_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.json"
    bad_tls = (
        '{"optical_ports": {}, "group_network": "239.77.0.0/16", "tls": {"certificate": "/x", "private_key": "/x"}}'
    )
    for content in ("{}", "nonsense", '{"optical_ports": {}, "group_network": "10.0.0.0/8"}', bad_tls):
        config.write_text(content)
        assert main(["--listen", "127.0.0.1:0", "--config", str(config)]) == 2
        assert capsys.readouterr().err.startswith(str(config))


@pytest.mark.parametrize("generation", [-1, 1 << 64])
def test_driver_rejects_a_generation_beyond_64_bits(generation: int) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        OpenFlowDriver(ANYWHERE, RuleSettings(), {}, "239.77.0.0/16", print, print, generation=generation)


def test_driver_rejects_a_probe_beyond_1400_bytes() -> None:
    driver = _driver(queue.Queue(), queue.Queue())
    with pytest.raises(ValueError, match="longer than 1400"):
        driver.probe(1, 9, bytes(1401))
    driver.stop()


def test_readings_and_probes_of_a_disconnected_tor_are_ignored() -> None:
    events: queue.Queue[Event] = queue.Queue()
    driver = _driver(events, queue.Queue())
    driver.start()
    driver.read(1)
    driver.look(1)
    driver.probe(1, 9, b"x")
    driver.apply(NOTHING)
    assert isinstance(events.get(timeout=30), StepFailed)
    driver.stop()

"""The driver in one process: what it refuses, and that a failing thread of its own ends the process."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
from ipaddress import IPv4Network

import pytest

from blast_controller.core.commands import ForwardingChange, SetForwarding
from blast_controller.core.events import StepConfirmed, StepFailed
from blast_controller.openflow import framework
from blast_controller.openflow.driver import OpenFlowDriver
from blast_controller.openflow.framework import Application, handles, ofp_event
from blast_controller.openflow.rules import RuleSettings
from blast_controller.openflow.steps import WINDOW, Barrier, Command, Connected, Event, Steps, Transmit

ANYWHERE = ("127.0.0.1", 0)
NOTHING = SetForwarding(1, (ForwardingChange(7, 1), ForwardingChange(7, 1), ForwardingChange(8, 1)))


def _driver(events: queue.Queue[Event], fatal: queue.Queue[BaseException]) -> OpenFlowDriver:
    return OpenFlowDriver(ANYWHERE, RuleSettings(), {1: [9]}, "239.77.0.0/16", events.put, fatal.put)


def test_it_starts_and_stops_again_in_one_process() -> None:
    for _ in range(2):
        events: queue.Queue[Event] = queue.Queue()
        driver = _driver(events, queue.Queue())
        driver.start()
        driver.apply(NOTHING)
        answers = [events.get(timeout=5) for _ in range(2)]
        assert [(a.reservation, a.step) for a in answers if isinstance(a, StepFailed)] == [(7, 1), (8, 1)]
        driver.stop()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", driver.port), timeout=5)
        assert events.empty()


def test_a_callback_that_fails_ends_the_process() -> None:
    fatal: queue.Queue[BaseException] = queue.Queue()

    def fail(_: Event) -> None:
        raise RuntimeError("the daemon's fault")

    driver = OpenFlowDriver(ANYWHERE, RuleSettings(), {}, "239.77.0.0/16", fail, fatal.put)
    driver.start()
    driver.apply(NOTHING)
    assert str(fatal.get(timeout=5)) == "the daemon's fault"
    driver.stop()


def test_a_handler_that_fails_ends_the_process() -> None:
    reached: list[BaseException] = []

    class Failing(Application):
        @handles(ofp_event.EventOFPHello, [])
        def fails(self, event: object) -> None:
            raise KeyError(event)

    Failing(reached.append).fails("event")
    assert isinstance(reached[0], KeyError)


def test_a_port_in_use_is_said_at_once() -> None:
    with socket.create_server(ANYWHERE) as taken, pytest.raises(OSError, match="in use"):
        OpenFlowDriver(taken.getsockname(), RuleSettings(), {}, "239.77.0.0/16", print, print)


@pytest.mark.parametrize("network", ["10.0.0.0/8", "239.77.0.1/16", "239.77", "ff02::/16"])
def test_a_group_network_must_be_one(network: str) -> None:
    with pytest.raises(ValueError, match=network.partition("/")[0]):
        OpenFlowDriver(ANYWHERE, RuleSettings(), {}, network, print, print)


def test_an_unknown_framework_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import blast_controller.openflow.framework"],
        env={**os.environ, "BLAST_OPENFLOW_FRAMEWORK": "pox"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "'pox', but must be one of: os-ken, ryu" in done.stderr


def test_a_wrong_configuration_is_exit_status_2(tmp_path: object) -> None:
    config = f"{tmp_path}/config.json"
    for content in ("{}", "nonsense", '{"optical_ports": {}, "group_network": "10.0.0.0/8"}'):
        with open(config, "w") as file:  # noqa: PTH123 - a path in a string
            file.write(content)
        done = subprocess.run(
            [sys.executable, "-m", "blast_controller.openflow", "--listen", "127.0.0.1:0", "--config", config],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr.startswith(config)) == (2, True)


def test_a_step_without_rules_is_a_barrier_and_stops_mattering_after_its_deadline() -> None:
    steps, session = Steps(RuleSettings(), {1: []}, IPv4Network("239.77.0.0/16"), 2.0), object()
    (guards,) = steps.receive(Connected(session, 1), 0.0)
    assert isinstance(guards, Transmit)
    steps.receive(Barrier(session, guards.barrier), 0.0)
    (message,) = steps.receive(Command(NOTHING, 0.0), 0.0)
    assert isinstance(message, Transmit)
    assert message.operations == ()
    assert steps.receive(Barrier(session, message.barrier), 0.5) == [
        StepConfirmed(1, 7, 1, 0.5),
        StepConfirmed(1, 8, 1, 0.5),
    ]
    steps.receive(Command(NOTHING, 1.0), 1.0)
    assert len(steps.expire(3.0)) == 2
    assert steps.expire(10.0) == []
    assert steps.next_deadline() is None


def test_what_waited_too_long_to_be_sent_is_never_sent() -> None:
    steps, session = Steps(RuleSettings(), {1: []}, IPv4Network("239.77.0.0/16"), 2.0), object()
    (guards,) = steps.receive(Connected(session, 1), 0.0)
    assert isinstance(guards, Transmit)
    steps.receive(Barrier(session, guards.barrier), 0.0)
    sent = [effect for _ in range(WINDOW + 1) for effect in steps.receive(Command(NOTHING, 0.0), 0.0)]
    assert len(sent) == WINDOW
    assert len(steps.expire(2.0)) == 2 * (WINDOW + 1)
    assert [e for m in sent if isinstance(m, Transmit) for e in steps.receive(Barrier(session, m.barrier), 3.0)] == []


def test_an_ordinary_exception_does_not_end_an_event_loop() -> None:
    assert not issubclass(Exception, framework._hub.TaskExit)

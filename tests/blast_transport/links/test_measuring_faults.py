"""Measurements with faulty, late, busy or unresolvable hosts: each ends with a reason."""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from blast_client.capacities import by_agents
from blast_client.capacities.by_agents import AgentCapacities
from blast_client.send.round import DeliveryRound, RoundSettings
from blast_transport.links.dialling import Address, Dialling, dial
from blast_transport.measuring import flows as flows_module
from blast_transport.measuring import sink as sink_module
from blast_transport.measuring import source as source_module
from blast_transport.measuring.flows import HERE, FlowSize, FlowsMeasured, LinkFailedError, measure_flows
from blast_transport.measuring.sink import Sink
from blast_transport.measuring.source import MeasurementSource
from blast_transport.wire.measuring import (
    TOKEN_BYTES,
    Accepted,
    Measure,
    MeasurementResult,
    MeasuringMessage,
    Probe,
    SourceResult,
)
from tests.blast_transport.links.test_measuring import MeasuringClient
from tests.support.transport.measured_hosts import Host, host
from tests.support.waiting import HANGING, eventually

Send = Callable[[MeasuringMessage], None]


@contextmanager
def lying_agent(name: str, script: Callable[[Send], object]) -> Iterator[Address]:
    """Run an agent that receives one order, runs `script`, and closes when the other side does.

    `script` is called with a function that sends messages.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with (
                MeasuringClient((name, *listening.getsockname()), lambda *_: listening.accept()[0]) as client,
                suppress(OSError),
            ):
                client.receive()
                script(client.send)
                client.sock.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield (name, *listening.getsockname())
        thread.join(HANGING)


SMALL = FlowSize(1 << 20, 2.0)
TOKEN = b"t" * TOKEN_BYTES


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    with ExitStack() as stack:
        yield [stack.enter_context(host(f"h{number}")) for number in range(4)]


def in_time(flows: list[tuple[Address | None, Address]], dialer=dial, size: FlowSize = SMALL, **more: float):
    """Measure in a thread that may hang, and return the result."""
    found: list[FlowsMeasured] = []
    thread = threading.Thread(target=lambda: found.append(measure_flows(flows, dialer, size, **more)), daemon=True)
    thread.start()
    thread.join(HANGING / 2)
    assert found, "it has not ended"
    return found[0]


# --------------------------------------------------------------------------------------------------- faulty hosts


def test_agent_that_repeats_accepted_is_given_up(hosts, monkeypatch):
    monkeypatch.setattr(flows_module, "JOIN_SECONDS", 0.2)

    def script(send: Send) -> None:
        for _ in range(100):
            send(Accepted())
            time.sleep(0.02)  # The agent chooses its own pace.

    with lying_agent("liar", script) as liar:
        found = in_time([(liar, hosts[0].address)])
    assert found.failed == {"h0": "liar: unexpected message Accepted"}


def test_source_cannot_fail_targets_of_other_sources(hosts):
    answers = (Accepted(), SourceResult(0, (("h1", "gone"), ("h3", "gone"))))
    with lying_agent("liar", lambda send: [send(message) for message in answers]) as liar:
        found = in_time([(hosts[0].address, hosts[1].address), (liar, hosts[3].address)])
    assert found.measured.keys() == {"h1"} and found.failed == {"h3": "gone"}


@pytest.mark.parametrize(
    "answer",
    [
        MeasurementResult(1 << 30, 5e-324, 1e6),
        MeasurementResult(1 << 40, 1e-12, 1e6),
        MeasurementResult(1 << 20, 1.0, 0.3),
    ],
)
def test_extreme_measurements_yield_valid_capacities(monkeypatch, answer):
    def measured(flows, *_: object) -> FlowsMeasured:
        return FlowsMeasured({target[0]: answer for _, target in flows}, {}, {})

    monkeypatch.setattr(by_agents, "measure_flows", measured)
    names = ["h0", "h1", "h2"]
    found = AgentCapacities([(name, "127.0.0.1", 1) for name in names], dial, SMALL).measure("here", names)
    rates = [*found.capacities.links.values(), *found.capacities.out.values(), *found.capacities.into.values()]
    assert min(rates) >= 1 and max(rates) <= 1e18


# ---------------------------------------------------------------------------------------------------- late hosts


def test_client_does_not_wait_for_source_that_starts_too_late(hosts, monkeypatch):
    monkeypatch.setattr(sink_module, "JOIN_SECONDS", 0.2)

    def late(address: Address, seconds: float):
        if address[0] == "h1":
            eventually(lambda: hosts[0].server._measurements._running is not None, "the sink to wait")
            eventually(lambda: hosts[0].server._measurements._running is None, "the sink to give up")
            time.sleep(0.1)  # After the sink gave up and sent its answer.
        return dial(address, seconds)

    target = hosts[0].address
    found = in_time([(HERE, target), (hosts[1].address, target)], late)
    assert found.measured.keys() == {"h0"}


def test_source_reports_target_that_it_does_not_reach_in_time(monkeypatch):
    monkeypatch.setattr(source_module, "DIAL_SECONDS", 0.05)
    monkeypatch.setattr(source_module, "ANSWER_SECONDS", 0.05)
    enough = threading.Event()

    def stuck(address: Address, seconds: float):
        enough.wait(HANGING)
        raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    try:
        sent = MeasurementSource(Measure(TOKEN, 1 << 20, 1.0, 1, (("slow", "127.0.0.1", 1),)), stuck).run()
    finally:
        enough.set()
    assert sent == SourceResult(0, (("slow", "no answer within 0.05 s"),))


# ------------------------------------------------------------------------------------------- unresolvable hosts


@pytest.mark.parametrize("name", ["a..b", "a" * 300, ".h1"])
def test_invalid_host_name_is_reported_as_unreachable(name):
    found = in_time([(HERE, ("h1", name, 9095))])
    assert found.failed["h1"].startswith(f"cannot connect to {name}:9095: ") and found.away.keys() == {"h1"}


def test_agent_reports_invalid_host_name_of_target(hosts):
    found = in_time([(hosts[0].address, hosts[1].address)], size=FlowSize(1 << 16, 0.1))
    assert found.measured
    with MeasuringClient(hosts[0].address) as commander:
        commander.send(Measure(TOKEN, 1 << 20, 1.0, 1, (("h1", "a..b", 1),)))
        assert commander.receive() == Accepted()
        answer = commander.receive()
    assert isinstance(answer, SourceResult) and answer.failed[0][1].startswith("cannot connect to a..b:1: ")


def test_unexpected_dialer_error_is_reported_as_failed_connection():
    def broken(address: Address, seconds: float):
        raise ValueError("server_hostname cannot start with a leading dot")

    woken = threading.Event()
    dialling: Dialling[int] = Dialling(broken, woken.set)
    dialling.begin(1, ("h1", "127.0.0.1", 9095), 1.0)
    assert woken.wait(HANGING)
    ((number, outcome),) = dialling.take()
    assert number == 1 and outcome == (
        "cannot connect to 127.0.0.1:9095: server_hostname cannot start with a leading dot"
    )


# -------------------------------------------------------------------------------------------------- busy hosts


def test_busy_host_does_not_block_other_measurements(hosts):
    with MeasuringClient(hosts[0].address) as other:
        other.send(Measure(TOKEN, 1 << 20, 10.0))
        assert other.receive() == Accepted()
        pairs = [(hosts[0].address, hosts[1].address), (hosts[2].address, hosts[3].address)]
        found = measure_flows(pairs, dial, SMALL, busy_timeout=0.0)
    assert found.measured.keys() == {"h3"} and found.failed.keys() == {"h1"}
    assert "h0: another measurement is at work on this host" in found.failed["h1"] and not found.away


def test_probe_of_transfer_does_not_wait_for_busy_host(hosts):
    with MeasuringClient(hosts[0].address) as other:
        other.send(Measure(TOKEN, 1 << 20, 10.0))
        assert other.receive() == Accepted()
        probe = DeliveryRound([hosts[0].address], RoundSettings())._probe("here")
        with pytest.raises(LinkFailedError, match="another measurement is at work on this host"):
            probe("here", "h0")
        eventually(lambda: hosts[0].refused() == 1, "the one try to be counted")


# ------------------------------------------------------------------------------------------------- other failures


def test_local_source_failure_fails_its_links(hosts, monkeypatch):
    def broken(source: MeasurementSource) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(MeasurementSource, "_connect", broken)
    found = in_time([(HERE, hosts[0].address)])
    assert found.failed == {"h0": "Cannot allocate memory"}


def test_data_queued_during_pause_counts_as_one_arrival():
    class Full:
        """A socket whose kernel holds more data than one read returns."""

        waiting = (3 << 18) - 1000

        def recv_into(self, buffer: bytearray) -> int:
            count = min(len(buffer), self.waiting)
            self.waiting -= count
            if not count:
                raise BlockingIOError
            return count

    sink = Sink(Measure(TOKEN, 1 << 20, 1.0))
    sink._receive(Full(), 0)  # type: ignore[arg-type]
    sink._loop.close()
    assert sink._arrivals.bytes == (3 << 18) - 1000 and len(sink._arrivals._streams[0].times) == 1


def test_data_of_single_moment_yields_positive_rate(hosts):
    with MeasuringClient(hosts[0].address) as commander, MeasuringClient(hosts[0].address) as probe:
        commander.send(Measure(TOKEN, 1 << 16, 10.0))
        assert commander.receive() == Accepted()
        probe.send(Probe(TOKEN))
        assert probe.receive() == Accepted()
        probe.sock.sendall(b"x" * 1000)
        probe.sock.close()
        answer = commander.receive()
    assert isinstance(answer, MeasurementResult) and answer.received == 1000 and answer.rate > 0

"""Measurements between agents over real sockets: results, permissions, busy hosts and failures."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from blast_transport.agent.settings import AgentClientSection, LimitsSection
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.credentials.roles import NEIGHBOR
from blast_transport.credentials.tls import TlsFiles
from blast_transport.links.dialling import Address, Dialer, dial
from blast_transport.measuring import flows as flows_module
from blast_transport.measuring import sink as sink_module
from blast_transport.measuring import source as source_module
from blast_transport.measuring.flows import HERE, FlowSize, LinkFailedError, measure_flows, measure_link
from blast_transport.measuring.source import MeasurementSource
from blast_transport.wire.codec import FRAME
from blast_transport.wire.measuring import (
    MAX_BYTES,
    TOKEN_BYTES,
    Accepted,
    Measure,
    MeasurementResult,
    MeasuringDecoder,
    MeasuringMessage,
    Probe,
    Refused,
    SourceResult,
    encode_measuring,
)
from tests.support.certificates import Authority
from tests.support.transport.measured_hosts import Host, host, host_process
from tests.support.waiting import eventually

SECRET = SharedSecret(b"s" * 32)
SMALL = FlowSize(1 << 20, 2.0)
TOKEN = b"t" * TOKEN_BYTES
NO_LIMIT = f"max_measurement_bytes = {MAX_BYTES}"


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    with ExitStack() as stack:
        yield [stack.enter_context(host(f"h{number}")) for number in range(4)]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"), "ca")


def files(authority: Authority, subject: str, alternatives: str = "") -> TlsFiles:
    pair = authority.issue(subject, alternatives)
    return TlsFiles(pair.cert, pair.key, authority.cert)


class MeasuringClient:
    """A scripted connection to an agent."""

    def __init__(self, address: Address, dialer: Dialer = dial) -> None:
        self.sock = dialer(address, 10.0)
        self.sock.settimeout(30)

    def send(self, message: MeasuringMessage) -> None:
        self.sock.sendall(encode_measuring(message))

    def receive(self) -> MeasuringMessage | None:
        """Return the next message, or None at the end."""
        frame = self.sock.recv(FRAME.size, socket.MSG_WAITALL)
        if not frame:
            return None
        (message,) = MeasuringDecoder().feed(frame + self.sock.recv(FRAME.unpack(frame)[0], socket.MSG_WAITALL))
        return message

    def __enter__(self) -> MeasuringClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()


# ------------------------------------------------------------------------------------------------ results


def test_stopping_agent_ends_its_measurement():
    with host("h0") as one, MeasuringClient(one.address) as commander:
        commander.send(Measure(TOKEN, 1 << 30, 10.0))
        assert commander.receive() == Accepted()
        one.server.stop("enough")
        assert commander.receive() is None


def test_link_is_measured_between_agents_and_from_client(hosts):
    size = FlowSize(1 << 20, 2.0, 4)
    for source in (hosts[0].address, HERE):
        assert measure_link(source, hosts[1].address, dial, size) > 0
    found = measure_flows([(hosts[0].address, hosts[1].address)], dial, size).measured["h1"]
    assert size.bytes - size.bytes // 16 <= found.received <= size.bytes and found.seconds > 0


def test_disjoint_links_are_measured_concurrently(hosts):
    pairs = [(hosts[0].address, hosts[1].address), (hosts[2].address, hosts[3].address)]
    for _ in range(3):
        found = measure_flows(pairs, dial, SMALL, busy_timeout=0.0)
        assert found.measured.keys() == {"h1", "h3"} and not found.failed and not found.away
    assert [one.refused() for one in hosts] == [0, 0, 0, 0]


def test_total_rate_of_host_is_measured_in_both_directions(hosts):
    first, *others = (one.address for one in hosts)
    for _ in range(3):
        sent = measure_flows([(first, other) for other in others], dial, replace(SMALL, streams=2))
        assert sent.measured.keys() == {"h1", "h2", "h3"} and not sent.failed
        total = sum(found.received for found in sent.measured.values())
        assert 2.5 * (1 << 20) < total <= 3 << 20, "the flows share one total"
    taken = measure_flows([(other, first) for other in [*others, HERE]], dial, SMALL)
    assert taken.measured.keys() == {"h0"} and not taken.failed
    assert taken.measured["h0"].received > 3.5 * (1 << 20)


def test_measurement_ends_at_time_limit(hosts):
    found = measure_flows([(HERE, hosts[0].address)], dial, FlowSize(1 << 30, 0.05))
    assert 0 < found.measured["h0"].received < 1 << 30


@pytest.mark.parametrize("credentials", ["secret", "certificates"])
def test_measurement_works_with_secret_and_certificates(authority, credentials):
    ours: Credentials = SECRET
    theirs: list[Credentials] = [SECRET, SECRET]
    clients: list[AgentClientSection] = []
    if credentials == "certificates":
        ours = files(authority, "/CN=sender")
        theirs = [files(authority, f"/CN=agent{name}/OU=hosts", f"DNS:h{name},IP:127.0.0.1") for name in range(2)]
        # Agents are neighbors of each other: they may send probes, but not request measurements.
        clients = [
            AgentClientSection(common_name="sender"),
            AgentClientSection(organizational_unit="hosts", role=NEIGHBOR),
        ]
    with host("h0", theirs[0], clients) as one, host("h1", theirs[1], clients) as other:
        for size in (SMALL, FlowSize(1 << 20, 2.0, 3)):
            assert measure_link(one.address, other.address, dialer(ours), size) > 0
            assert measure_link(HERE, other.address, dialer(ours), size) > 0
        with pytest.raises(LinkFailedError):
            measure_link(one.address, other.address, dialer(SharedSecret(b"t" * 32)), SMALL)


# ------------------------------------------------------------------------------------------------------ permissions


def test_neighbor_may_not_request_measurements(authority):
    agent = files(authority, "/CN=h0", "DNS:h0,IP:127.0.0.1")
    clients = [AgentClientSection(common_name="sender"), AgentClientSection(common_name="other", role=NEIGHBOR)]
    with host("h0", agent, clients) as one:
        neighbor = dialer(files(authority, "/CN=other"))
        with pytest.raises(LinkFailedError, match="a client with the role neighbor may not measure"):
            measure_link(HERE, one.address, neighbor)
        eventually(lambda: one.refused() == 1, "the refusal to be counted")


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (LimitsSection(memory_bytes=1, max_measurement_bytes=0), "takes part in no measurements"),
        (LimitsSection(memory_bytes=1, max_measurement_ms=100), "with at most 1073741824 bytes and 0.1 s"),
    ],
)
def test_agent_rejects_measurement_beyond_configured_limits(hosts, limits, sentence):
    with host("limited", limits=limits) as one:
        for pair in ((HERE, one.address), (hosts[0].address, one.address), (one.address, hosts[0].address)):
            with pytest.raises(LinkFailedError, match=sentence):
                measure_link(*pair, dial, SMALL)
        eventually(lambda: one.refused() == 3, "each refusal to be counted")
        one.at_rest()
    for other in hosts:
        other.at_rest()


def test_unannounced_probe_is_rejected_without_side_effects(hosts):
    with MeasuringClient(hosts[0].address) as uninvited:
        uninvited.send(Probe(TOKEN))
        answer = uninvited.receive()
        assert isinstance(answer, Refused) and not answer.busy
        assert uninvited.receive() is None
    with MeasuringClient(hosts[0].address) as commander, MeasuringClient(hosts[0].address) as uninvited:
        commander.send(Measure(TOKEN, 1 << 20, 1.0))
        assert commander.receive() == Accepted()
        uninvited.send(Probe(b"x" * TOKEN_BYTES))
        assert isinstance(uninvited.receive(), Refused)
    hosts[0].at_rest()
    assert hosts[0].refused() == 2


def test_sink_accepts_only_announced_connections_and_bytes(hosts):
    with (
        MeasuringClient(hosts[0].address) as commander,
        MeasuringClient(hosts[0].address) as probe,
        MeasuringClient(hosts[0].address) as more,
    ):
        commander.send(Measure(TOKEN, 1 << 16, 10.0))
        assert commander.receive() == Accepted()
        probe.send(Probe(TOKEN))
        assert probe.receive() == Accepted()
        more.send(Probe(TOKEN))
        assert more.sock.recv(1) == b"", "one was announced"
        with pytest.raises(OSError):
            for _ in range(1000):
                probe.sock.sendall(bytes(1 << 16))
        answer = commander.receive()
        assert isinstance(answer, MeasurementResult) and answer.received > 1 << 16
    hosts[0].at_rest()


# ----------------------------------------------------------------------------------------------------------- busy


def test_measurements_run_one_at_a_time_and_busy_client_retries(hosts):
    with MeasuringClient(hosts[0].address) as other:
        other.send(Measure(TOKEN, 1 << 20, 10.0))
        assert other.receive() == Accepted()
        found = measure_flows([(HERE, hosts[0].address)], dial, SMALL, busy_timeout=0.0)
        assert "another measurement is at work on this host" in found.failed["h0"] and not found.away
        outcome: list[float] = []
        later = threading.Thread(target=lambda: outcome.append(measure_link(HERE, hosts[0].address, dial, SMALL)))
        later.start()
        eventually(lambda: hosts[0].refused() >= 2, "the other client to be refused as busy")
    later.join(30)
    assert outcome and outcome[0] > 0


def test_two_clients_with_opposite_links_both_complete(hosts):
    pairs = [(hosts[0].address, hosts[1].address), (hosts[1].address, hosts[0].address)]
    rates: list[float] = []

    def measure(pair: tuple[Address, Address]) -> None:
        rates.extend(measure_link(*pair, dial, SMALL) for _ in range(5))

    threads = [threading.Thread(target=measure, args=(pair,)) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(rates) == 10 and min(rates) > 0


# ------------------------------------------------------------------------------------------------ failures


def test_unreachable_host_does_not_fail_other_links(hosts, monkeypatch):
    monkeypatch.setattr(sink_module, "JOIN_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        absent = ("gone", *closed.getsockname())
    first, second = hosts[0].address, hosts[1].address
    found = measure_flows([(first, second), (HERE, absent)], dial, SMALL)
    assert found.measured.keys() == {"h1"} and "Connection refused" in found.failed["gone"]
    assert found.away.keys() == {"gone"}
    found = measure_flows([(absent, second), (first, hosts[2].address)], dial, SMALL)
    assert found.measured.keys() == {"h2"} and found.failed["h1"].startswith("gone: ")
    assert found.away.keys() == {"gone"}, "h1 is reachable, but no source sent to it"
    found = measure_flows([(first, absent), (first, second)], dial, SMALL)
    assert found.measured.keys() == {"h1"} and found.failed.keys() == {"gone"}
    found = measure_flows([(first, second), (absent, second)], dial, FlowSize(1 << 20, 0.2))
    assert found.away.keys() == {"gone"}
    for one in hosts:
        one.at_rest()


def test_agent_of_older_version_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            sock, _ = listening.accept()
            with sock:
                sock.recv(1 << 16)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(LinkFailedError, match="an agent of an older version measures nothing"):
            measure_link(HERE, ("old", *listening.getsockname()), dial)
        thread.join(30)


@pytest.mark.parametrize("as_source", [True, False])
def test_silent_agent_is_given_up(hosts, monkeypatch, as_source):
    """The kernel of a frozen host accepts the connection."""
    monkeypatch.setattr(flows_module, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        frozen = ("frozen", *silent.getsockname())
        pair = (frozen, hosts[0].address) if as_source else (hosts[0].address, frozen)
        found = measure_flows([pair], dial, SMALL)
        assert found.away == {"frozen": "no answer in time"} and not found.measured
    hosts[0].at_rest()


def test_source_gives_up_sink_that_freezes(tmp_path, monkeypatch):
    monkeypatch.setattr(source_module, "drain_seconds", lambda seconds: 0.5)
    with host_process(tmp_path, "h0", limits=NO_LIMIT) as sink, MeasuringClient(sink.address) as commander:
        commander.send(Measure(TOKEN, MAX_BYTES, 10.0))
        assert commander.receive() == Accepted()
        source = MeasurementSource(Measure(TOKEN, MAX_BYTES, 3.0, 1, (sink.address,)), dial)
        outcome: list[SourceResult] = []
        running = threading.Thread(target=lambda: outcome.append(source.run()))
        running.start()
        eventually(lambda: source._bytes, "the data to flow")
        sink.freeze()
        running.join(30)
    assert outcome[0].failed == (("h0", "takes nothing any more"),) and outcome[0].sent < MAX_BYTES


def test_sink_gives_up_source_that_freezes(tmp_path, monkeypatch):
    monkeypatch.setattr(sink_module, "JOIN_SECONDS", 0.5)
    with (
        host("sink", limits=LimitsSection(memory_bytes=1, max_measurement_bytes=MAX_BYTES)) as sink,
        ExitStack() as stack,
    ):
        source = stack.enter_context(host_process(tmp_path, "source", limits=NO_LIMIT))
        commander, other = (stack.enter_context(MeasuringClient(one.address)) for one in (sink, source))
        commander.send(Measure(TOKEN, MAX_BYTES, 0.5))
        assert commander.receive() == Accepted()
        other.send(Measure(TOKEN, MAX_BYTES, 10.0, 1, (sink.address,)))
        assert other.receive() == Accepted()
        eventually(sink.received, "the data to flow")
        source.freeze()
        answer = commander.receive()
        assert isinstance(answer, MeasurementResult) and 0 < answer.received < MAX_BYTES
        sink.at_rest()


def test_disconnected_client_ends_measurement_at_both_ends(hosts):
    source, sink = MeasuringClient(hosts[0].address), MeasuringClient(hosts[1].address)
    with source, sink:
        sink.send(Measure(TOKEN, 1 << 30, 10.0))
        assert sink.receive() == Accepted()
        source.send(Measure(TOKEN, 1 << 30, 10.0, 1, (hosts[1].address,)))
        assert source.receive() == Accepted()
    for one in hosts[:2]:
        one.at_rest()


def test_measurements_leak_no_descriptors(hosts):
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    measure_link(HERE, hosts[1].address, dial, SMALL)
    for one in hosts:
        one.at_rest()
    before = descriptors()
    for _ in range(5):
        measure_flows([(hosts[0].address, hosts[1].address), (HERE, hosts[2].address)], dial, SMALL)
        with pytest.raises(LinkFailedError):
            measure_link(hosts[0].address, ("x", "127.0.0.1", 1), dial, SMALL)
    for one in hosts:
        one.at_rest()
    eventually(lambda: descriptors() <= before, "all sockets to be closed")

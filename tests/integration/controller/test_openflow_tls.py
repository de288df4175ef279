"""ToRs that connect by TLS, and connections that are refused; fake switches and a real Open vSwitch."""

from __future__ import annotations

import itertools
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.controller.openflow_harness import (
    BARRIER_REPLY,
    FRAMEWORKS,
    Bridge,
    ControllerProcess,
    FakeSwitch,
    PrivateSwitch,
    bridges,
    change,
    controller,
    forward,
    new_datapath,
)
from tests.support.certificates import Authority, Pair
from tests.support.waiting import eventually

STEP = change(7, 1, add=[forward(1, "10.0.0.1", "239.77.0.1", 9)])
HANDSHAKE_SECONDS = 5.0
FAILED = "TLS handshake failed"
REFUSED = (EOFError, ConnectionError, ssl.SSLError)


class Papers:
    """`own` is the CA of switches and controller, `strange` another one."""

    def __init__(self, folder: Path) -> None:
        self.own, self.strange = Authority(folder / "own", "own"), Authority(folder / "strange", "strange")
        self.controller = self.own.issue("/CN=blast", "IP:127.0.0.1")

    def settings(self) -> dict[str, object]:
        return {
            "certificate": str(self.controller.cert),
            "private_key": str(self.controller.key),
            "client_ca": str(self.own.cert),
            "handshake_seconds": HANDSHAKE_SECONDS,
        }

    def context(self, pair: Pair | None) -> ssl.SSLContext:
        """Return the TLS context of a switch with this certificate, or with none."""
        context = ssl.create_default_context(cafile=str(self.own.cert))
        if pair is not None:
            context.load_cert_chain(pair.cert, pair.key)
        return context


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def process(papers: Papers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    known = {datapath: [9] for datapath in range(1, 100)}
    with controller("os-ken", tmp_path_factory.mktemp("openflow"), known, tls=papers.settings()) as running:
        yield running


_numbers = itertools.count(1)


@pytest.fixture
def tor() -> int:
    """Return the number of a datapath that no other test uses."""
    return next(_numbers)


def _serve(process: ControllerProcess, papers: Papers, tor: int) -> None:
    """Let a ToR with a good certificate come up, and take a step."""
    with FakeSwitch(process.port, tor, tls=papers.context(papers.own.issue("/CN=tor"))) as switch:
        switch.prepare()
        process.expect(event="DeviceConnected", device=tor)
        process.apply(tor, STEP)
        _, barrier = switch.until_barrier()
        switch.send(BARRIER_REPLY, barrier)
        process.expect(event="StepConfirmed", device=tor, reservation=7)
    process.expect(event="DeviceDisconnected", device=tor)


def _failures(process: ControllerProcess) -> list[str]:
    return [line for line in process.logged() if FAILED in line]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_framework_serves_tors_by_tls_and_ends_cleanly(framework: str, papers: Papers, tmp_path: Path) -> None:
    with controller(framework, tmp_path, {1: [9], 2: [9]}, tls=papers.settings()) as own:
        with socket.create_connection(("127.0.0.1", own.port), timeout=60) as silent:
            _serve(own, papers, 1)
            with FakeSwitch(own.port, 1) as plain:
                plain.until_closed()
            assert silent.recv(1) == b"", "a client that sends nothing is closed after handshake_seconds"
        eventually(lambda: len(_failures(own)) == 2, "a line for each refused connection")
        switch = FakeSwitch(own.port, 2, tls=papers.context(papers.own.issue("/CN=tor")))
        switch.prepare()
        own.expect(event="DeviceConnected", device=2)
        waiting = socket.create_connection(("127.0.0.1", own.port), timeout=30)
    with switch, waiting:
        switch.until_closed()
    assert not [line for line in own.logged() if "Traceback" in line or "Exception" in line]


def test_certificate_authenticates_only_its_tor(papers: Papers, tmp_path: Path) -> None:
    names = {1: "tor-one.example", 2: "0000000000000002"}
    with controller("os-ken", tmp_path, {1: [9], 2: [9]}, tls=papers.settings(), certificates=names) as own:
        one = papers.own.issue("/CN=x", "DNS:TOR-ONE.example")
        two = papers.own.issue("/CN=0000000000000002")
        for pair, datapath in ((one, 2), (two, 1)):
            with pytest.raises(REFUSED), FakeSwitch(own.port, datapath, tls=papers.context(pair)) as switch:
                switch.until_barrier()
            eventually(lambda: any("but its certificate is not" in line for line in own.logged()), "the refusal")
        for pair, datapath in ((one, 1), (two, 2)):
            with FakeSwitch(own.port, datapath, tls=papers.context(pair)) as switch:
                switch.prepare()
                own.expect(event="DeviceConnected", device=datapath)


@pytest.mark.parametrize("kind", ["none", "of another CA", "expired"])
def test_client_without_a_valid_certificate_is_refused_with_one_line(
    process: ControllerProcess, papers: Papers, tor: int, kind: str
) -> None:
    pairs = {
        "none": lambda: None,
        "of another CA": lambda: papers.strange.issue("/CN=tor"),
        "expired": lambda: papers.own.issue("/CN=tor", days=-1),
    }
    before = len(_failures(process))
    # With TLS 1.3 a client learns that it was refused only when it reads.
    with pytest.raises(REFUSED), FakeSwitch(process.port, tor, tls=papers.context(pairs[kind]())) as switch:
        switch.until_barrier()
    eventually(lambda: len(_failures(process)) > before, "the refusal")
    _serve(process, papers, tor)
    assert len(_failures(process)) == before + 1, "one line"


@pytest.mark.lab
def test_open_vswitch_connects_by_ssl_and_forwards(papers: Papers, tmp_path: Path) -> None:
    datapath = new_datapath()
    with (
        PrivateSwitch() as private,
        controller("os-ken", tmp_path, {datapath: [3]}, tls=papers.settings()) as own,
    ):
        tor = Bridge(own.port, datapath, 3, rundir=private.rundir, protocol="ssl")
        strange = papers.strange.issue("/CN=tor")
        private.set_ssl(strange.key, strange.cert, papers.own.cert)
        with bridges(tor):
            eventually(lambda: _failures(own), "a certificate of another CA to be refused")
            own.expect_none(device=datapath)
            pair = papers.own.issue("/CN=tor")
            private.set_ssl(pair.key, pair.cert, papers.own.cert)
            own.expect(event="DeviceConnected", device=datapath)
            own.confirm(datapath, change(7, 1, add=[forward(1, "10.0.0.1", "239.77.0.1", 3)]))
            assert len(tor.our_rules()) == 4
            tor.settle(1, "10.0.0.1", "239.77.0.1", {3})

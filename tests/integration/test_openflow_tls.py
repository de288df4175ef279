"""ToRs that connect by TLS, and who is refused; on os-ken and on ryu, with fake switches and a real Open vSwitch."""

from __future__ import annotations

import itertools
import select
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.openflow_harness import (
    BARRIER_REPLY,
    ECHO_REQUEST,
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

pytestmark = [pytest.mark.parametrize("framework", FRAMEWORKS, scope="module")]

STEP = change(7, 1, add=[forward(1, "10.0.0.1", "239.77.0.1", 9)])
HANDSHAKE_SECONDS = 5.0
FAILED = "TLS handshake failed"
REFUSED = (EOFError, ConnectionError, ssl.SSLError)


@dataclass(frozen=True)
class Papers:
    """`own` is the CA of switches and controller, `strange` one that signs for somebody else."""

    own: Authority
    strange: Authority
    controller: Pair

    def settings(self) -> dict[str, object]:
        return {
            "certificate": str(self.controller.cert),
            "private_key": str(self.controller.key),
            "client_ca": str(self.own.cert),
            "handshake_seconds": HANDSHAKE_SECONDS,
        }

    def context(self, pair: Pair | None) -> ssl.SSLContext:
        """What a switch with this certificate, or with none, connects with."""
        context = ssl.create_default_context(cafile=str(self.own.cert))
        if pair is not None:
            context.load_cert_chain(pair.cert, pair.key)
        return context


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    folder = tmp_path_factory.mktemp("papers")
    own = Authority(folder / "own", "own")
    return Papers(own, Authority(folder / "strange", "strange"), own.issue("/CN=blast", "IP:127.0.0.1"))


@pytest.fixture(scope="module")
def process(framework: str, papers: Papers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    known = {datapath: [9] for datapath in range(1, 100)}
    with controller(framework, tmp_path_factory.mktemp("openflow"), known, tls=papers.settings()) as running:
        yield running


_numbers = itertools.count(1)


@pytest.fixture
def tor() -> int:
    """A datapath that no other test uses."""
    return next(_numbers)


def _serve(process: ControllerProcess, papers: Papers, tor: int) -> None:
    """See a ToR with a good certificate come up, and take a step."""
    with FakeSwitch(process.port, tor, tls=papers.context(papers.own.issue("/CN=tor"))) as switch:
        switch.prepare()
        process.expect(event="DeviceUp", device=tor)
        process.apply(tor, STEP)
        _, barrier = switch.until_barrier()
        switch.send(BARRIER_REPLY, barrier)
        process.expect(event="StepConfirmed", device=tor, reservation=7)
    process.expect(event="DeviceDown", device=tor)


def _failures(process: ControllerProcess) -> list[str]:
    return [line for line in process.logged() if FAILED in line]


def test_a_tor_that_shows_its_certificate_is_served(process: ControllerProcess, papers: Papers, tor: int) -> None:
    _serve(process, papers, tor)


def test_a_certificate_proves_the_one_tor_whose_name_it_bears(framework: str, papers: Papers, tmp_path: Path) -> None:
    known = {1: [9], 2: [9]}
    names = {1: "tor-one.example", 2: "0000000000000002"}
    with controller(framework, tmp_path, known, tls=papers.settings(), certificates=names) as own:
        one = papers.own.issue("/CN=x", "DNS:TOR-ONE.example")
        two = papers.own.issue("/CN=0000000000000002")
        for pair, datapath in ((one, 2), (two, 1)):
            with pytest.raises(REFUSED), FakeSwitch(own.port, datapath, tls=papers.context(pair)) as switch:
                switch.until_barrier()
            assert eventually(lambda: any("shows no certificate of" in line for line in own.logged()))
        for pair, datapath in ((one, 1), (two, 2)):
            with FakeSwitch(own.port, datapath, tls=papers.context(pair)) as switch:
                switch.prepare()
                own.expect(event="DeviceUp", device=datapath)
        own.expect_none(0.0, event="DeviceDown", device=3)


@pytest.mark.parametrize("kind", ["none", "of another CA", "expired"])
def test_a_certificate_that_proves_nothing_is_refused(
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
    assert eventually(lambda: len(_failures(process)) == before + 1)
    process.expect_none(0.2, device=tor)
    assert len(_failures(process)) == before + 1, "one line"


def test_a_switch_without_tls_is_refused(process: ControllerProcess, papers: Papers, tor: int) -> None:
    before = len(_failures(process))
    with FakeSwitch(process.port, tor) as switch, pytest.raises(REFUSED):
        switch.until_barrier()
    assert eventually(lambda: len(_failures(process)) == before + 1)
    process.expect_none(0.2, device=tor)
    _serve(process, papers, tor)


def test_a_client_that_says_nothing_blocks_nobody_and_is_refused(
    process: ControllerProcess, papers: Papers, tor: int
) -> None:
    before = len(_failures(process))
    with socket.create_connection(("127.0.0.1", process.port), timeout=30) as silent:
        began = time.monotonic()
        _serve(process, papers, tor)
        assert select.select([silent], [], [], 0)[0] == [], "not behind the silent one, who still has his time"
        assert silent.recv(1) == b""
        assert time.monotonic() - began > HANDSHAKE_SECONDS / 2
    assert eventually(lambda: len(_failures(process)) == before + 1)


def test_a_controller_that_proves_nothing_is_not_told_anything(
    process: ControllerProcess, papers: Papers, tor: int
) -> None:
    strict = ssl.create_default_context(cafile=str(papers.strange.cert))
    with pytest.raises(ssl.SSLCertVerificationError):
        FakeSwitch(process.port, tor, tls=strict)


def test_an_end_with_open_connections_is_clean(framework: str, papers: Papers, tmp_path: Path) -> None:
    with controller(framework, tmp_path, {1: [9]}, tls=papers.settings()) as own:
        switch = FakeSwitch(own.port, 1, tls=papers.context(papers.own.issue("/CN=tor")))
        switch.prepare()
        own.expect(event="DeviceUp", device=1)
        waiting = socket.create_connection(("127.0.0.1", own.port), timeout=30)
    with switch, waiting, pytest.raises(REFUSED):
        while True:
            switch.next((ECHO_REQUEST,))
    assert not [line for line in own.logged() if "Traceback" in line or "Exception" in line]


@pytest.mark.lab
def test_a_real_switch_connects_by_ssl_and_forwards(framework: str, papers: Papers, tmp_path: Path) -> None:
    datapath = new_datapath()
    with (
        PrivateSwitch() as private,
        controller(framework, tmp_path, {datapath: [3]}, tls=papers.settings()) as own,
    ):
        tor = Bridge(own.port, datapath, 3, rundir=private.rundir, protocol="ssl")
        strange = papers.strange.issue("/CN=tor")
        private.set_ssl(strange.key, strange.cert, papers.own.cert)
        with bridges(tor):
            assert eventually(lambda: _failures(own)), "with a certificate of another CA it is refused"
            own.expect_none(0.0, device=datapath)
            pair = papers.own.issue("/CN=tor")
            private.set_ssl(pair.key, pair.cert, papers.own.cert)
            own.expect(event="DeviceUp", device=datapath, timeout=30)
            own.confirm(datapath, change(7, 1, add=[forward(1, "10.0.0.1", "239.77.0.1", 3)]))
            assert len(tor.our_rules()) == 4
            tor.settle(1, "10.0.0.1", "239.77.0.1", {3})

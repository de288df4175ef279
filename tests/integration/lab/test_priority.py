"""Light first: a flood of packets costs a light transfer nothing, and light costs the packet network nothing."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from blast_client import Client
from blast_transport.base.report import TransferResult
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.kernel.netdev import query
from mininet_topos.topology.plan import LabPlan
from tests.support.waiting import eventually

pytestmark = pytest.mark.lab

RATE_MBPS = 20.0
PLAN = LabPlan(
    racks=4, hosts_per_rack=4, splitters={4: 1}, light_rate_mbps=RATE_MBPS, access_rate_mbps=RATE_MBPS, mtu=9000
)
"""A rack's uplink carries four times what a host's access link does, so that a flood of that size arrives whole."""
SENDER, FLOODED, OTHER = "r1h1", "r2h1", "r4h1"
FLOODERS = ("r3h1", "r3h2", "r3h3", "r3h4")
DATAGRAM = 8000
FILE_BYTES = 4_000_000


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.lab.lab import Lab

    with Lab(PLAN, min_lease_ms=600_000) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(PLAN.summary))
        stage.wait_devices()
        yield stage


@contextmanager
def flooded(stage: Stage) -> Iterator[None]:
    """Let every flooder send unicast to one host at its full link rate: four times the rate of that host's link."""
    ended = threading.Event()
    lab, address = stage.lab, stage.address(FLOODED)
    with ExitStack() as stack:
        deaf = stack.enter_context(lab.open_socket(FLOODED, socket.AF_INET, socket.SOCK_DGRAM))
        deaf.bind((address, 0))
        target = deaf.getsockname()
        threads = []
        for sender in FLOODERS:
            sock = stack.enter_context(lab.open_socket(sender, socket.AF_INET, socket.SOCK_DGRAM))
            # A buffer that the link empties: sending waits for the link, not for the processor.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * DATAGRAM)
            sock.settimeout(1)
            threads.append(threading.Thread(target=_send_until, args=(sock, target, ended)))
        before = AccessLink.of(stage, FLOODED).rest
        for thread in threads:
            thread.start()
        try:
            eventually(lambda: AccessLink.of(stage, FLOODED).rest.dropped > before.dropped, "more than the link takes")
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()


def _send_until(sock: socket.socket, target: tuple[str, int], ended: threading.Event) -> None:
    payload = bytes(DATAGRAM)
    while not ended.is_set():
        with suppress(TimeoutError):
            sock.sendto(payload, target)


@dataclass(frozen=True)
class Queue:
    """Bytes sent and packets dropped by one of the two queues of a host's access link at the ToR."""

    sent_bytes: int
    dropped: int


@dataclass(frozen=True)
class AccessLink:
    """One queue for optical traffic and connection setup, and one for the rest."""

    expedited: Queue
    rest: Queue

    @classmethod
    def of(cls, stage: Stage, host: str) -> AccessLink:
        """Return the current counters of the kernel."""
        rack, number = host.removeprefix("r").split("h")
        interface = stage.lab.names.access_at_tor(int(rack), int(number))
        shown = query(["tc", "-json", "-statistics", "qdisc", "show", "dev", interface])
        queues = {found["handle"]: Queue(found["bytes"], found["drops"]) for found in json.loads(shown)}
        return cls(queues["2:"], queues["3:"])


def delivered(stage: Stage, file: Path) -> TransferResult:
    """Send the file once optically, over connections that open behind the flood, and check every copy."""
    # Imports Mininet.
    from mininet_topos.demo.receivers import Receivers
    from mininet_topos.demo.transfers import RepeatedTransfer

    file.write_bytes(os.urandom(FILE_BYTES))
    receivers = [FLOODED, OTHER]
    with (
        stage.granted(stage.new_request(SENDER, receivers, FILE_BYTES, "priority")) as grant,
        Receivers(stage, receivers) as processes,
        flooded(stage),
        RepeatedTransfer(stage, processes, SENDER, receivers, file) as job,
    ):
        assert job.under_grant("flooded", grant).hashes_equal
    return job.result


def test_flood_on_access_link_does_not_displace_optical_traffic(stage: Stage, tmp_path: Path) -> None:
    """The flood is four times the rate of the access link, and gets the remaining rate."""
    before = AccessLink.of(stage, FLOODED)
    delivered(stage, tmp_path / "data")
    after = AccessLink.of(stage, FLOODED)
    assert after.expedited.sent_bytes - before.expedited.sent_bytes >= FILE_BYTES, "the file was sent optically"
    assert after.rest.sent_bytes > before.rest.sent_bytes and after.rest.dropped > before.rest.dropped


def test_optical_transfer_adds_almost_no_load_to_packet_core(stage: Stage, tmp_path: Path) -> None:
    """The sender's rack has no part in the flood: it sends into the core control messages, digests and repairs."""
    before = stage.lab.counters.uplink(1).sent_bytes
    result = delivered(stage, tmp_path / "data")
    into_core = stage.lab.counters.uplink(1).sent_bytes - before
    assert into_core <= 0.1 * FILE_BYTES + 1.2 * result.repaired_bytes

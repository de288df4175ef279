"""Light first: a flood of packets costs a light transfer nothing, and light costs the packet network nothing."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from blast_client import Client
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.netdev import query
from mininet_topos.plan import LabPlan
from tests.support.waiting import eventually

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.transfers import Job
from mininet_topos.lab import Lab

pytestmark = pytest.mark.lab

RATE_MBPS = 20.0
PLAN = LabPlan(
    racks=4, hosts_per_rack=4, splitters={4: 1}, light_rate_mbps=RATE_MBPS, access_rate_mbps=RATE_MBPS, mtu=9000
)
"""A rack's uplink carries four times what a host's access link does, so that a flood of that size arrives whole."""
SENDER, FLOODED, OTHER = "r1h1", "r2h1", "r4h1"
FLOODERS = ("r3h1", "r3h2", "r3h3", "r3h4")
DATAGRAM = 8000
FILE_BYTES = 10_000_000
LARGEST_SHARE_OF_CORE = 0.5
"""Of the file: digests are 0.03 % of it, and what a busy machine has lost comes once more; light would be all of it."""
LARGEST_SHARE_LOST = 0.1
"""Of light's frames: a machine that stands still for a moment overruns a queue of a tenth of a second, and repairs that
follow meet light there. Without precedence light would share the link with a flood of as much, or four times that."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Lab(PLAN, lease_minimum_ms=600_000) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(PLAN.summary))
        stage.wait_devices()
        yield stage


@contextmanager
def flood(stage: Stage, senders: Sequence[str], receiver: str) -> Iterator[None]:
    """Every sender sends unicast to one host as fast as its own link takes it."""
    ended = threading.Event()
    lab, address = stage.lab, stage.address(receiver)
    with ExitStack() as stack:
        deaf = stack.enter_context(lab.open_socket(receiver, socket.AF_INET, socket.SOCK_DGRAM))
        deaf.bind((address, 0))
        target = deaf.getsockname()
        threads = []
        for sender in senders:
            sock = stack.enter_context(lab.open_socket(sender, socket.AF_INET, socket.SOCK_DGRAM))
            # A buffer that the link empties: sending waits for the link, not for the processor.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * DATAGRAM)
            sock.settimeout(1)
            threads.append(threading.Thread(target=_send_until, args=(sock, target, ended)))
        for thread in threads:
            thread.start()
        try:
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
    """What a ToR has put on a host's access link out of one of its two queues, and what it had to drop."""

    sent_bytes: int
    dropped: int


@dataclass(frozen=True)
class AccessLink:
    """Light and what opens connections have a queue of their own; all the rest shares the other one."""

    expedited: Queue
    rest: Queue

    @classmethod
    def of(cls, stage: Stage, host: str) -> AccessLink:
        """As the kernel counts it now."""
        rack, number = host.removeprefix("r").split("h")
        interface = stage.lab.names.access_at_tor(int(rack), int(number))
        shown = query(["tc", "-json", "-statistics", "qdisc", "show", "dev", interface])
        queues = {found["handle"]: Queue(found["bytes"], found["drops"]) for found in json.loads(shown)}
        return cls(queues["2:"], queues["3:"])


def await_flood(stage: Stage, *, losing: bool) -> None:
    """Wait until the flood arrives at the host, and is more than its link takes."""
    before = AccessLink.of(stage, FLOODED).rest

    def arrives() -> bool:
        rest = AccessLink.of(stage, FLOODED).rest
        return rest.sent_bytes > before.sent_bytes and (rest.dropped > before.dropped or not losing)

    eventually(arrives, "the flood")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(FILE_BYTES))
    return path


@pytest.mark.parametrize("times", [1, 2, 4])
def test_a_flood_on_a_receivers_access_link_costs_light_nothing(stage: Stage, file: Path, times: int) -> None:
    """The flood is `times` the rate of the access link, of which it fills what light leaves."""
    request = stage.new_request(SENDER, [FLOODED, OTHER], FILE_BYTES, "priority")
    with (
        stage.granted(request) as grant,
        Receivers(stage, [FLOODED, OTHER]) as receivers,
        Job(stage, receivers, SENDER, [FLOODED, OTHER], file) as job,
        flood(stage, FLOODERS[:times], FLOODED),
    ):
        await_flood(stage, losing=times > 1)
        before = AccessLink.of(stage, FLOODED)
        transfer = job.under_grant("priority", grant)
        after = AccessLink.of(stage, FLOODED)
    assert transfer.hashes_equal, "every receiver has every byte"
    assert after.expedited.sent_bytes - before.expedited.sent_bytes >= FILE_BYTES, "the file came by light"
    lost, frames = after.expedited.dropped - before.expedited.dropped, FILE_BYTES // PLAN.mtu
    assert lost <= frames * LARGEST_SHARE_LOST, f"light lost {lost} of {frames} frames where the flood was"
    assert after.rest.sent_bytes > before.rest.sent_bytes, "the flood went on meanwhile"
    if times > 1:
        assert after.rest.dropped > before.rest.dropped, "what did not fit was the flood's"


def test_a_connection_behind_a_flood_loses_nothing(stage: Stage, file: Path) -> None:
    """Of four packets to this host three are lost, but not those of a sender that comes now, nor its invitation."""
    request = stage.new_request(SENDER, [FLOODED, OTHER], FILE_BYTES, "connection")
    file.write_bytes(os.urandom(FILE_BYTES // 10))
    with (
        stage.granted(request) as grant,
        Receivers(stage, [FLOODED, OTHER]) as receivers,
        flood(stage, FLOODERS, FLOODED),
    ):
        await_flood(stage, losing=True)
        before = AccessLink.of(stage, FLOODED)
        for _ in range(3):
            with Job(stage, receivers, SENDER, [FLOODED, OTHER], file) as job:
                assert job.under_grant("connection", grant).hashes_equal
        after = AccessLink.of(stage, FLOODED)
    assert after.expedited.dropped == before.expedited.dropped, "nothing that opens a connection was lost"
    assert after.rest.dropped > before.rest.dropped, "the flood lost some meanwhile"


def test_light_puts_nothing_into_a_saturated_packet_core(stage: Stage, file: Path) -> None:
    """The sender's rack has no part in the flood: what it sends into the core are words about the transfer."""
    request = stage.new_request(SENDER, [FLOODED, OTHER], FILE_BYTES, "core")
    with (
        stage.granted(request) as grant,
        Receivers(stage, [FLOODED, OTHER]) as receivers,
        Job(stage, receivers, SENDER, [FLOODED, OTHER], file) as job,
        flood(stage, FLOODERS, FLOODED),
    ):
        await_flood(stage, losing=True)
        before = stage.lab.counters.uplink(1).sent_bytes
        transfer = job.under_grant("core", grant)
        into_core = stage.lab.counters.uplink(1).sent_bytes - before
    assert transfer.hashes_equal
    assert into_core <= FILE_BYTES * LARGEST_SHARE_OF_CORE, f"{into_core} bytes went into the core"

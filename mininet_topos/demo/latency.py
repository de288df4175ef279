"""Scene (a): how long a request takes, step by step, beside Table II of the Blast paper."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from blast_api.ttypes import Grant
from mininet_topos.demo.groups import cold_groups
from mininet_topos.demo.stage import Stage
from mininet_topos.errors import DemoError

TABLE_II_MS = {"thrift": 1.747, "compute": 8.553, "openflow": 8.711, "optical": 14.172}
"""The paper's Table II; it prints the plain sum, 33.183 ms."""

_STEP_NAMES = {
    "thrift": "Thrift communication",
    "compute": "control algorithm computation",
    "openflow": "OpenFlow rules insertion",
    "optical": "optical switch configuration",
    "other": "other (hand-overs in the controller)",
}
_DATAGRAM_SECONDS = 2.0

KEEP_WARM_MS = 60_000
"""The controller's default, where a measurement is to include it."""


class Endpoints:
    """A UDP socket in each host, all held by this process, so that one clock times both ends."""

    def __init__(self, stage: Stage, hosts: Sequence[str]) -> None:
        self._stage = stage
        self._senders = {host: self._open(host) for host in hosts}
        self._receivers = {host: self._open(host) for host in hosts}
        self._bound: dict[str, tuple[str, int]] = {}

    def _open(self, host: str) -> socket.socket:
        sock = self._stage.lab.open_socket(host, socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(self._stage.address(host)))
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        return sock

    def listen(self, port: int) -> None:
        """Bind every receiver to the port that grants name."""
        for sock in self._receivers.values():
            sock.bind(("", port))

    def first_datagram(self, grant: Grant, sender: str) -> float:
        """Join, send one datagram, and return the time (monotonic) at which the last receiver had it.

        Raises DemoError.
        """
        waiting = {self._receivers[host]: host for host in grant.receivers}
        joined = {sock: self._membership(grant.groupAddress, host) for sock, host in waiting.items()}
        for sock, membership in joined.items():
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        try:
            self._senders[sender].sendto(b"first", (grant.groupAddress, grant.groupPort))
            return _last_arrival(waiting)
        finally:
            for sock, membership in joined.items():
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, membership)

    def _membership(self, group: str, host: str) -> bytes:
        return struct.pack("4s4s", socket.inet_aton(group), socket.inet_aton(self._stage.address(host)))

    def close(self) -> None:
        """Close every socket."""
        for sock in (*self._senders.values(), *self._receivers.values()):
            sock.close()


def _last_arrival(waiting: dict[socket.socket, str]) -> float:
    missing = dict(waiting)
    deadline = time.monotonic() + _DATAGRAM_SECONDS
    while missing:
        ready, _, _ = select.select(list(missing), [], [], max(0.0, deadline - time.monotonic()))
        arrived = time.monotonic()
        if not ready:
            raise DemoError(f"no datagram at {', '.join(sorted(missing.values()))}")
        for sock in ready:
            sock.recv(64)
            del missing[sock]
    return arrived


def measure(stage: Stage, requests: int) -> None:
    """Time `requests` requests, each to a different cold group on an idle lab, and keep their steps."""
    with _endpoints(stage) as endpoints:
        groups = cold_groups(stage.lab.plan, requests + 1)
        _one(stage, endpoints, *groups[0])
        for index in stage.progress(range(1, len(groups)), "requests"):
            stage.results.latencies.add(_one(stage, endpoints, *groups[index]))


def measure_warm(stage: Stage, requests: int) -> dict[str, float]:
    """Time `requests` requests for one group, whose tree is still lit, and keep their steps; those of the first one."""
    with _endpoints(stage) as endpoints:
        group, other = cold_groups(stage.lab.plan, 2)
        _one(stage, endpoints, *other)
        first = _one(stage, endpoints, *group)
        for _ in stage.progress(range(requests), "requests"):
            stage.results.latencies.add(_one(stage, endpoints, *group))
        return first


@contextmanager
def _endpoints(stage: Stage) -> Iterator[Endpoints]:
    endpoints = Endpoints(stage, stage.first_hosts())
    try:
        endpoints.listen(5001)
        yield endpoints
    finally:
        endpoints.close()


def _one(stage: Stage, endpoints: Endpoints, sender: str, receivers: Sequence[str]) -> dict[str, float]:
    stage.wait_dark()
    request = stage.new_request(sender, receivers, 1_000_000, "latency")
    asked = time.monotonic()
    grant = stage.client.request(request, 10.0)
    granted = time.monotonic()
    arrived = endpoints.first_datagram(grant, sender)
    stage.client.finish(request.key, grant.part)
    return _steps(grant, (granted - asked) * 1000, (arrived - asked) * 1000)


def _steps(grant: Grant, total: float, first_datagram: float) -> dict[str, float]:
    timings = grant.timings
    # Where a tree is still lit nothing is computed and no device touched.
    compute, openflow, optical = timings.computeMs or 0.0, timings.openflowMs or 0.0, timings.opticalMs or 0.0
    thrift = total - timings.totalMs
    return {
        "thrift": thrift,
        "compute": compute,
        "openflow": openflow,
        "optical": optical,
        "other": timings.totalMs - compute - max(openflow, optical),
        "total": total,
        "first_datagram": first_datagram,
    }


def play(stage: Stage, requests: int) -> None:
    """Measure, and print the paper's table with ours beside it."""
    stage.open_scene("a", f"One request, measured step by step: {requests} requests, each to a different cold group")
    measure(stage, requests)
    seen = stage.results.latencies
    stage.tell(f"{'milliseconds':<38}{'paper':>9}{'p50':>9}{'p99':>9}")
    for step, name in _STEP_NAMES.items():
        paper = f"{TABLE_II_MS[step]:9.3f}" if step in TABLE_II_MS else f"{'':>9}"
        stage.tell(f"{name:<38}{paper}{seen.percentile(step, 50):9.3f}{seen.percentile(step, 99):9.3f}")
    serial = sum(seen.percentile(step, 50) for step in _STEP_NAMES)
    stage.tell(f"{'sum, one after the other':<38}{sum(TABLE_II_MS.values()):9.3f}{serial:9.3f}")
    total = f"{seen.percentile('total', 50):9.3f}{seen.percentile('total', 99):9.3f}"
    stage.tell(f"{'as it really ran, devices in parallel':<38}{'< 25':>9}{total}")
    first = f"{seen.percentile('first_datagram', 50):9.3f}{seen.percentile('first_datagram', 99):9.3f}"
    stage.tell(f"{'... to the first datagram everywhere':<38}{'':>9}{first}")
    p50 = seen.percentile("total", 50)
    stage.check("request to grant, p50", p50 <= 18, f"{p50:.3f} ms (bar 18; paper 33.183)")

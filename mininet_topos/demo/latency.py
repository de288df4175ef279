"""Scene (a): the steps of a request and their times, compared with Table II of the Blast paper."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from blast_api.ttypes import Grant, MulticastRequest, StepTimings
from mininet_topos.demo.commits import Commit, commits_of
from mininet_topos.demo.floor import Floor
from mininet_topos.demo.groups import cold_groups
from mininet_topos.demo.latency_table import PAPER_SUM_MS, latency_table
from mininet_topos.demo.results import Quantity
from mininet_topos.demo.stage import GRANT_SECONDS, Stage
from mininet_topos.kernel.errors import DemoError

_AGAIN_SECONDS, _TIMEOUT_SECONDS = 1.0, 60.0
"""Seconds after which a missing datagram is sent again, and after which the wait fails."""

KEEP_WARM_MS = 60_000
"""The controller's default, for measurements that include it."""


class UdpEndpoints:
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
        """Bind every receiver to the port of the grants."""
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
            return self._last_arrival(waiting, sender, (grant.groupAddress, grant.groupPort))
        finally:
            for sock, membership in joined.items():
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, membership)

    def _last_arrival(self, waiting: dict[socket.socket, str], sender: str, group: tuple[str, int]) -> float:
        missing = dict(waiting)
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            self._senders[sender].sendto(b"first", group)
            again = time.monotonic() + _AGAIN_SECONDS
            while ready := select.select(list(missing), [], [], max(0.0, again - time.monotonic()))[0]:
                arrived = time.monotonic()
                for sock in ready:
                    sock.recv(64)
                    del missing[sock]
                if not missing:
                    return arrived
        raise DemoError(f"no datagram arrived at {', '.join(sorted(missing.values()))}")

    def _membership(self, group: str, host: str) -> bytes:
        return struct.pack("4s4s", socket.inet_aton(group), socket.inet_aton(self._stage.address(host)))

    def close(self) -> None:
        """Close every socket."""
        for sock in (*self._senders.values(), *self._receivers.values()):
            sock.close()


def measure(stage: Stage, requests: int) -> None:
    """Time `requests` requests, each to a different cold group on an idle lab, and the floor after each of them."""
    groups = cold_groups(stage.lab.plan, requests + 1)
    with endpoints_of(stage) as endpoints, Floor(stage, _commits(stage, *groups[0])) as floor:
        one(stage, endpoints, *groups[0])
        for index in stage.progress(range(1, len(groups)), "requests"):
            stage.results.latencies.add(one(stage, endpoints, *groups[index]))
            # Measure the floor on a lab as idle as that of the request.
            stage.wait_dark()
            stage.results.floor.add(floor.sample())


def measure_warm(stage: Stage, requests: int) -> dict[str, float]:
    """Measure one group whose tree is warm; return the steps of its first request, which found no tree.

    Its second request finds none either: a tree is kept warm only for a group that has recurred.
    """
    group, other = cold_groups(stage.lab.plan, 2)
    with endpoints_of(stage) as endpoints:
        one(stage, endpoints, *other)
        first = one(stage, endpoints, *group)
        one(stage, endpoints, *group)
        with Floor(stage, _commits(stage, *group)) as floor:
            for _ in stage.progress(range(requests), "requests"):
                stage.results.latencies.add(one(stage, endpoints, *group))
                stage.wait_dark()
                stage.results.floor.add(floor.sample())
        return first


def _commits(stage: Stage, sender: str, receivers: Sequence[str]) -> list[Commit]:
    stage.wait_dark()
    return commits_of(stage, _request(stage, sender, receivers))


@contextmanager
def endpoints_of(stage: Stage) -> Iterator[UdpEndpoints]:
    """Open sockets in the first host of every rack for the duration of a `with` block."""
    endpoints = UdpEndpoints(stage, stage.first_hosts())
    try:
        endpoints.listen(5001)
        yield endpoints
    finally:
        endpoints.close()


def _request(stage: Stage, sender: str, receivers: Sequence[str]) -> MulticastRequest:
    return stage.new_request(sender, receivers, 1_000_000, "latency")


def one(stage: Stage, endpoints: UdpEndpoints, sender: str, receivers: Sequence[str]) -> dict[str, float]:
    """Request a grant on an idle fabric, send a datagram, finish; return the milliseconds of each step.

    Raises DemoError.
    """
    stage.wait_dark()
    request = _request(stage, sender, receivers)
    submitted = time.monotonic()
    grant = stage.client.request(request, GRANT_SECONDS)
    granted = time.monotonic()
    if set(grant.receivers) != set(receivers):
        raise DemoError(f"requested {', '.join(receivers)}, but the grant is for {', '.join(grant.receivers)}")
    arrived = endpoints.first_datagram(grant, sender)
    stage.client.finish(request.key, grant.part)
    return _steps(grant, (granted - submitted) * 1000, (arrived - submitted) * 1000)


def _steps(grant: Grant, total: float, first_datagram: float) -> dict[str, float]:
    timings = grant.timings or StepTimings()
    # For a warm tree there is no computation and no device command.
    compute, openflow, optical = timings.computeMs or 0.0, timings.openflowMs or 0.0, timings.opticalMs or 0.0
    in_all = timings.totalMs or 0.0
    return {
        "call_and_commit_after": total - in_all,
        "compute": compute,
        "commit_before": in_all - compute - max(openflow, optical),
        "openflow": openflow,
        "optical": optical,
        "total": total,
        "first_datagram": first_datagram,
    }


def play(stage: Stage, requests: int) -> None:
    """Measure, and print the paper's table with our values and the floor."""
    stage.open_scene("a", f"Steps of a request: {requests} requests, each to a different cold group")
    measure(stage, requests)
    for line in latency_table(stage.results.latencies, stage.results.floor):
        stage.explain(line)
    reached = len(stage.results.latencies.steps["first_datagram"])
    stage.check(
        "a datagram reaches every receiver of every group", reached == requests, f"{reached} of {requests} groups"
    )
    total = stage.results.latencies.percentile("total", 50)
    floor = stage.results.floor.percentile("total", 50)
    stage.measured("request to grant, p50", Quantity(total, "ms", {"floor": floor, "paper": PAPER_SUM_MS}))

"""Capture of a group's packets at every host, below the IP stack, by raw sockets."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Collection, Sequence
from types import TracebackType

from blast_api.ttypes import Grant
from mininet_topos.demo.stage import Stage
from mininet_topos.kernel.errors import DemoError

ETH_P_IP = 0x0800
QUIET_SECONDS = 0.25
"""Silence after which no further packet is expected, in seconds."""
_TIMEOUT_SECONDS = 60.0
"""Upper bound of a wait, in seconds."""
_DESTINATION = slice(30, 34)
_OUTGOING = 4
"""PACKET_OUTGOING of Linux: packets that the host itself sends."""


class Captures:
    """Raw sockets on every host, to send and to count arriving packets to `group`."""

    def __init__(self, stage: Stage, hosts: Sequence[str], group: str) -> None:
        self._stage = stage
        self._hosts = list(hosts)
        self._group = group

    def __enter__(self) -> Captures:
        packet, raw = socket.AF_PACKET, socket.SOCK_RAW
        lab = self._stage.lab
        self._sockets = {lab.open_socket(host, packet, raw, socket.htons(ETH_P_IP)): host for host in self._hosts}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sock in self._sockets:
            sock.close()

    def send(self, host: str, grant: Grant, packets: int) -> None:
        """Send datagrams to the grant's group from a host, a millisecond apart."""
        address = self._stage.address(host)
        with self._stage.lab.open_socket(host, socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
            sock.bind((address, 0))
            for number in range(packets):
                sock.sendto(struct.pack("!I", number), (grant.groupAddress, grant.groupPort))
                time.sleep(0.001)

    def counts(self) -> Counter[str]:
        """Return the packets to the group that arrived at each host since the last call, after a period of silence."""
        found: Counter[str] = Counter()
        expected = socket.inet_aton(self._group)
        while ready := select.select(list(self._sockets), [], [], QUIET_SECONDS)[0]:
            for sock in ready:
                frame, source = sock.recvfrom(2048)
                if source[2] != _OUTGOING and frame[_DESTINATION] == expected:
                    found[self._sockets[sock]] += 1
        return found

    def reached(self, packets: int, expected: Collection[str] = ()) -> set[str]:
        """Return the hosts that received all of `packets` packets, after `expected` did and silence followed.

        Raises DemoError if a host received only some of them, or too many.
        """
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        found = self.counts()
        while any(found[host] < packets for host in expected) and time.monotonic() < deadline:
            found += self.counts()
        partial = {host: count for host, count in found.items() if count != packets}
        if partial:
            raise DemoError(f"some hosts did not receive exactly {packets} packets: {partial}")
        return set(found)

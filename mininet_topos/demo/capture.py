"""Packets of a group as they arrive at every host, seen below the IP stack by raw sockets."""

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
from mininet_topos.errors import DemoError

ETH_P_IP = 0x0800
QUIET_SECONDS = 0.25
"""How long nothing must come before it is believed that nothing else comes."""
_TIMEOUT_SECONDS = 60.0
"""A guard against waiting for ever."""
_DESTINATION = slice(30, 34)
_OUTGOING = 4


class Captures:
    """A raw socket on every host, and one to send from each; counts packets to `group` that arrive."""

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
        """Packets to the group that arrived at each host since the last look, once it has been quiet for a while."""
        found: Counter[str] = Counter()
        wanted = socket.inet_aton(self._group)
        while ready := select.select(list(self._sockets), [], [], QUIET_SECONDS)[0]:
            for sock in ready:
                frame, source = sock.recvfrom(2048)
                if source[2] != _OUTGOING and frame[_DESTINATION] == wanted:
                    found[self._sockets[sock]] += 1
        return found

    def reached(self, packets: int, wanted: Collection[str] = ()) -> set[str]:
        """The hosts that got every one of `packets` packets, when those `wanted` have them and nothing else comes.

        Raises DemoError if a host got some only, or too many.
        """
        patience = time.monotonic() + _TIMEOUT_SECONDS
        found = self.counts()
        while any(found[host] < packets for host in wanted) and time.monotonic() < patience:
            found += self.counts()
        partial = {host: count for host, count in found.items() if count != packets}
        if partial:
            raise DemoError(f"of {packets} packets some hosts got a part or too many: {partial}")
        return set(found)

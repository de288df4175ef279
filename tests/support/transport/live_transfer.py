"""A numbered stream of datagrams to a granted group, watched below the IP stack at every receiver."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from types import TracebackType

from blast_api.ttypes import Grant
from mininet_topos.lab.lab import Lab
from tests.support.waiting import eventually

ETH_P_IP = 0x0800
PERIOD = 0.002
_DESTINATION, _NUMBER = slice(30, 34), slice(42, 46)
_OUTGOING = 4
_QUIET_SECONDS = 1.0
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 4 << 20


class LiveTransfer:
    """A sender of a datagram every 2 ms until the `with` block ends, which then lists the losses of receivers."""

    def __init__(self, lab: Lab, sender: str, grant: Grant) -> None:
        self._lab, self._sender, self._grant = lab, sender, grant
        self._addresses = {host.name: host.ip for rack in lab.plan.rack_plans for host in rack.hosts}
        self._ended = threading.Event()
        self._received: dict[str, set[int]] = {host: set() for host in grant.receivers}
        self.sent = 0

    def __enter__(self) -> LiveTransfer:
        packet, raw = socket.AF_PACKET, socket.SOCK_RAW
        self._inputs = {self._lab.open_socket(h, packet, raw, socket.htons(ETH_P_IP)): h for h in self._received}
        for sock in self._inputs:
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        self._output = self._lab.open_socket(self._sender, socket.AF_INET, socket.SOCK_DGRAM)
        address = self._addresses[self._sender]
        self._output.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        self._output.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        self._output.bind((address, 0))
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._listen)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for sock in (self._output, *self._inputs):
            sock.close()

    @property
    def missed(self) -> dict[str, int]:
        """Return the number of lost datagrams of each receiver with losses, final once the block has ended."""
        return {
            host: self.sent - len(received) for host, received in self._received.items() if len(received) < self.sent
        }

    def missed_by(self, host: str) -> int:
        """Return the number of lost datagrams of one receiver."""
        return self.missed.get(host, 0)

    def receives(self, host: str, seconds: float) -> bool:
        """Return True if a datagram that is sent from now on reaches `host` in time."""
        start = self.sent
        return _is_soon(lambda: max(self._received[host], default=-1) > start, seconds)

    def recovers(self, host: str, start: int, seconds: float) -> bool:
        """Return True if `host` misses a datagram sent from `start` on, and receives a later one in time.

        `start` is the value of `sent` before the fault: a host without processor time may notice a fault after its end.
        """

        def has_recovered() -> bool:
            since = {number for number in self._received[host].copy() if number >= start}
            return bool(since) and max(since) - start >= len(since)

        return _is_soon(has_recovered, seconds)

    def goes_on(self, datagrams: int = 100) -> None:
        """Wait until `datagrams` more have been sent."""
        start = self.sent
        eventually(lambda: self.sent >= start + datagrams, f"{datagrams} more datagrams")

    def _send(self) -> None:
        following = time.monotonic()
        while not self._ended.is_set():
            self._output.sendto(struct.pack("!I", self.sent), (self._grant.groupAddress, self._grant.groupPort))
            self.sent += 1
            following += PERIOD
            time.sleep(max(0.0, following - time.monotonic()))  # the rate of the stream

    def _listen(self) -> None:
        expected = socket.inet_aton(self._grant.groupAddress)
        while True:
            ready = select.select(list(self._inputs), [], [], _QUIET_SECONDS)[0]
            if not ready and self._ended.is_set():
                return
            for sock in ready:
                frame, source = sock.recvfrom(2048)
                if source[2] != _OUTGOING and frame[_DESTINATION] == expected:
                    self._received[self._inputs[sock]].add(struct.unpack("!I", frame[_NUMBER])[0])


def _is_soon(condition: Callable[[], bool], seconds: float) -> bool:
    try:
        return eventually(condition, within=seconds)
    except AssertionError:
        return False

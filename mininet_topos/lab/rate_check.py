"""A check whether this machine can sustain the planned optical rate: one paced second over a real light tree.

Software moves the emulated optical traffic: above some rate it loses packets for lack of CPU, and measurements would
reflect the machine. Measurement programs in a lab run this first; no command does, and no command depends on it.
"""

from __future__ import annotations

import math
import selectors
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from mininet_topos.kernel.errors import RateTooHighError
from mininet_topos.topology.plan import REAL_RATE_MBPS

LARGEST_LOSS = 0.001
"""A share; the packet loss of a shaped link that carries less than its rate."""
_RECEIVE_BUFFER = 8 << 20
"""The receiver must not lose datagrams itself."""
_SETTLE_SECONDS = 0.3
"""After the last datagram, none is on its way any longer."""
_FRAME_OVERHEAD = 14 + 20 + 8
"""Headers of Ethernet, IPv4 and UDP."""
_SO_RCVBUFFORCE = 33
"""Of Linux; the socket module lacks it."""


class OpenSocket(Protocol):
    """Opens a socket inside a host (`Lab.open_socket`)."""

    def __call__(
        self, host: str, family: socket.AddressFamily, kind: socket.SocketKind, protocol: int = 0, /
    ) -> socket.socket:
        """Open it."""
        ...


@dataclass(frozen=True)
class LightPath:
    """A granted group: sender and receivers (host name → address), and the group's address and port."""

    sender: tuple[str, str]
    receivers: Mapping[str, str]
    group: str
    port: int


@dataclass(frozen=True)
class RateCheck:
    """The result of a check: packets sent, packets received by each receiver, and the actual sending rate."""

    sent: int
    received: Mapping[str, int]
    achieved_mbps: float

    @property
    def loss(self) -> float:
        """The part of the packets that the worst receiver missed."""
        return 1 - min(self.received.values()) / self.sent


def check_rate(
    open_socket: OpenSocket, path: LightPath, rate_mbps: float, packet_bytes: int = 8900, seconds: float = 1.0
) -> RateCheck:
    """Send `seconds` of `packet_bytes` datagrams at `rate_mbps`, counted with their Ethernet, IP and UDP headers.

    Raises `RateTooHighError`, naming a factor that should fit, above 0.1 % loss or when the sender cannot keep the
    pace.
    """
    check = _measure(open_socket, path, rate_mbps, packet_bytes, seconds)
    carried = min(1 - check.loss, check.achieved_mbps / rate_mbps)
    if check.loss > LARGEST_LOSS or carried < 1 - 20 * LARGEST_LOSS:
        raise RateTooHighError(max(check.loss, 1 - carried), rate_mbps, fitting_factor(rate_mbps * carried))
    return check


def fitting_factor(carried_mbps: float) -> int:
    """Return the smallest rate factor that needs no more than nine tenths of this rate.

    Factors have the form 1, 2 or 5 times a power of ten.

    >>> fitting_factor(80.0)
    200
    """
    needed = REAL_RATE_MBPS / max(0.9 * carried_mbps, 1e-3)
    decade = 10.0 ** math.floor(math.log10(needed))
    return math.ceil(next(step * decade for step in (1, 2, 5, 10) if step * decade >= needed))


def _measure(
    open_socket: OpenSocket, path: LightPath, rate_mbps: float, packet_bytes: int, seconds: float
) -> RateCheck:
    counts = dict.fromkeys(path.receivers, 0)
    host, address = path.sender
    with selectors.DefaultSelector() as selector, _transmitter(open_socket, host, address) as transmitter:
        try:
            for name, receiver_address in path.receivers.items():
                receiver = _receiver(open_socket, name, receiver_address, path)
                selector.register(receiver, selectors.EVENT_READ, name)
            interval = (packet_bytes + _FRAME_OVERHEAD) * 8 / (rate_mbps * 1e6)
            total = max(1, round(seconds / interval))
            payload = bytes(packet_bytes)
            elapsed = _pace(
                total,
                interval,
                send=lambda: transmitter.sendto(payload, (path.group, path.port)),
                meanwhile=lambda wait: _collect(selector, counts, wait),
            )
            settled = time.monotonic() + _SETTLE_SECONDS
            while (left := settled - time.monotonic()) > 0:
                _collect(selector, counts, left)
        finally:
            for key in list(selector.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]
    return RateCheck(total, counts, rate_mbps * min(1.0, total * interval / elapsed))


def _pace(total: int, interval: float, *, send: Callable[[], object], meanwhile: Callable[[float], None]) -> float:
    """Send `total` times, one each `interval` seconds, and use the time between; return the seconds it took."""
    start = time.monotonic()
    for number in range(total):
        while (left := start + number * interval - time.monotonic()) > 0:
            meanwhile(left)
        send()
    return max(time.monotonic() - start, total * interval)


def _collect(selector: selectors.BaseSelector, counts: dict[str, int], seconds: float) -> None:
    for key, _ in selector.select(seconds):
        key.fileobj.recv(65536)  # type: ignore[union-attr]
        counts[key.data] += 1


def _transmitter(open_socket: OpenSocket, host: str, address: str) -> socket.socket:
    transmitter = open_socket(host, socket.AF_INET, socket.SOCK_DGRAM)
    transmitter.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    transmitter.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
    return transmitter


def _receiver(open_socket: OpenSocket, host: str, address: str, path: LightPath) -> socket.socket:
    receiver = open_socket(host, socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
    receiver.bind((path.group, path.port))
    membership = struct.pack("=4s4s", socket.inet_aton(path.group), socket.inet_aton(address))
    receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    return receiver

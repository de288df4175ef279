"""TCP streams between emulated sites, from sockets of this process that live in the sites' namespaces."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from mininet_topos.namespace import run_in_network_of
from mininet_topos.sites.sites import Sites
from tests.support.waiting import HANGING

_PIECE = bytes(1 << 16)


@dataclass
class Stream:
    """One connection that sends as fast as it can; `arrived` counts."""

    sender: socket.socket
    receiver: socket.socket
    size: int
    arrived: int = 0
    ended: float = 0.0
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Send `size` bytes, and receive them."""
        self.threads = [threading.Thread(target=each, daemon=True) for each in (self._send, self._receive)]
        for thread in self.threads:
            thread.start()

    def _send(self) -> None:
        left = self.size
        try:
            while left > 0:
                left -= self.sender.send(_PIECE[: min(left, len(_PIECE))])
        except OSError:
            # The test is over.
            return

    def _receive(self) -> None:
        try:
            while self.arrived < self.size and (data := self.receiver.recv(len(_PIECE))):
                self.arrived += len(data)
        except OSError:
            return
        self.ended = time.monotonic()


def connected(sites: Sites, sender: str, receiver: str, size: int, stack: ExitStack) -> Stream:
    """A stream that is ready to start. Raises TimeoutError where no connection comes about in a second."""
    address = sites.address(receiver)
    server = run_in_network_of(sites.pid(receiver), lambda: socket.create_server((address, 0)))
    with server:
        port = server.getsockname()[1]
        near = run_in_network_of(sites.pid(sender), lambda: socket.create_connection((address, port), 1.0))
        far, _ = server.accept()
    for end in (near, far):
        end.settimeout(HANGING)
        stack.callback(end.close)
    return Stream(near, far, size)


def mbps(sites: Sites, sender: str, receiver: str, size: int = 2_000_000, streams: int = 1) -> float:
    """What so many streams bring from one to the other together, in Mbit/s, `size` bytes in all."""
    return together(sites, [(sender, receiver)] * streams, size // streams)


def together(sites: Sites, pairs: Sequence[tuple[str, str]], size: int) -> float:
    """What streams of these pairs bring together in Mbit/s, each of so many bytes."""
    with ExitStack() as stack:
        streams = [connected(sites, *pair, size, stack) for pair in pairs]
        began = time.monotonic()
        for stream in streams:
            stream.start()
        for stream in streams:
            stream.threads[1].join(HANGING)
            assert stream.arrived == stream.size, "a stream did not end"
        return len(streams) * size * 8 / (max(stream.ended for stream in streams) - began) / 1e6


def shares(sites: Sites, pairs: Sequence[tuple[str, str]], size: int) -> list[float]:
    """What each pair's stream has had of all that has arrived, when the first of them has `size` bytes."""
    with ExitStack() as stack:
        streams = [connected(sites, *pair, size, stack) for pair in pairs]
        for stream in streams:
            stream.start()
        while not any(stream.ended for stream in streams):
            streams[0].threads[1].join(0.01)
        arrived = [stream.arrived for stream in streams]
        return [each / sum(arrived) for each in arrived]

"""A TCP relay that adds delay: what arrives leaves again so many milliseconds later, each way.

    delay_relay.py LISTEN_ADDRESS:PORT TARGET_ADDRESS:PORT MILLISECONDS

It holds at most what Linux grants a TCP connection by default as its window, so a fast link of that length is as fast
through it as on real glass. It says "ready". Standard library only: the kernel here has no netem.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections import deque

_PIECE = 256 << 10
_WINDOW = 6 << 20
"""Bytes on the way in one direction: the most that net.ipv4.tcp_rmem allows on a stock host."""


def main() -> None:
    """Relay every connection that comes, for good."""
    listen, target, milliseconds = sys.argv[1:]
    with socket.create_server(_endpoint(listen), backlog=64) as server:
        print("ready", flush=True)
        while True:
            near, _ = server.accept()
            threading.Thread(target=relay, args=(near, _endpoint(target), float(milliseconds) / 1000)).start()


def relay(near: socket.socket, target: tuple[str, int], seconds: float) -> None:
    """Both directions of one connection."""
    # What the two ends say to each other while they connect takes a round trip as well.
    time.sleep(2 * seconds)
    try:
        far = socket.create_connection(target)
    except OSError:
        near.close()
        return
    for one in (near, far):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    Direction(near, far, seconds).start()
    Direction(far, near, seconds).start()


class Direction:
    """What is on the way from one socket to another."""

    def __init__(self, source: socket.socket, target: socket.socket, seconds: float) -> None:
        self._source, self._target, self._seconds = source, target, seconds
        self._way: deque[tuple[float, bytes]] = deque()
        self._on_the_way, self._broken = 0, False
        self._changed = threading.Condition()

    def start(self) -> None:
        """Begin."""
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    def _read(self) -> None:
        data = b"begun"
        while data:
            try:
                data = self._source.recv(_PIECE)
            except OSError:
                data = b""
            with self._changed:
                self._changed.wait_for(lambda: self._on_the_way < _WINDOW or self._broken)
                self._way.append((time.monotonic() + self._seconds, data))
                self._on_the_way += len(data)
                self._changed.notify_all()

    def _write(self) -> None:
        data = b"begun"
        while data:
            with self._changed:
                self._changed.wait_for(lambda: self._way)
                moment, data = self._way.popleft()
            time.sleep(max(0.0, moment - time.monotonic()))
            try:
                self._target.sendall(data) if data else self._target.shutdown(socket.SHUT_WR)
            except OSError:
                self._broken, data = True, b""
                _hang_up(self._source)
            with self._changed:
                self._on_the_way -= len(data)
                self._changed.notify_all()


def _hang_up(connection: socket.socket) -> None:
    """Wakes who reads from it; closing alone would not."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _endpoint(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return address, int(port)


if __name__ == "__main__":
    main()

"""Datagrams on the loopback interface that have arrived when the call that sends them returns."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

LOOPBACK = "127.0.0.1"
_TIMEOUT = 60.0


@contextmanager
def on_one_processor() -> Iterator[None]:
    """Pin this thread to one processor, so that its datagrams arrive in order at all destinations."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def bound_socket() -> Iterator[socket.socket]:
    """Return a socket bound to a free port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((LOOPBACK, 0))
        yield sock


def delivered(mouth: socket.socket) -> None:
    """Wait until all datagrams of this thread are in the destination sockets. Requires `on_one_processor`.

    A busy kernel delivers later than it sends; the last datagram sent arrives last.
    """
    with bound_socket() as last:
        last.settimeout(_TIMEOUT)
        mouth.sendto(b"", last.getsockname())
        last.recv(1)

"""Datagrams on the loopback interface, which are there when they have been sent."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

LOOPBACK = "127.0.0.1"
_TIMEOUT = 60.0


@contextmanager
def on_one_processor() -> Iterator[None]:
    """This thread stays where it is: what it sends is then delivered in order, whoever it is for."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def bound_socket() -> Iterator[socket.socket]:
    """At a port of its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((LOOPBACK, 0))
        yield sock


def delivered(mouth: socket.socket) -> None:
    """Wait until all that this thread has sent is in the sockets that it was sent to. `on_one_processor`.

    A busy kernel delivers later than it sends; what is sent last comes last.
    """
    with bound_socket() as last:
        last.settimeout(_TIMEOUT)
        mouth.sendto(b"", last.getsockname())
        last.recv(1)

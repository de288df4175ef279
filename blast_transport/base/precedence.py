"""Precedence of packets, and connections that are opened with it.

Opening a connection takes a few packets. Behind other traffic they are lost, and each loss doubles the time to the next
try; so they are always prioritized, and later packets as the user of the connection requests.
"""

from __future__ import annotations

import socket

EXPEDITED, BEST_EFFORT = 46 << 2, 0
"""DSCP 46 and 0 as the kernel's type of service."""


def set_precedence(sock: socket.socket, type_of_service: int) -> None:
    """Mark what leaves the socket from now on. Raises OSError if it is closed."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, type_of_service)
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, type_of_service)


def open_connection(host: str, port: int, timeout: float) -> socket.socket:
    """Open a TCP connection as socket.create_connection does, with expedited packets. Raise OSError."""
    failure = OSError(f"the host {host} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            return _connected(socket.socket(family, kind, protocol), address, timeout)
        except OSError as error:
            failure = error
    raise failure


def _connected(sock: socket.socket, address: tuple[object, ...], timeout: float) -> socket.socket:
    try:
        set_precedence(sock, EXPEDITED)
        sock.settimeout(timeout)
        sock.connect(address)
    except OSError:
        sock.close()
        raise
    return sock

"""Addresses as people write them: HOST:PORT, where HOST is a name, an IPv4 address or an IPv6 address in [ ]."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from typing import NamedTuple

MAX_PORT = (1 << 16) - 1
"""A port has 16 bits."""

_BRACKETS = re.compile(r"\[([^\[\]]*)\](?::(.*))?")
_FOREIGN = frozenset("[]=,/@:")
"""Signs that belong to what stands around a host name, and never to one."""


class Endpoint(NamedTuple):
    """A host name or IP address, and a TCP port; 0 for any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def parse_endpoint(text: str, default_port: int | None = None, min_port: int = 1) -> Endpoint:
    """Return the host and port of an address.

    Parameters
    ----------
    text : str
        HOST:PORT or [IPv6]:PORT; with `default_port` also HOST or [IPv6].
    default_port : int, optional
        The port of an address without one.
    min_port : int
        0 where the system may choose the port.

    Raises
    ------
    ValueError
        The text is no such address; the sentence shows the right form.
    """
    shown = f"HOST:PORT or [IPv6]:PORT, for example 10.0.0.1:{default_port or 9090} or [::1]:{default_port or 9090}"
    host, port = _split(text, default_port)
    if host is None or not _is_host(host):
        raise ValueError(f"{text!r} is no address: write {shown}")
    if not (port.isascii() and port.isdecimal() and len(port) < 6 and min_port <= int(port) <= MAX_PORT):
        raise ValueError(f"{text!r} has no port from {min_port} to {MAX_PORT}: write {shown}")
    return Endpoint(host, int(port))


def parse_listening(text: str) -> Endpoint:
    """Return an address of this machine to listen at: IP-ADDRESS:PORT, [IPv6]:PORT. Raises ValueError."""
    try:
        found = parse_endpoint(text, min_port=0)
        ipaddress.ip_address(found.host)
    except ValueError:
        raise ValueError('must be "IP-ADDRESS:PORT", an IPv6 address in [ ]') from None
    return found


def listen_on(host: str, port: int, backlog: int) -> socket.socket:
    """Return a TCP socket that listens on an IP address of this machine; on :: for IPv4, too. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=backlog, dualstack_ipv6=host == "::")
    except OSError as error:
        # create_server adds the address to the system's message; callers name it themselves.
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno)) from error


def _split(text: str, default_port: int | None) -> tuple[str | None, str]:
    """Return host and port as written; no host if brackets are missing or wrong."""
    default = "" if default_port is None else str(default_port)
    if found := _BRACKETS.fullmatch(text):
        return (found[1] if _is_ipv6(found[1]) else None), default if found[2] is None else found[2]
    if text.count(":") > 1:
        # ::1:9095 is ambiguous: it may end with a port.
        return None, default
    host, colon, port = text.partition(":")
    return host, port if colon else default


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def _is_host(host: str) -> bool:
    """Return whether the resolver accepts it: it encodes names as IDNA, and raises an error of its own for others."""
    if _is_ipv6(host):
        return True
    if not host.isprintable() or " " in host or not _FOREIGN.isdisjoint(host):
        return False
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


DEFAULT_ENDPOINT = Endpoint("127.0.0.1", 9095)
"""Default listen address of an agent."""

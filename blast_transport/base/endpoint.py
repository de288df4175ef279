"""Where an agent listens, as people write it: IP-ADDRESS:PORT, [IPv6]:PORT."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple


class Endpoint(NamedTuple):
    """An IP address and a TCP port, 0 for any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Only this machine reaches it."""
        return ipaddress.ip_address(self.host).is_loopback


def endpoint(written: str) -> Endpoint:
    """Read ADDRESS:PORT, [IPv6]:PORT. Raises ValueError."""
    host, _, port = written.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        raise ValueError('must be "IP-ADDRESS:PORT"') from None
    if (":" in bare) != host.startswith("[") or not port.isascii() or not port.isdecimal() or int(port) >= 1 << 16:
        raise ValueError('must be "IP-ADDRESS:PORT", an IPv6 address in [ ]')
    return Endpoint(bare, int(port))


DEFAULT_ENDPOINT = Endpoint("127.0.0.1", 9095)
"""Where an agent listens unless it is told otherwise."""

"""Where a controller listens, as people write it: HOST, HOST:PORT, [IPv6]:PORT."""

from __future__ import annotations

from typing import NamedTuple

from blast_client.base_error import BlastError

DEFAULT_PORT = 9090
DEFAULT_ADDRESS = f"127.0.0.1:{DEFAULT_PORT}"


class BadAddress(BlastError, ValueError):
    """What the caller gave is no address."""


class Address(NamedTuple):
    """A host name or IP address and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read an address; the port may be left out.

    Raises `BadAddress`.
    """
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]") or (":" in host and not host.startswith("[")):
        host, port = text, str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise BadAddress(f"{text!r} is no address: write HOST:PORT, for example {DEFAULT_ADDRESS}")
    return Address(host, int(port))

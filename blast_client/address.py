"""Addresses of controllers: HOST, HOST:PORT, [IPv6] or [IPv6]:PORT."""

from __future__ import annotations

from blast_client.base_error import BlastError
from blast_transport.base.endpoint import Endpoint as Address
from blast_transport.base.endpoint import parse_endpoint

__all__ = ["DEFAULT_ADDRESS", "DEFAULT_PORT", "Address", "BadAddress", "parse_address"]

DEFAULT_PORT = 9090
DEFAULT_ADDRESS = f"127.0.0.1:{DEFAULT_PORT}"


class BadAddress(BlastError, ValueError):
    """The address of a controller cannot be read."""


def parse_address(text: str) -> Address:
    """Return the address of a controller, whose port may be left out. Raises BadAddress."""
    try:
        return parse_endpoint(text, DEFAULT_PORT)
    except ValueError as error:
        raise BadAddress(str(error)) from None

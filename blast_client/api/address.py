"""Addresses of controllers: HOST, HOST:PORT, [IPv6] or [IPv6]:PORT."""

from __future__ import annotations

from blast_base.endpoint import Endpoint as Address
from blast_base.endpoint import parse_endpoint
from blast_client.api.base_error import BlastError

__all__ = ["DEFAULT_ADDRESS", "DEFAULT_PORT", "Address", "AddressError", "parse_address"]

DEFAULT_PORT = 9090
"""The port that Apache Thrift's tutorials use."""
DEFAULT_ADDRESS = f"127.0.0.1:{DEFAULT_PORT}"


class AddressError(BlastError, ValueError):
    """The address of a controller is malformed."""


def parse_address(text: str) -> Address:
    """Parse the address of a controller; the default port is 9090. Raises AddressError."""
    try:
        return parse_endpoint(text, DEFAULT_PORT)
    except ValueError as error:
        raise AddressError(str(error)) from None

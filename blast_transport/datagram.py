"""The datagram that travels by light: a 16-byte header and one segment of the file.

Header, little-endian: session u32, flags u32, segment u64. The payload is the file from segment x segment size on;
every segment but the last is full. No flag is defined yet, and a datagram with one set is not for this version.
"""

from __future__ import annotations

import struct

from blast_transport.errors import WrongInputError

HEADER = struct.Struct("<IIQ")
"""session, flags, segment."""

_IP_UDP_HEADERS = 20 + 8
_ETHERNET_HEADER = 14
_LARGEST_UDP_PAYLOAD = 65507
_SMALLEST_MTU = 576


def segment_size_for(mtu: int) -> int:
    """Bytes of the file in one datagram, so that its IP packet is not longer than `mtu` bytes.

    Raises WrongInputError if `mtu` is below the 576 bytes that every IPv4 host takes (RFC 791).
    """
    if mtu < _SMALLEST_MTU:
        raise WrongInputError(f"an MTU of {mtu} bytes is below the IPv4 minimum of {_SMALLEST_MTU}; use a larger one")
    return min(mtu - _IP_UDP_HEADERS, _LARGEST_UDP_PAYLOAD) - HEADER.size


def wire_bytes(payload: int) -> int:
    """Bytes on the wire of a datagram with `payload` bytes of the file: Ethernet, IP, UDP, our header, payload."""
    return _ETHERNET_HEADER + _IP_UDP_HEADERS + HEADER.size + payload

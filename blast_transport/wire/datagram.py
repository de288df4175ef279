"""Datagram of the transports `optical` and `multicast`: a 16-byte header and one segment of a block.

Header, little-endian: session u32, flags u32, segment u64. Segments are numbered across blocks: segment `block x
block_segments + i` is the i-th of its block and carries the block's bytes from i x segment_size on. Every segment but
the last of a block is full. No flag is defined; receivers drop datagrams with a flag set.

A segment number with the highest bit set is that of a parity segment, which only the compiled engine sends and
processes (`blast_engine/blocks/src/coding.rs`).
"""

from __future__ import annotations

import struct

from blast_transport.base.errors import WrongInputError
from blast_transport.blocks.layout import MAX_SEGMENTS

HEADER = struct.Struct("<IIQ")
"""session, flags, segment."""

LARGEST_UDP_PAYLOAD = 65507
"""An IPv4 packet has at most 65,535 bytes with its headers (RFC 791)."""
IP_UDP_HEADERS, IPV6_UDP_HEADERS = 20 + 8, 40 + 8
_ETHERNET_HEADER = 14
_SMALLEST_MTU = 576
"""Every IPv4 host accepts packets of this size (RFC 791, section 3.1)."""


def segment_size_for(mtu: int, *, ipv6: bool = False) -> int:
    """Return the bytes of a block in one datagram such that its IP packet is at most `mtu` bytes long.

    Raise WrongInputError if `mtu` is below the 576 bytes that every IPv4 host accepts (RFC 791).
    """
    if mtu < _SMALLEST_MTU:
        raise WrongInputError(f"an MTU of {mtu} bytes is below the IPv4 minimum of {_SMALLEST_MTU}; use a larger one")
    headers = IPV6_UDP_HEADERS if ipv6 else IP_UDP_HEADERS
    return min(mtu - headers, LARGEST_UDP_PAYLOAD) - HEADER.size


def segments_for(segment_size: int) -> int:
    """Return the segments in a block: as many datagrams as one UDP super-packet holds."""
    return min(MAX_SEGMENTS, max(1, LARGEST_UDP_PAYLOAD // (HEADER.size + segment_size)))


def wire_bytes(payload: int) -> int:
    """Return the bytes on the wire of a datagram with `payload` bytes: Ethernet, IP, UDP, Blast header, payload."""
    return _ETHERNET_HEADER + IP_UDP_HEADERS + HEADER.size + payload

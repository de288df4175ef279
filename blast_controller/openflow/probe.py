"""Probe frames, sent through a fiber to find its end.

An Ethernet frame with a private type, from one locally administered address to another, with the length of its payload
inside because short frames are padded in transit.
"""

from __future__ import annotations

import struct

from blast_controller.openflow.rules import PROBE_ETHERTYPE

MAX_BYTES = 1400
"""With its head, a probe fits into the MTU of 1500 of any ToR."""
_HEAD = struct.Struct("!6s6sHIH")
_TO, _FROM = bytes.fromhex("02b1a5000002"), bytes.fromhex("02b1a5000001")
_MAGIC = 0xB1A5_0B0E
"""Distinguishes a probe from foreign frames of this type, which is one for local experiments."""
_SHORTEST = 60
"""Bytes of the shortest Ethernet frame, without its checksum."""


def probe_frame(payload: bytes) -> bytes:
    """Return the frame that carries `payload`. Raises ValueError if that is longer than `MAX_BYTES`."""
    if len(payload) > MAX_BYTES:
        raise ValueError(f"a probe of {len(payload)} bytes is longer than {MAX_BYTES}")
    return (_HEAD.pack(_TO, _FROM, PROBE_ETHERTYPE, _MAGIC, len(payload)) + payload).ljust(_SHORTEST, b"\0")


def probe_payload(frame: bytes) -> bytes | None:
    """Return the payload of a received frame; None if it is no probe."""
    if len(frame) < _HEAD.size:
        return None
    *_, ethertype, magic, length = _HEAD.unpack_from(frame)
    payload = frame[_HEAD.size : _HEAD.size + length]
    return payload if (ethertype, magic, len(payload)) == (PROBE_ETHERTYPE, _MAGIC, length) else None

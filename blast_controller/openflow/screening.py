"""Filter of messages before the framework's parsers: only types that Blast expects, and none that never ends.

The parsers step through a list by the lengths in it. At a length of 0 they stay in place forever, and with them the one
thread that serves all switches: twelve bytes from any peer that can connect would suffice. Of the expected messages
only the elements of a hello are such a list (flow statistics are `framework.RawEntry`).
"""

from __future__ import annotations

import struct

from blast_controller.openflow.framework import HEADER, ofproto_v1_3

_ELEMENT = struct.Struct("!HH")
"""type, length (header included) of an element of a hello (OpenFlow 1.3.5, section 7.5.1)"""
_OF_ANY_VERSION = (ofproto_v1_3.OFPT_HELLO, ofproto_v1_3.OFPT_ERROR)
_EXPECTED = frozenset(
    {
        *_OF_ANY_VERSION,
        ofproto_v1_3.OFPT_ECHO_REQUEST,
        ofproto_v1_3.OFPT_ECHO_REPLY,
        ofproto_v1_3.OFPT_EXPERIMENTER,
        ofproto_v1_3.OFPT_FEATURES_REPLY,
        ofproto_v1_3.OFPT_PACKET_IN,
        ofproto_v1_3.OFPT_FLOW_REMOVED,
        ofproto_v1_3.OFPT_PORT_STATUS,
        ofproto_v1_3.OFPT_MULTIPART_REPLY,
        ofproto_v1_3.OFPT_BARRIER_REPLY,
        ofproto_v1_3.OFPT_ROLE_REPLY,
    }
)
_ASKED_FOR = frozenset({ofproto_v1_3.OFPMP_FLOW, ofproto_v1_3.OFPMP_AGGREGATE, ofproto_v1_3.OFPMP_PORT_DESC})


def is_readable(message: bytes) -> bool:
    """Return true if a whole message may be parsed. Raises ValueError for a message that is not of OpenFlow 1.3."""
    version, kind, _, _ = HEADER.unpack_from(message)
    if kind not in _OF_ANY_VERSION and version != ofproto_v1_3.OFP_VERSION:
        raise ValueError(f"a message of version {version}")
    if kind == ofproto_v1_3.OFPT_MULTIPART_REPLY:
        return int.from_bytes(message[HEADER.size : HEADER.size + 2]) in _ASKED_FOR
    if kind == ofproto_v1_3.OFPT_HELLO:
        return _has_an_end(message)
    return kind in _EXPECTED


def _has_an_end(hello: bytes) -> bool:
    offset = HEADER.size
    while offset < len(hello):
        if len(hello) - offset < _ELEMENT.size:
            return False
        _, length = _ELEMENT.unpack_from(hello, offset)
        if length < _ELEMENT.size:
            return False
        offset += length
    return True

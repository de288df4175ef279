"""The protocol of a peer, by the bytes that it sends first or answers to a harmless message."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from optical_switch.printable import printable


class PeerProtocol(StrEnum):
    """The protocol that a peer speaks."""

    SSH = "SSH"
    TL1 = "TL1"
    GRPC = "HTTP/2"
    REDIS = "Redis"
    TLS = "TLS"
    HTTP = "HTTP"


class PeerSign(NamedTuple):
    """The protocol, and the text of the peer that shows it."""

    protocol: PeerProtocol
    text: str = ""


RTRV_HDR = b"RTRV-HDR:::1;\r\n"
"""TL1: a command without effect, which every switch answers, if only by a refusal. For Redis it is an unknown command,
which is refused as well, and to a server with TLS it is no handshake."""
PING = b"PING\r\n"
"""Redis: a command without effect, as people type it."""
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""HTTP/2: the beginning of a connection and empty settings (RFC 9113, section 3.4)."""

_SSH = re.compile(rb"(?:\A|\n)(SSH-(?:2\.0|1\.99)-[^\r\n]{0,255})[\r\n]")
_HTTP = re.compile(rb"\AHTTP/1\.[01] ")
_REDIS = re.compile(
    rb"\A(?:\+PONG|-(?:ERR|NOAUTH|NOPERM|WRONGPASS|DENIED|LOADING|MASTERDOWN|BUSY|READONLY|MISCONF)\b[^\r\n]*)\r\n"
)
_TL1 = re.compile(
    rb"(?:\A|\s)(?:[0-9]{2})?[0-9]{2}-[0-9]{2}-[0-9]{2}[ \t]+[0-9]{2}:[0-9]{2}:[0-9]{2}[ \t\0]*\r?\n"
    rb"|(?:\A|\n)[ \t]*M[ \t]+\S{1,80}[ \t]+(?:COMPLD|DENY|PRTL|DELAY|RTRV)\b"
    rb"|(?:\A|[\r\n<>])(?:IP|PF|OK|NA|NG|RL)[ \t]+1[ \t]*\r?\n",
    re.IGNORECASE,
)
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
"""An alert or a handshake: the answer of a server to text."""
_FRAME_HEADER = 9
_SETTING = 6
"""Bytes of the header of a frame, and of a setting (RFC 9113, sections 4.1 and 6.5.1)."""
_SETTINGS, _GOAWAY = 4, 7
_MAX_FRAME = 1 << 14
"""Bytes of a frame unless a peer permits more (RFC 9113, section 4.2)."""


def recognize_peer(received: bytes) -> PeerSign | None:
    """Return the protocol of a peer.

    Parameters
    ----------
    received : bytes
        All that the peer has sent on one connection.

    Returns
    -------
    PeerSign | None
        The protocol. None: the bytes do not show it, or not yet.
    """
    if received.startswith(_TLS_RECORDS):
        return PeerSign(PeerProtocol.TLS)
    if _is_http2(received):
        return PeerSign(PeerProtocol.GRPC)
    for protocol, sign in (
        (PeerProtocol.SSH, _SSH),
        (PeerProtocol.HTTP, _HTTP),
        (PeerProtocol.REDIS, _REDIS),
        (PeerProtocol.TL1, _TL1),
    ):
        if (found := sign.search(received)) is not None:
            return PeerSign(protocol, printable(found[0].decode("ascii", "replace").strip()))
    return None


def _is_http2(received: bytes) -> bool:
    """Return true if the first frame is that of a server: settings, or the end of the connection."""
    if len(received) < _FRAME_HEADER or any(received[5:_FRAME_HEADER]):
        return False
    length, kind, flags = int.from_bytes(received[:3]), received[3], received[4]
    is_right_size = length % _SETTING == 0 if kind == _SETTINGS else kind == _GOAWAY
    return flags == 0 and is_right_size and length <= _MAX_FRAME

"""First message between two nodes: it assigns the connection to a running session. No sockets.

Its frame is that of every message: {body length u32, type u16, version u16} and the body, little-endian.
"""

from __future__ import annotations

import struct

from blast_transport.base.errors import LocalProtocolError, RemoteProtocolError
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.wire.codec import FRAME, VERSION

TOKEN_BYTES = 16
"""Drawn by the sender: no other host can guess it."""
TEXT_BYTES = 255
"""Bytes of a name, which a client sends before it is authenticated."""

_JOIN = struct.Struct(f"<II{TOKEN_BYTES}s")

JOIN_TYPE = 32
"""Distinct from the types of a control connection, because both arrive at the same port."""
LARGEST_JOIN = _JOIN.size + TEXT_BYTES
"""Maximum bytes of the body."""


class Join(FrozenRecord):
    """First message of the connecting node: node `name` of phase `phase`, which knows the phase's token."""

    session: int
    phase: int
    token: bytes
    name: str


def encode_join(join: Join) -> bytes:
    """Encode the body of the frame. Raise LocalProtocolError if a field does not fit."""
    if len(join.token) != TOKEN_BYTES or len(join.name.encode()) > TEXT_BYTES:
        raise LocalProtocolError(f"Join needs a token of {TOKEN_BYTES} bytes and a name of up to {TEXT_BYTES}")
    return _JOIN.pack(join.session, join.phase, join.token) + join.name.encode()


def decode_join(body: bytes) -> Join:
    """Decode the body of a frame. Raise struct.error or UnicodeDecodeError if it is invalid."""
    session, phase, token = _JOIN.unpack_from(body)
    return Join(session, phase, token, body[_JOIN.size :].decode())


def read_join(frame: bytes) -> Join:
    """Decode a whole frame. Raise RemoteProtocolError if it is invalid."""
    length, number, version = FRAME.unpack_from(frame)
    if number != JOIN_TYPE or version != VERSION or length > LARGEST_JOIN or length != len(frame) - FRAME.size:
        raise RemoteProtocolError(f"expected a Join, received type {number}, version {version}, {length} bytes")
    try:
        return decode_join(frame[FRAME.size :])
    except (struct.error, UnicodeDecodeError) as error:
        raise RemoteProtocolError(f"Join cannot be read: {error}") from error

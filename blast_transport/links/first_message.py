"""The first message of a connection: a sender's Hello, Relay or Measure, a neighbor's Join or Probe.

Not a byte more is read.
"""

from __future__ import annotations

import socket
import time

from blast_transport.base.errors import AuthenticationError, RemoteProtocolError
from blast_transport.credentials.admission import receive_some
from blast_transport.wire.codec import FRAME, LARGEST_BODY, ControlDecoder
from blast_transport.wire.joining import JOIN_TYPE, Join, read_join
from blast_transport.wire.measuring import FIRST_TYPES, Measure, MeasuringDecoder, Probe
from blast_transport.wire.messages import Hello, Message
from blast_transport.wire.relaying import RELAY_TYPE, Relay, RelayDecoder

LARGEST = 1 << 16
"""Bytes of a Hello at most; one that is longer is none, but for words of a session that has ended."""

FirstMessage = Hello | Join | Relay | Measure | Probe


def read_first(
    sock: socket.socket, idle_timeout: float, seconds: float, ended: int | None = None
) -> FirstMessage | None:
    """Return the first message; None if the other side closes before it, or begins none within `idle_timeout` seconds.

    Once begun, the message must be complete within `seconds`. Late messages of the session `ended`, which used the
    connection before, are skipped. Raise RemoteProtocolError.
    """
    deadline = time.monotonic() + idle_timeout
    while True:
        try:
            begun = receive_some(sock, FRAME.size, deadline)
        except AuthenticationError:
            return None
        try:
            frame = _rest(sock, begun, time.monotonic() + seconds, LARGEST if ended is None else LARGEST_BODY)
        except AuthenticationError as error:
            raise RemoteProtocolError(f"the first message was cut short: {error}") from error
        message = _parse(frame)
        if isinstance(message, FirstMessage):
            sock.settimeout(None)
            return message
        if message is None or ended is None or message.session != ended:
            raise RemoteProtocolError(
                f"a connection begins with Hello, Join, Relay, Measure or Probe, not with {type(message).__name__}"
            )


def _parse(frame: bytes) -> Message | FirstMessage | None:
    """Parse the message in a whole frame. Raise RemoteProtocolError."""
    _, number, _ = FRAME.unpack_from(frame)
    if number == JOIN_TYPE:
        return read_join(frame)
    if number == RELAY_TYPE:
        return next((each for each in RelayDecoder().feed(frame) if isinstance(each, Relay)), None)
    if number in FIRST_TYPES:
        return next((each for each in MeasuringDecoder().feed(frame) if isinstance(each, Measure | Probe)), None)
    return next(iter(ControlDecoder().feed(frame)), None)


def _rest(sock: socket.socket, begun: bytes, deadline: float, max_bytes: int) -> bytes:
    head = begun + _exactly(sock, FRAME.size - len(begun), deadline)
    length, *_ = FRAME.unpack(head)
    if length > max_bytes:
        raise RemoteProtocolError(f"a first message of {length} bytes; the maximum is {max_bytes}")
    return head + _exactly(sock, length, deadline)


def _exactly(sock: socket.socket, count: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < count:
        data += receive_some(sock, count - len(data), deadline)
    return bytes(data)

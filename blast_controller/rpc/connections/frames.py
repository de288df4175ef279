"""Thrift framing, sans-IO: a frame is a 4-byte big-endian signed length and as many bytes of body.

The length is judged as soon as its four bytes are there, before any of the body is waited for, so that a client
cannot make the server hold more than one frame of the cap.
"""

from __future__ import annotations

import struct

from blast_controller.rpc.connections.errors import FrameLengthError, FrameTooLargeError

FRAME_BYTES = 1 << 20
"""The largest frame body that the public interface allows."""

_LENGTH = struct.Struct("!i")


class RpcFrameDecoder:
    """Cuts a byte stream into frame bodies, whatever the sizes of the pieces it arrives in."""

    def __init__(self, frame_bytes: int = FRAME_BYTES) -> None:
        self.cap = frame_bytes
        """The largest body; may be changed between two frames."""
        self._buffer = bytearray()

    def receive(self, data: bytes) -> None:
        """Take what the network delivered."""
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """Return the next complete frame's body, or None until more arrives.

        Raises `FrameLengthError` or `FrameTooLargeError`; every later call raises it again, because nothing behind a
        bad length can be understood.
        """
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length <= 0:
            raise FrameLengthError(length)
        if length > self.cap:
            raise FrameTooLargeError(length, self.cap, bytes(self._buffer[_LENGTH.size :]))
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        return body


def encode_frame(body: bytes) -> bytes:
    """Return `body` with its length in front."""
    return _LENGTH.pack(len(body)) + body

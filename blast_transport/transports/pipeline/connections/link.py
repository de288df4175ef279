"""A pipeline connection: messages both ways on a non-blocking socket, and data that goes past them."""

from __future__ import annotations

import os
import socket
import ssl
from collections import deque
from contextlib import suppress

from blast_transport.base.errors import RemoteError, sentence
from blast_transport.transports.pipeline.connections.pump import FrameReader, FrameWriter, Intake, Outlet
from blast_transport.transports.pipeline.protocol.messages import (
    Data,
    Message,
    PipelineDecoder,
    PipelineHeartbeat,
    encode,
)

CHUNK_BYTES = 1 << 20
"""Maximum data of one DATA frame, which delays a QUIT."""

WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_MAX_QUEUED = 64
"""Messages for a neighbor that does not read; beyond, it is lost."""
_RECEIVE_BYTES = 1 << 16
"""One read, of control messages at most."""


class Link:
    """One connection. It owns the socket. All methods raise RemoteError when the connection is of no more use."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            with suppress(OSError):  # Closed by the other side: reading will report it.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self._decoder = PipelineDecoder()
        self._frame = bytearray()
        self._queue: deque[bytes] = deque()
        self._chunk = 0
        self._parted = False
        # Error number of the connection, which the next operation reports.
        self._broken: int | None = None
        # OpenSSL hands out what it has decrypted without the socket being readable; flags it does not know.
        self._tls = sock if isinstance(sock, ssl.SSLSocket) else None
        self._more = 0 if self._tls else socket.MSG_MORE

    @property
    def payload(self) -> int:
        """Return the bytes of data that come next, before any message."""
        return self._decoder.payload

    @property
    def pending(self) -> bool:
        """Return whether data is buffered outside of the kernel."""
        return self._tls is not None and self._tls.pending() > 0

    @property
    def has_output(self) -> bool:
        """Return whether a message is queued, or announced data has to be sent."""
        return bool(self._frame or self._queue or self._chunk)

    def send(self, message: Message) -> None:
        """Queue a message behind the announced data.

        A heartbeat is omitted while other data is queued, which has the same effect.
        """
        if isinstance(message, PipelineHeartbeat) and self.has_output:
            return
        self._queue.append(encode(message))
        if len(self._queue) > _MAX_QUEUED:
            raise RemoteError("does not accept messages")

    @property
    def promised(self) -> int:
        """Return the announced bytes of data that have yet to be sent."""
        return self._chunk

    def receive(self) -> Message | None:
        """Return the next message; None if it is incomplete, or data comes first."""
        while max_bytes := self._decoder.needed:
            data = self._receive(max_bytes)
            if data is None:
                return None
            message = self._decoder.feed(data)
            if isinstance(message, Data):
                return None
            if message is not None:
                return message
        return None

    def take(self, intake: Intake) -> int:
        """Let the intake take data; return how many bytes it took. Raises StoreError, RemoteError."""
        if self._tls is None and (frames := intake.frames) is not None:
            return self._take_frames(frames)
        try:
            count = intake.take(self.socket, self._decoder.payload)
        except WOULD_BLOCK:
            return 0
        except OSError as error:
            raise RemoteError(f"connection lost: {sentence(error)}") from error
        if count == 0:
            raise RemoteError("connection closed in the middle of data")
        self._decoder.passed(count)
        return count

    def flush(self) -> bool:
        """Send queued messages, as far as the socket takes them and no data precedes; return true if all are sent."""
        while self._chunk == 0 and self._queue:
            self._frame += self._queue.popleft()
        self._send_frame(0)
        return not self.has_output

    def give(self, outlet: Outlet, offset: int, stop: int) -> int:
        """Send messages, then data from `offset` to before `stop`; return how many bytes of data left.

        Raises what the outlet raises besides.
        """
        if self._tls is None and (frames := outlet.frames) is not None:
            return self._give_frames(frames, offset, stop)
        if self._chunk == 0:
            if not self.flush() or offset >= stop:
                return 0
            outlet.check(offset)
            self._chunk = min(stop - offset, CHUNK_BYTES)
            self._frame += encode(Data(self._chunk))
        if not self._send_frame(self._more):
            return 0
        try:
            sent = outlet.give(self.socket, offset, self._chunk)
        except WOULD_BLOCK:
            return 0
        except OSError as error:
            raise RemoteError(f"connection lost: {sentence(error)}") from error
        self._chunk -= sent
        return sent

    def part(self) -> bool:
        """Send the queue, then wait for the other side to close; return True while it has not.

        Raise RemoteError when it has.
        """
        if self.flush() and not self._parted:
            self._parted = True
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
        if self._parted:
            self._receive(_RECEIVE_BYTES)
        return True

    def close(self) -> None:
        """Close the socket and drop queued messages."""
        self.socket.close()

    def _take_frames(self, frames: FrameReader) -> int:
        self._check()
        count, left, broken = frames(self.socket, self._decoder.payload)
        self._decoder.followed(left)
        self._note_broken(count, broken)
        return count

    def _give_frames(self, frames: FrameWriter, offset: int, stop: int) -> int:
        self._check()
        if not (self._send_frame(self._more) if self._chunk else self.flush()):
            return 0
        # A message that waits goes behind what was announced.
        stop = offset + self._chunk if self._queue else stop
        if self._chunk == 0 and offset >= stop:
            return 0
        sent, self._chunk, head, broken = frames(self.socket, offset, self._chunk, stop)
        self._frame += head
        self._note_broken(sent, broken)
        return sent

    def _note_broken(self, count: int, broken: int | None) -> None:
        """Report the data that passed before the error first."""
        self._broken = broken
        if count == 0:
            self._check()

    def _check(self) -> None:
        if self._broken == 0:
            raise RemoteError("connection closed in the middle of data")
        if self._broken is not None:
            raise RemoteError(f"connection lost: {os.strerror(self._broken)}")

    def _receive(self, max_bytes: int) -> bytes | None:
        self._check()
        try:
            data = self.socket.recv(min(max_bytes, _RECEIVE_BYTES))
        except WOULD_BLOCK:
            return None
        except OSError as error:
            raise RemoteError(f"connection lost: {sentence(error)}") from error
        if not data:
            raise RemoteError("connection closed")
        return data

    def _send_frame(self, flags: int) -> bool:
        """Send `_frame`; return true if all of it left."""
        while self._frame:
            try:
                sent = self.socket.send(self._frame, flags)
            except WOULD_BLOCK:
                return False
            except OSError as error:
                raise RemoteError(f"connection lost: {sentence(error)}") from error
            del self._frame[:sent]
        return True

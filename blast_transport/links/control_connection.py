"""A control connection: the codec on a non-blocking TCP or TLS socket. The one to a rack leader, likewise."""

from __future__ import annotations

import socket
import ssl
import sys
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

from blast_transport.base.errors import RemoteError
from blast_transport.base.precedence import BEST_EFFORT, EXPEDITED, set_precedence
from blast_transport.credentials.authentication import REFUSED
from blast_transport.wire.codec import ControlDecoder, FrameDecoder, encode
from blast_transport.wire.messages import Message
from blast_transport.wire.relaying import RelayDecoder, RelayMessage, encode_relay

# Malloc would map a larger buffer for every message: 26 us each.
_RECEIVE_BYTES = 1 << 16
_MAX_PARTS = 64
"""Messages per system call."""
_KEEPALIVE_IDLE_SECONDS = 10
_KEEPALIVE_INTERVAL_SECONDS = 5
_KEEPALIVE_PROBES = 3
_INFO_BYTES, _DATA_SEGMENTS_AT = 256, 152
"""Where `struct tcp_info` (linux/tcp.h) has `tcpi_data_segs_in`, an unsigned number."""
_DATA_SEGMENTS_BYTES = 4

M = TypeVar("M")

_AGAIN = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class FramedConnection(Generic[M]):
    """One end of a connection that carries messages. It owns the socket."""

    def __init__(self, sock: socket.socket, decoder: FrameDecoder[M], encoder: Callable[[M], bytes]) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)
        self.socket = sock
        self.queued_bytes = 0
        self._decoder, self._encoder = decoder, encoder
        self._queue: deque[memoryview] = deque()

    def expedite(self, by_light: bool) -> None:
        """Prioritize control messages and repairs of an optical transfer over other packets, like its datagrams."""
        set_precedence(self.socket, EXPEDITED if by_light else BEST_EFFORT)

    @property
    def has_output(self) -> bool:
        """Return whether messages are queued."""
        return bool(self._queue)

    @property
    def halfway(self) -> bool:
        """Return whether a message has begun to arrive."""
        return self._decoder.halfway

    @property
    def segments(self) -> int:
        """Return the number of data segments received, including segments behind a lost one.

        Return 0 where the system reports less than Linux does, such as emulators.
        """
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
        count = info[_DATA_SEGMENTS_AT : _DATA_SEGMENTS_AT + _DATA_SEGMENTS_BYTES]
        return int.from_bytes(count, sys.byteorder)

    def receive(self) -> list[M]:
        """Return the received messages. Raise RemoteError if the other side closed or broke the protocol."""
        try:
            data = self.socket.recv(_RECEIVE_BYTES)
            # TLS may hold what the selector cannot see.
            while isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
                data += self.socket.recv(self.socket.pending())
        except _AGAIN:
            return []
        except OSError as error:
            raise RemoteError(f"control connection lost: {error.strerror}") from error
        if not data:
            raise RemoteError("control connection closed by the other side")
        if data.startswith(REFUSED):
            raise RemoteError("the agent requires credentials: give its secret, or a certificate")
        return self._decoder.feed(data)

    def send(self, message: M) -> None:
        """Queue one message."""
        self.send_frame(self._encoder(message))

    def send_frame(self, frame: bytes) -> None:
        """Queue one message that is a frame already."""
        self._queue.append(memoryview(frame))
        self.queued_bytes += len(frame)

    def flush(self) -> None:
        """Send what the socket takes now. Raises RemoteError if the connection is gone."""
        try:
            while self._queue:
                self._dequeue(self._send_some())
        except _AGAIN:
            pass
        except OSError as error:
            raise RemoteError(f"control connection lost: {error.strerror}") from error

    def _send_some(self) -> int:
        if isinstance(self.socket, ssl.SSLSocket):
            return self.socket.send(self._queue[0])
        return self.socket.sendmsg(islice(self._queue, _MAX_PARTS))

    def _dequeue(self, sent: int) -> None:
        self.queued_bytes -= sent
        while sent:
            first = self._queue.popleft()
            if sent < len(first):
                self._queue.appendleft(first[sent:])
            sent -= min(sent, len(first))

    def drain(self) -> None:
        """Send everything that waits, by a socket that may block. Raises RemoteError, OSError."""
        while self._queue:
            self.socket.sendall(self._queue.popleft())

    def hidden(self, session: int, key: bytes) -> bytes:
        """Mask or unmask the key of a session for this connection.

        TLS hides everything anyway; where both ends have proved a secret (`credentials.admission`), the keys that came
        of it do.
        """
        keys = getattr(self.socket, "keys", None)
        return bytes(keys.hide(session, key)) if keys is not None and key else key

    def close(self) -> None:
        """Close the socket and drop queued messages."""
        self.socket.close()


class ControlConnection(FramedConnection[Message]):
    """One end of a control connection between a sender and a receiver."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock, ControlDecoder(), encode)


class LeaderConnection(FramedConnection[RelayMessage]):
    """One end of the connection between a sender and a rack leader."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock, RelayDecoder(), encode_relay)

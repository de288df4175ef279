"""A control connection: the codec on a non-blocking TCP socket, with a queue that also takes slices of a file."""

from __future__ import annotations

import os
import socket
from collections import deque

from blast_transport.control import Decoder, Message, encode, repair_header
from blast_transport.errors import RemoteError, SourceChangedError

_RECEIVE_BYTES = 1 << 18
_KEEPALIVE_IDLE_SECONDS = 10
_KEEPALIVE_INTERVAL_SECONDS = 5
_KEEPALIVE_PROBES = 3

EXPEDITED, BEST_EFFORT = 46 << 2, 0
"""DSCP 46 and 0 as the kernel's type of service."""

_Slice = tuple[int, int, int]
"""(descriptor, offset, bytes left)."""


class ControlConnection:
    """One end of a control connection. It owns the socket."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)
        self.socket = sock
        self.queued_bytes = 0
        self._decoder = Decoder()
        self._queue: deque[bytes | _Slice] = deque()

    def expedite(self, by_light: bool) -> None:
        """Let what controls and repairs a transfer by light go before other packets, as the light itself does."""
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, EXPEDITED if by_light else BEST_EFFORT)

    @property
    def wants_write(self) -> bool:
        """Something waits to be sent."""
        return bool(self._queue)

    def receive(self) -> list[Message]:
        """What has arrived. Raises RemoteError if the other side closed or broke the protocol."""
        try:
            data = self.socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return []
        except OSError as error:
            raise RemoteError(f"control connection lost: {error.strerror}") from error
        if not data:
            raise RemoteError("control connection closed by the other side")
        return self._decoder.feed(data)

    def send(self, message: Message) -> None:
        """Queue one message."""
        frame = encode(message)
        self._queue.append(frame)
        self.queued_bytes += len(frame)

    def send_repair(self, session: int, segment: int, piece: _Slice) -> None:
        """Queue a Repair whose data the kernel takes from the file itself."""
        header = repair_header(session, segment, piece[2])
        self._queue += [header, piece]
        self.queued_bytes += len(header) + piece[2]

    def flush(self) -> None:
        """Send what the socket takes now.

        Raises RemoteError if the connection is gone, SourceChangedError if a slice's file became shorter.
        """
        try:
            while self._queue:
                self.queued_bytes -= self._send_first()
        except BlockingIOError:
            pass
        except OSError as error:
            raise RemoteError(f"control connection lost: {error.strerror}") from error

    def close(self) -> None:
        """Close the socket; what is queued is dropped."""
        self.socket.close()

    def _send_first(self) -> int:
        item = self._queue[0]
        if isinstance(item, bytes):
            more = socket.MSG_MORE if len(self._queue) > 1 else 0
            sent = self.socket.send(item, more)
            self._replace_first(item[sent:])
            return sent
        descriptor, offset, left = item
        sent = os.sendfile(self.socket.fileno(), descriptor, offset, left)
        if sent == 0:
            raise SourceChangedError(f"the file ends at byte {offset}: it became shorter while it was sent")
        self._replace_first((descriptor, offset + sent, left - sent) if sent < left else b"")
        return sent

    def _replace_first(self, rest: bytes | _Slice) -> None:
        if rest:
            self._queue[0] = rest
        else:
            self._queue.popleft()

"""One connection of an edge, at either end: messages and blocks both ways on a non-blocking socket."""

from __future__ import annotations

import socket
import ssl
from collections import deque
from contextlib import suppress

from blast_transport.base.errors import RemoteError, sentence
from blast_transport.store.targets.target import Buffer
from blast_transport.transports.trees.parcel import Parcel
from blast_transport.transports.trees.protocol.messages import Message, TreeDecoder, block_head, encode

_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_MAX_VIEWS = 256
_TLS_BYTES = 1 << 14
"""TLS record: data that was passed once has to be passed again unchanged."""


class EdgeStream:
    """One TCP connection of an edge. It owns the socket. Methods raise RemoteError if the connection is lost."""

    def __init__(self, sock: socket.socket, reader: TreeDecoder) -> None:
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            with suppress(OSError):  # Closed by the other side: reading will report it.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self.blocked = False
        self.progress = 0
        """Bytes that were read."""
        self.carried = 0
        """Bytes that were read or sent."""
        self._reader = reader
        self._parts: deque[tuple[memoryview, Parcel | None]] = deque()
        self._waiting = 0
        # OpenSSL hands out what it has decrypted without the socket being readable; several buffers it does not know.
        self._tls = sock if isinstance(sock, ssl.SSLSocket) else None

    def keep_short(self, unsent: int) -> None:
        """Limit the bytes that wait in the kernel for the network: they cannot take another stream."""
        if self.socket.family in (socket.AF_INET, socket.AF_INET6):
            with suppress(OSError):
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, unsent)

    @property
    def pending(self) -> bool:
        """Return whether data is buffered outside of the kernel."""
        return self._tls is not None and self._tls.pending() > 0

    @property
    def waiting(self) -> int:
        """Return the queued bytes."""
        return self._waiting

    def queue(self, message: Message) -> None:
        """Queue a message behind earlier data."""
        self.give(encode(message))

    def give(self, data: Buffer, parcel: Parcel | None = None) -> None:
        """Let these bytes leave in their turn; the parcel is used when they have."""
        self._parts.append((memoryview(data), parcel))
        self._waiting += len(data)

    def give_block(self, parcel: Parcel) -> None:
        """Queue a block in its frame."""
        self.give(block_head(parcel.number, len(parcel.data)))
        self.give(parcel.data, parcel)

    def send(self, max_bytes: int) -> int:
        """Send up to `max_bytes` queued bytes; return how many left. Set `blocked` if the socket accepted fewer."""
        sent = 0
        self.blocked = False
        while sent < max_bytes and self._parts and not self.blocked:
            sent += self._send_once(max_bytes - sent)
        return sent

    def receive(self) -> list[Message]:
        """Return the messages that are complete with the available data."""
        try:
            room = self._reader.room()
            count = self.socket.recv_into(room[0]) if self._tls else self.socket.recvmsg_into(room)[0]
        except _WOULD_BLOCK:
            return []
        except OSError as error:
            raise RemoteError(f"connection lost: {sentence(error)}") from error
        if not count:
            raise RemoteError("connection closed")
        self.progress += count
        self.carried += count
        return self._reader.filled(count)

    def close(self) -> None:
        """Close the socket and drop queued data."""
        self.socket.close()
        for _, parcel in self._parts:
            if parcel is not None:
                parcel.used()
        self._parts.clear()
        self._waiting = 0

    def _send_once(self, max_bytes: int) -> int:
        views = self._views(max_bytes)
        offered = sum(map(len, views))
        try:
            sent = self._tls.send(views[0]) if self._tls else self.socket.sendmsg(views)
        except _WOULD_BLOCK:
            self.blocked = True
            return 0
        except OSError as error:
            raise RemoteError(f"connection lost: {sentence(error)}") from error
        self.blocked = sent < offered
        self._waiting -= sent
        self.carried += sent
        self._left(sent)
        return sent

    def _views(self, max_bytes: int) -> list[memoryview]:
        if self._tls:
            return [self._parts[0][0][:_TLS_BYTES]]
        views: list[memoryview] = []
        for view, _ in self._parts:
            views.append(view[:max_bytes])
            max_bytes -= len(views[-1])
            if max_bytes == 0 or len(views) == _MAX_VIEWS:
                break
        return views

    def _left(self, sent: int) -> None:
        while sent:
            view, parcel = self._parts[0]
            if sent < len(view):
                self._parts[0] = (view[sent:], parcel)
                return
            self._parts.popleft()
            sent -= len(view)
            if parcel is not None:
                parcel.used()

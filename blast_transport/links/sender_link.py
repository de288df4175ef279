"""A receiver's connection to its sender, which may reconnect by another leader, or directly."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterable

from blast_transport.base.errors import RemoteError, RemoteProtocolError
from blast_transport.links.control_connection import ControlConnection
from blast_transport.wire.messages import Message


def _ignore() -> None:
    """Ignore the readable socket."""


class SenderLink:
    """Connection to the sender.

    `selector` calls `on_readable` when it is readable; a lost sender may reconnect for `timeout` seconds.
    """

    def __init__(
        self, sock: socket.socket, selector: selectors.BaseSelector, on_readable: Callable[[], None], timeout: float
    ) -> None:
        self.connection = ControlConnection(sock)
        self._selector, self._on_readable, self._timeout = selector, on_readable, timeout
        self._lost = ""
        self._give_up_at = 0.0
        self._segments = 0
        selector.register(sock, selectors.EVENT_READ, on_readable)

    @property
    def awaited(self) -> bool:
        """Return whether the connection is lost, and the sender may reconnect."""
        return bool(self._lost)

    def deadline(self) -> float | None:
        """Return the time when `check` may raise; None if never."""
        return self._give_up_at if self._lost else None

    def check(self, now: float) -> None:
        """Raise RemoteError if the sender has not reconnected in time."""
        if self._lost and now >= self._give_up_at:
            raise RemoteError(self._lost)

    def brings(self) -> bool:
        """Return whether data has arrived since the last call, even a partial message, or data behind a lost segment.

        On a shared link a connection may lose the same segment repeatedly, and deliver nothing for many seconds.
        """
        before, self._segments = self._segments, self.connection.segments
        return self._segments != before

    def receive(self) -> list[Message]:
        """Return the received messages. Raise RemoteError if the connection is lost and must not be reopened."""
        try:
            return self.connection.receive()
        except RemoteProtocolError:
            raise
        except RemoteError as error:
            self._lose(error)
            return []

    def send(self, messages: Iterable[Message]) -> None:
        """Queue messages and send what the socket takes now. Raises RemoteError as `receive` does."""
        for message in messages:
            self.connection.send(message)
        if not self.connection.has_output:
            return
        try:
            self.connection.flush()
        except RemoteError as error:
            self._lose(error)
            return
        interest = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.connection.has_output else 0)
        if self._selector.get_key(self.connection.socket).events != interest:
            self._selector.modify(self.connection.socket, interest, self._on_readable)

    def release(self) -> None:
        """Stop calling `on_readable`, so that its owner can be freed."""
        self._on_readable = _ignore

    def change(self, sock: socket.socket) -> None:
        """Continue over this connection, by which the sender has reconnected."""
        if not self._lost:
            self._put_away()
        self._lost = ""
        self.connection = ControlConnection(sock)
        self._selector.register(sock, selectors.EVENT_READ, self._on_readable)

    def _lose(self, error: RemoteError) -> None:
        if not self._timeout:
            raise error
        self._put_away()
        self._lost, self._give_up_at = str(error), time.monotonic() + self._timeout

    def _put_away(self) -> None:
        self._selector.unregister(self.connection.socket)
        self.connection.close()

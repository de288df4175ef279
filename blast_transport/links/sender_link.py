"""A receiver's connection to its sender, which may come again over another one: by another leader, or directly."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterable

from blast_transport.base.errors import RemoteError, RemoteProtocolError
from blast_transport.links.control_connection import ControlConnection
from blast_transport.wire.messages import Message


def _to_nobody() -> None:
    """Nobody listens any more."""


class SenderLink:
    """Watched by `selector`, which calls `hear`; a sender that is lost is awaited for `patience` seconds."""

    def __init__(
        self, sock: socket.socket, selector: selectors.BaseSelector, hear: Callable[[], None], patience: float
    ) -> None:
        self.connection = ControlConnection(sock)
        self._selector, self._hear, self._timeout = selector, hear, patience
        self._lost = ""
        self._give_up_at = 0.0
        self._segments = 0
        selector.register(sock, selectors.EVENT_READ, hear)

    @property
    def awaited(self) -> bool:
        """The connection is lost, and the sender may come again."""
        return bool(self._lost)

    def deadline(self) -> float | None:
        """When `check` has something to say; None if never."""
        return self._give_up_at if self._lost else None

    def check(self, now: float) -> None:
        """Raises RemoteError if the sender has not come again in time."""
        if self._lost and now >= self._give_up_at:
            raise RemoteError(self._lost)

    def brings(self) -> bool:
        """Whether anything has come since the last call, if only a part of a message, or what waits for a lost part.

        Over a link that many share a connection may lose the same segment again and again, and say nothing for many
        seconds of all that comes after it.
        """
        before, self._segments = self._segments, self.connection.segments
        return self._segments != before

    def receive(self) -> list[Message]:
        """What has arrived. Raises RemoteError if the connection is lost and nobody is awaited."""
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
        if not self.connection.wants_write:
            return
        try:
            self.connection.flush()
        except RemoteError as error:
            self._lose(error)
            return
        interest = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.connection.wants_write else 0)
        if self._selector.get_key(self.connection.socket).events != interest:
            self._selector.modify(self.connection.socket, interest, self._hear)

    def release(self) -> None:
        """Nobody hears us any more; whoever did may be forgotten."""
        self._hear = _to_nobody

    def change(self, sock: socket.socket) -> None:
        """The sender has come again, over this connection."""
        if not self._lost:
            self._put_away()
        self._lost = ""
        self.connection = ControlConnection(sock)
        self._selector.register(sock, selectors.EVENT_READ, self._hear)

    def _lose(self, error: RemoteError) -> None:
        if not self._timeout:
            raise error
        self._put_away()
        self._lost, self._give_up_at = str(error), time.monotonic() + self._timeout

    def _put_away(self) -> None:
        self._selector.unregister(self.connection.socket)
        self.connection.close()

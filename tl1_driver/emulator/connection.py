"""One TCP connection to the emulated switch."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from tl1_driver.emulator.requests import ReceivedCommand, RequestReader


class EmulatedConnection(asyncio.Protocol):
    """A connection that greets, reads requests and passes each to `accept`; it is in `connections` while it lasts.

    It ends at once if the switch `is_full`. Commands of one that has `lost_power` change nothing any more.
    """

    def __init__(
        self,
        connections: set[EmulatedConnection],
        accept: Callable[[EmulatedConnection, ReceivedCommand], None],
        is_full: Callable[[], bool],
        greeting: str,
    ) -> None:
        self.logged_in = False
        self.lost_power = False
        self.last_request = 0.0
        self._greeting = greeting
        self._connections = connections
        self._accept = accept
        self._is_full = is_full
        self._reader = RequestReader()
        self._transport: asyncio.Transport | None = None

    def write(self, text: str) -> None:
        """Send `text`, unless the client has disconnected."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(text.encode())

    def cut(self) -> None:
        """End the connection at once, without sending buffered data."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the greeting, or refuse the connection."""
        assert isinstance(transport, asyncio.Transport)
        if self._is_full():
            transport.close()
            return
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections.add(self)
        self.write(self._greeting)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client; its pending commands are still executed."""
        self._transport = None
        self._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        """Pass on complete requests."""
        for request in self._reader.feed(data):
            self._accept(self, request)

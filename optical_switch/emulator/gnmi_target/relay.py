"""A relay of TCP connections in front of the gRPC server, so that single connections can be cut.

A gRPC server has no way to drop the connection of one client as a crash or a pulled cable does. The relay forwards
bytes, encrypted ones too, and knows the connection of a client by the address that the server sees as its peer.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

MAX_CONNECTIONS = 64
"""Connections at a time; a further one is closed at once. Each needs two file descriptors."""

MAX_EARLY_BYTES = 1 << 20
"""Bytes of a client before the connection to the server is open: more than clients send without an answer."""


class ConnectionRelay:
    """Forwards the connections of a listening socket to a server on loopback.

    Parameters
    ----------
    sock : socket.socket
        Socket that is bound and listens.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._server: asyncio.Server | None = None
        self._port: int | None = None
        self._connections: dict[str, _RelayedClient] = {}
        self._open: set[_RelayedClient] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def start(self) -> None:
        """Accept connections; they are closed at once until `forward_to` is called."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _RelayedClient(self), sock=self._sock)

    def forward_to(self, port: int | None) -> None:
        """Forward new connections to a port on loopback; None: close them at once, as a device that starts does."""
        self._port = port

    def cut(self, peer: str) -> None:
        """Cut the connection of a peer, as the gRPC server names it, without sending buffered data."""
        connection = self._connections.get(peer)
        if connection is not None:
            connection.abort()

    def cut_all(self) -> None:
        """Cut all connections."""
        for connection in list(self._open):
            connection.abort()

    async def close(self) -> None:
        """Stop listening, and cut all connections."""
        if self._server is not None:
            self._server.close()
        self.cut_all()
        await self._idle.wait()

    # -------------------------------------------------------------------------------------- used by connections

    @property
    def port(self) -> int | None:
        """Port to which a new connection is forwarded; None if it is to be closed."""
        return self._port if len(self._open) < MAX_CONNECTIONS else None

    def opened(self, connection: _RelayedClient) -> None:
        """Keep a connection."""
        self._open.add(connection)
        self._idle.clear()

    def forwarded(self, connection: _RelayedClient, peer: str) -> None:
        """Remember the name of a connection's peer."""
        self._connections[peer] = connection

    def closed(self, connection: _RelayedClient) -> None:
        """Forget a connection."""
        self._open.discard(connection)
        self._connections = {peer: one for peer, one in self._connections.items() if one is not connection}
        if not self._open:
            self._idle.set()


class _RelayedEnd(asyncio.Protocol):
    """One end of a relayed connection, whose received bytes are written to `other`."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _RelayedEnd | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        # gRPC sends small frames that must not wait for others.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class _RelayedClient(_RelayedEnd):
    """The end at the client, which opens the other one."""

    def __init__(self, relay: ConnectionRelay) -> None:
        super().__init__()
        self._relay = relay
        self._opening: asyncio.Task[None] | None = None
        self._early: list[bytes] = []
        """Bytes that arrived before the other end was open: asyncio of Python 3.11.2 reads on although it is paused."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        port = self._relay.port
        if port is None:
            self.abort()
            return
        self._relay.opened(self)
        assert self.transport is not None
        self.transport.pause_reading()
        self._opening = asyncio.create_task(self._forward(port))

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            super().data_received(data)
            return
        self._early.append(data)
        if sum(map(len, self._early)) > MAX_EARLY_BYTES:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._opening is not None:
            self._opening.cancel()
        self._relay.closed(self)

    def abort(self) -> None:
        """Cut both ends."""
        for end in (self, self.other):
            if end is not None and end.transport is not None:
                end.transport.abort()

    async def _forward(self, port: int) -> None:
        other = _RelayedEnd()
        other.other = self
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(lambda: other, "127.0.0.1", port)
        except OSError:
            self.abort()
            return
        self.other = other
        if self.transport is None:
            transport.close()
            return
        host, own_port = transport.get_extra_info("sockname")[:2]
        self._relay.forwarded(self, f"ipv4:{host}:{own_port}")
        transport.write(b"".join(self._early))
        with suppress(RuntimeError):
            self.transport.resume_reading()

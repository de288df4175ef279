"""Finding out which protocol a peer speaks, without a login and without a command that has an effect.

    1  connect, and let the peer speak first: SSH, gRPC without TLS
    2  RTRV-HDR on the same connection: TL1, and Redis, which refuses it
    3  a TLS handshake that offers HTTP/2: gRPC, or Redis in TLS, which answers PING
    4  the beginning of HTTP/2 without TLS

Each connection is closed before the next begins, and the peer has time to notice it: some switches take one session at
a time.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from blast_base.endpoint import Endpoint
from blast_controller.cli.switch.probe.first_bytes import (
    HTTP2_PREFACE,
    PING,
    RTRV_HDR,
    PeerProtocol,
    PeerSign,
    recognize_peer,
)
from optical_switch.errors import ProtocolError, UnreachableError

MAX_FIRST_BYTES = 4096
"""Bytes that are read on a connection: a banner, and an answer."""


@dataclass(frozen=True, slots=True)
class DiscoveryTimes:
    """Time limits in seconds.

    Parameters
    ----------
    silence : float
        Time for a peer that may have nothing to send.
    answer : float
        Time for a connection, for a handshake and for an answer.
    total : float
        Time for everything.
    """

    silence: float = 1.0
    answer: float = 3.0
    total: float = 20.0


@dataclass(frozen=True, slots=True)
class DiscoveredPeer:
    """The protocol of a peer; `is_tls` is true if it is spoken in TLS, `text` is its banner or answer."""

    protocol: PeerProtocol
    is_tls: bool = False
    text: str = ""


USUAL_TIMES = DiscoveryTimes()


async def discover(endpoint: Endpoint, times: DiscoveryTimes = USUAL_TIMES) -> DiscoveredPeer:
    """Return the protocol that a peer speaks.

    Parameters
    ----------
    endpoint : Endpoint
        Address of the peer.
    times : DiscoveryTimes
        Time limits.

    Returns
    -------
    DiscoveredPeer
        The protocol.

    Raises
    ------
    UnreachableError
        If no connection can be established.
    ProtocolError
        If the protocol cannot be recognized.
    """
    try:
        async with asyncio.timeout(times.total):
            sign = await _listen(endpoint, times)
            if sign is not None and sign.protocol is not PeerProtocol.TLS:
                return DiscoveredPeer(sign.protocol, text=sign.text)
            if (encrypted := await _shake_hands(endpoint, times)) is not None:
                return encrypted
            if (sign := await _ask(endpoint, HTTP2_PREFACE, times)) is not None:
                return DiscoveredPeer(sign.protocol, text=sign.text)
    except TimeoutError:
        pass
    raise ProtocolError(
        f"{endpoint} accepts a connection, but speaks none of SSH, TL1, gRPC and Redis: check the port, and that the "
        "switch has a free session"
    )


async def _listen(endpoint: Endpoint, times: DiscoveryTimes) -> PeerSign | None:
    """Wait for the first bytes of the peer; if they show no protocol, send a command. Raises UnreachableError."""
    try:
        async with _connection(endpoint, times) as conversation:
            if (sign := await conversation.wait_for_sign(times.silence)) is None:
                conversation.send(RTRV_HDR)
                sign = await conversation.wait_for_sign(times.answer)
            return sign
    except TimeoutError:
        raise UnreachableError(
            f"{endpoint} accepts no connection within {times.answer:g} s: check the address, and that no firewall "
            "drops connections to it"
        ) from None
    except OSError as error:
        raise UnreachableError(
            f"{endpoint} is not reachable: {error.strerror or error}: check the address and the port"
        ) from error


async def _ask(endpoint: Endpoint, message: bytes, times: DiscoveryTimes) -> PeerSign | None:
    """Send a message on a new connection, and return the sign in the answer."""
    try:
        async with _connection(endpoint, times) as conversation:
            conversation.send(message)
            return await conversation.wait_for_sign(times.answer)
    except (TimeoutError, OSError):
        return None


async def _shake_hands(endpoint: Endpoint, times: DiscoveryTimes) -> DiscoveredPeer | None:
    """Return the protocol inside TLS; None if the peer does not speak TLS. Certificates are not checked here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        async with _connection(endpoint, times, context) as conversation:
            if conversation.is_http2:
                return DiscoveredPeer(PeerProtocol.GRPC, is_tls=True)
            conversation.send(PING)
            sign = await conversation.wait_for_sign(times.answer)
            return DiscoveredPeer(sign.protocol if sign else PeerProtocol.TLS, is_tls=True)
    except ssl.SSLError as error:
        # The peer ends the handshake, but by a message of TLS: it may require a certificate of the client.
        is_alert = "ALERT" in (error.reason or "")
        return DiscoveredPeer(PeerProtocol.TLS, is_tls=True, text=error.reason or "") if is_alert else None
    except (TimeoutError, OSError):
        return None


class _Conversation:
    """The messages on one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.received = b""

    @property
    def is_http2(self) -> bool:
        """True if the handshake of TLS has selected HTTP/2."""
        found = self._writer.get_extra_info("ssl_object")
        return isinstance(found, ssl.SSLObject) and found.selected_alpn_protocol() == "h2"

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._writer.write(message)

    async def wait_for_sign(self, seconds: float) -> PeerSign | None:
        """Return the sign in the received bytes; None after this time, or at the end of the connection."""
        try:
            async with asyncio.timeout(seconds):
                while (sign := recognize_peer(self.received)) is None and len(self.received) < MAX_FIRST_BYTES:
                    piece = await self._reader.read(MAX_FIRST_BYTES - len(self.received))
                    if not piece:
                        return None
                    self.received += piece
                return sign
        except (TimeoutError, ConnectionError):
            return None

    async def end(self, seconds: float) -> None:
        """Close the connection, and wait until the peer has done so too, at most this time."""
        with suppress(TimeoutError, OSError):
            if self._writer.can_write_eof():
                self._writer.write_eof()
                async with asyncio.timeout(seconds):
                    while await self._reader.read(MAX_FIRST_BYTES):
                        pass


@asynccontextmanager
async def _connection(
    endpoint: Endpoint, times: DiscoveryTimes, context: ssl.SSLContext | None = None
) -> AsyncIterator[_Conversation]:
    async with asyncio.timeout(times.answer):
        reader, writer = await asyncio.open_connection(
            endpoint.host, endpoint.port, ssl=context, server_hostname=None if context is None else endpoint.host
        )
    conversation = _Conversation(reader, writer)
    try:
        yield conversation
        await conversation.end(times.silence)
    finally:
        writer.transport.abort()

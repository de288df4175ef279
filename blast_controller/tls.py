"""TLS for servers: the context, and a listener that no silent client can block."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_log = logging.getLogger(__name__)

_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SECONDS_WITHOUT_ROOM = 1.0
_SECONDS_TO_SAY_GOODBYE = 2.0


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Files (PEM) of the server's side of TLS. With `client_ca`, clients show certificates; they must if `required`."""

    certificate: Path
    private_key: Path
    client_ca: Path | None = None
    required: bool = True
    handshake_seconds: float = 5.0


class BadTlsFile(Exception):
    """The operator's fault: a certificate or key cannot be used. One sentence."""


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a server. Raises BadTlsFile."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Every connection proves anew who it is: no session survives the certificate that it was opened with.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    _load_certificate(context, settings)
    if settings.client_ca is not None:
        try:
            context.load_verify_locations(cafile=settings.client_ca)
        except (ssl.SSLError, OSError) as error:
            raise BadTlsFile(f"the CA file {settings.client_ca} cannot be used: {_reason(error)}.") from error
        context.verify_mode = ssl.CERT_REQUIRED if settings.required else ssl.CERT_OPTIONAL
    return context


def _load_certificate(context: ssl.SSLContext, settings: TlsSettings) -> None:
    try:
        # Without a password of our own, OpenSSL would ask for one at the terminal.
        context.load_cert_chain(settings.certificate, settings.private_key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        raise BadTlsFile(
            f"the certificate {settings.certificate} and the key {settings.private_key} cannot be used: "
            f"{_reason(error)} (PEM, and the key without a password)."
        ) from error


@dataclass(frozen=True, slots=True)
class Door:
    """What a listener asks of its server: whether there is room, and to hear of every handshake that failed."""

    make_protocol: Callable[[], asyncio.Protocol]
    has_room: Callable[[int], bool]
    """Given how many clients are at the handshake."""
    failed: Callable[[str, str], None]
    """A client's address, and why."""


class TlsListener:
    """Accepts clients; each is at its own handshake for a bounded time, and becomes a connection when it is done.

    The listener of asyncio would do the same, but tells nobody when and why a handshake failed. Raises BadTlsFile.
    """

    def __init__(self, door: Door, settings: TlsSettings) -> None:
        self._door = door
        self._handshake_seconds = settings.handshake_seconds
        self.reload(settings)
        self._handshakes: set[asyncio.Task[None]] = set()
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None

    def reload(self, settings: TlsSettings) -> None:
        """Meet new clients with what these files hold now; open connections go on. From any thread.

        Raises BadTlsFile, and all stays as it was.
        """
        # A context of its own: one whose certificate and key are being changed fails the handshakes of that moment.
        self._context = server_context(settings)

    def start(self, listening: socket.socket) -> None:
        """Accept from a listening socket, which is ours from now on; on the running loop."""
        listening.setblocking(False)
        self._socket = listening
        self._accepting = asyncio.create_task(self._accept(listening))

    async def close(self) -> None:
        """Accept nobody further, and end the handshakes."""
        tasks = [*self._handshakes, *([self._accepting] if self._accepting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, address = await loop.sock_accept(listening)
            except OSError as error:
                # What went wrong with one client is over with it; without files or memory a pause may help.
                if error.errno in _NO_ROOM:
                    _log.error("no client can be accepted: %s", error.strerror)
                    await asyncio.sleep(_SECONDS_WITHOUT_ROOM)
                continue
            if not self._door.has_room(len(self._handshakes)):
                client.close()
                continue
            handshake = asyncio.create_task(self._shake_hands(client, address))
            self._handshakes.add(handshake)
            handshake.add_done_callback(self._handshakes.discard)
            # Accepting may succeed again and again without ever waiting.
            await asyncio.sleep(0)

    async def _shake_hands(self, client: socket.socket, address: tuple[object, ...]) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._door.make_protocol,
                client,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake_seconds,
                ssl_shutdown_timeout=_SECONDS_TO_SAY_GOODBYE,
            )
        except OSError as error:
            self._door.failed(":".join(str(part) for part in address[:2]), _reason(error))


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return error.strerror or str(error)

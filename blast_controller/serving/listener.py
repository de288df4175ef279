"""A listening socket that no flood and no silent client can block, with or without TLS.

Each iteration of the loop accepts one client, so that a flood of new ones leaves time for existing ones. TLS handshakes
have a time limit and a limited number of places, from which the longest silent one is removed first.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from blast_controller.runtime.faults import without_frames
from blast_controller.serving.admission_slots import AdmissionSlots
from blast_controller.serving.tls import ServerTlsSettings, reason_of, server_context
from blast_controller.serving.untied import untie_transports

_log = logging.getLogger(__name__)

_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SECONDS_WITHOUT_ROOM = 1.0
_TLS_CLOSE_SECONDS = 2.0
_TLS_BUFFER_BYTES = 32_768
"""A TLS record is half of that; asyncio would allocate 256 KiB for every client that begins a handshake."""
HANDSHAKES = 256
"""TLS handshakes at a time: each takes CPU time and memory before a client is authenticated."""
HANDSHAKES_PER_HOST = 128
"""Half of them, so that one host cannot exclude the others."""


@dataclass(frozen=True, slots=True)
class Acceptor:
    """The listener's interface to its server: a protocol for each client, and a callback for failed handshakes.

    At most `handshakes` run at once, `handshakes_per_host` of them from one address.
    """

    make_protocol: Callable[[], asyncio.BaseProtocol]
    failed: Callable[[str, str], None]
    """A client's address, and why."""
    handshakes: int = HANDSHAKES
    handshakes_per_host: int = HANDSHAKES_PER_HOST


class Listener:
    """Accepts clients; with TLS each becomes a connection when its handshake is complete. Raises TlsFileError.

    The listener of asyncio accepts a thousand at once, does not limit handshakes, and does not report failed ones.
    """

    def __init__(self, acceptor: Acceptor, tls: ServerTlsSettings | None) -> None:
        untie_transports()
        self._acceptor = acceptor
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        if tls is not None:
            self._context = server_context(tls)
            sslproto.SSLProtocol.max_size = _TLS_BUFFER_BYTES
        self._handshakes: AdmissionSlots[asyncio.Task[None]] = AdmissionSlots(
            acceptor.handshakes, acceptor.handshakes_per_host
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._crowded_out: set[asyncio.Task[None]] = set()
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None

    def reload(self, tls: ServerTlsSettings) -> None:
        """Reload certificates for new clients; TLS cannot be turned on or off. From any thread.

        Raises TlsFileError, with nothing changed.
        """
        if self._context is not None:
            # A context of its own: one whose certificate and key are being changed fails the handshakes of that moment.
            self._context = server_context(tls)

    def start(self, listening: socket.socket) -> None:
        """Accept from a listening socket, which is ours from now on; on the running loop."""
        listening.setblocking(False)
        self._socket = listening
        self._accepting = asyncio.create_task(self._accept(listening))

    async def close(self) -> None:
        """Stop accepting, and end all handshakes."""
        tasks = [*self._tasks, *([self._accepting] if self._accepting else [])]
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
                # The error of a single client needs no action; without files or memory a pause may help.
                if error.errno in _NO_ROOM:
                    _log.error("no connection can be accepted: %s", error.strerror)
                    await asyncio.sleep(_SECONDS_WITHOUT_ROOM)
                continue
            greeting = asyncio.create_task(self._greet(client, address))
            self._tasks.add(greeting)
            greeting.add_done_callback(partial(self._greeted, client))
            if self._context is not None:
                self._make_room(self._handshakes.enter(greeting, str(address[0])))
            # Accepting may succeed again and again without ever waiting.
            await asyncio.sleep(0)

    def _make_room(self, closed: asyncio.Task[None] | None) -> None:
        if closed is not None:
            self._crowded_out.add(closed)
            closed.cancel()

    def _greeted(self, client: socket.socket, greeting: asyncio.Task[None]) -> None:
        if greeting.cancelled():
            # It may not even have begun.
            client.close()
        self._tasks.discard(greeting)
        self._crowded_out.discard(greeting)
        self._handshakes.leave(greeting)

    async def _greet(self, client: socket.socket, address: tuple[object, ...]) -> None:
        peer = ":".join(str(part) for part in address[:2])
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._acceptor.make_protocol,
                client,
                ssl=self._context,
                ssl_handshake_timeout=self._tls.handshake_seconds if self._tls else None,
                ssl_shutdown_timeout=_TLS_CLOSE_SECONDS if self._tls else None,
            )
        except OSError as error:
            self._acceptor.failed(peer, reason_of(without_frames(error)))
        except asyncio.CancelledError:
            client.close()
            if asyncio.current_task() not in self._crowded_out:
                raise
            self._acceptor.failed(peer, "it was silent, and other connections need its place")

"""Serves an application by HTTP, in a thread with a loop of its own: whatever happens here, deciding goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress

from starlette.types import ASGIApp, Scope
from uvicorn.config import Config
from uvicorn.server import ServerState

from blast_controller.ops.http.client_counts import MAX_GUESTS, MAX_GUESTS_PER_HOST, ClientCounts
from blast_controller.ops.http.protocol import Protocol
from blast_controller.serving.admission_slots import AdmissionSlots
from blast_controller.serving.listener import HANDSHAKES, HANDSHAKES_PER_HOST, Acceptor, Listener
from blast_controller.serving.loop_thread import LoopThread, address_of, listening_socket
from blast_controller.serving.tls import ServerTlsSettings

_log = logging.getLogger(__name__)

HEAD_BYTES = 16_384
"""Bytes of a request line and its headers, as in other servers."""
IDLE_SECONDS = 5.0
"""Browsers and Prometheus open a new connection at no cost; an idle one takes a slot."""
GRACE = 1.0
"""Seconds for answers in progress when the server closes."""


class HttpServer:
    """The HTTP server of an application.

    `background` runs beside it on its loop; `share` is that of `Descriptors`, `knows` that of `Protocol`. Raises
    TlsFileError if a certificate or key cannot be used.
    """

    def __init__(
        self,
        application: ASGIApp,
        tls: ServerTlsSettings | None,
        background: Callable[[], Coroutine[None, None, None]] | None = None,
        share: Callable[[int], int] = lambda bound: bound,
        knows: Callable[[Scope], bool] = lambda scope: False,
    ) -> None:
        self._background, self._knows = background, knows
        self._beside: asyncio.Task[None] | None = None
        self._config = Config(
            application,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=HEAD_BYTES,
            timeout_keep_alive=int(IDLE_SECONDS),
        )
        self._config.load()
        # Clients' faults are not logged; the application logs its own.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._state = ServerState()
        self._places: AdmissionSlots[Protocol] = AdmissionSlots(share(MAX_GUESTS), share(MAX_GUESTS_PER_HOST))
        self._crowd = ClientCounts(share=share)
        handshakes = (share(HANDSHAKES), share(HANDSHAKES_PER_HOST))
        self._listener = Listener(Acceptor(self._new_connection, _handshake_failed, *handshakes), tls)
        self._io = LoopThread("http")

    def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and return the address that is bound. Raises OSError when it cannot be had."""
        return self._io.run(self._listen(host, port))

    def reload_certificate(self, tls: ServerTlsSettings) -> None:
        """Use this certificate for new clients. Raises TlsFileError."""
        self._listener.reload(tls)

    def stop(self) -> None:
        """End; an answer under way has a second. Twice, or without a start, does nothing."""
        if self._io.is_running:
            self._io.run(self._shut_down())
        self._io.end()

    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        listening = await listening_socket(host, port)
        self._listener.start(listening)
        if self._background is not None:
            self._beside = asyncio.create_task(self._background())
        return address_of(listening)

    def _new_connection(self) -> Protocol:
        return Protocol(self._config, self._state, self._places, self._crowd, self._knows)

    async def _shut_down(self) -> None:
        await self._listener.close()
        if self._beside is not None:
            self._beside.cancel()
        for connection in list(self._state.connections):
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while self._state.connections:
                    await asyncio.sleep(0.01)
        for connection in list(self._state.connections):
            connection.transport.abort()
        for task in (tasks := list(self._state.tasks)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _handshake_failed(peer: str, reason: str) -> None:
    _log.warning("%s closed: TLS handshake failed: %s", peer, reason)

"""A Thrift server for framed clients: one I/O thread that only moves bytes, and a pool of workers.

The shape is that of Thrift's non-blocking server (one network thread, a worker pool); the loop is asyncio's, the
framing our own and the codec Apache Thrift's accelerated one. A handler method may return a future: the reply leaves
when it is done, and until then nothing but a table entry is held.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import ModuleType

from blast_controller.rpc.connections.connection import AdmitAll, Guard, Handler
from blast_controller.rpc.connections.messages import RefusalErrors, ServiceCodec
from blast_controller.rpc.connections.served_connection import ServedConnection
from blast_controller.rpc.connections.server_state import ServerCounters, ServerLimits, Shared
from blast_controller.serving.listener import Acceptor, Listener
from blast_controller.serving.loop_thread import LoopThread, address_of, listening_socket
from blast_controller.serving.tls import ServerTlsSettings

_log = logging.getLogger(__name__)
_BACKLOG = 1024
"""Connections that the kernel holds while the loop is busy: a thousand clients reconnect after a restart."""


@dataclass(frozen=True, slots=True)
class Security:
    """`guard` is asked before each call; with `tls`, clients that speak nothing else are served."""

    guard: Guard = field(default_factory=AdmitAll)
    tls: ServerTlsSettings | None = None


class FramedServer:
    """Serves a generated Thrift service module (`blast_api.BlastOperator`) with a handler, see `Handler`.

    Raises TypeError when the handler lacks a method of the service, TlsFileError when a certificate or key cannot be
    used.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - with the loop that several share
        self,
        service: ModuleType,
        handler: Handler,
        limits: ServerLimits | None = None,
        refusals: RefusalErrors | None = None,
        security: Security | None = None,
        io: LoopThread | None = None,
    ) -> None:
        limits = limits or ServerLimits()
        codec = ServiceCodec(service, limits.frame_bytes, refusals)
        missing = [name for name in (*codec.methods, "disconnected") if not callable(getattr(handler, name, None))]
        if missing:
            raise TypeError(f"the handler of {service.__name__} lacks {', '.join(missing)}")
        security = security or Security()
        acceptor = Acceptor(self._new_connection, self._handshake_failed, limits.handshakes, limits.handshakes_per_host)
        self._listener = Listener(acceptor, security.tls)
        self._workers = ThreadPoolExecutor(limits.workers, thread_name_prefix="rpc-worker")
        self._io = io or LoopThread("rpc-io")
        at_once: frozenset[str] = getattr(handler, "at_once", frozenset())
        self._shared = Shared(codec, handler, security.guard, limits, self._workers, self._io, at_once)

    @property
    def counters(self) -> ServerCounters:
        """Return the counters; read-only for callers."""
        return self._shared.counters

    def start(self, host: str = "127.0.0.1", port: int = 9090) -> tuple[str, int]:
        """Listen, and return the address that is bound (`port` 0 takes a free one).

        Raises OSError when the address cannot be had; the server can then be started with another.
        """
        return self._io.run(self._listen(host, port))

    def reload_certificate(self, tls: ServerTlsSettings) -> None:
        """Use this certificate for new clients; TLS cannot be turned on or off. Raises TlsFileError."""
        self._listener.reload(tls)

    def stop(self, grace: float = 2.0) -> None:
        """Stop listening, let calls in progress end and their replies leave (`grace` seconds), close everything.

        Deferred calls end without a reply: their connection closes, their futures are cancelled. Stopping twice, or
        without a start, does nothing.
        """
        all_ended = True
        if self._io.is_running:
            all_ended = self._io.run(self._shut_down(grace))
        if not all_ended:
            _log.warning("stopped with calls still in progress after %g s", grace)
        self._workers.shutdown(wait=all_ended)
        self._io.end()

    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        listening = await listening_socket(host, port, _BACKLOG)
        self._listener.start(listening)
        return address_of(listening)

    def _new_connection(self) -> ServedConnection:
        return ServedConnection(self._shared)

    def _handshake_failed(self, peer: str, reason: str) -> None:
        self._shared.counters.failed_handshakes += 1
        _log.warning("%s closed: TLS handshake failed: %s", peer, reason)

    async def _shut_down(self, grace: float) -> bool:
        """Close the server and return true if all calls in progress have ended."""
        await self._listener.close()
        connections = set(self._shared.connections)
        for connection in connections:
            connection.take_no_more_calls()
        all_ended = await _until(lambda: not any(c.working for c in connections), grace)
        for connection in connections:
            connection.close()
        if not await _until(lambda: not self._shared.connections, grace):
            for connection in set(self._shared.connections):
                connection.abort()
            await _until(lambda: not self._shared.connections, grace)
        return all_ended


async def _until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition for at most `seconds`; return true if it became true."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not condition():
        if loop.time() >= end:
            return False
        await asyncio.sleep(0.005)
    return True

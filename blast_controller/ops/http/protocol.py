"""One HTTP connection: uvicorn's, with a bound to how long it may be silent and with who is at its other end.

uvicorn gives a client that never finishes its request all the time of the world, and does not tell an application what
certificate it has shown.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from blast_controller.serving.places import Places
from blast_controller.serving.tls import certificate_names

SECONDS_TO_ASK = 10.0
"""From the connection, or the last answer, to the end of the next request's head."""
NAMES = "blast.certificate_names"
"""Where a scope tells what a verified client certificate says of its owner."""


class Protocol(H11Protocol):
    """Made by the listener for each client; `places` are shared by all connections that have not sent a request."""

    def __init__(self, config: Config, state: ServerState, places: Places[Protocol]) -> None:
        super().__init__(config, state, {}, asyncio.get_running_loop())
        self._places = places
        self._names = certificate_names(None)
        self._application = self.app
        self.app = self._named
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It has a place until it has asked something, where it may be crowded out, and some seconds for that."""
        super().connection_made(transport)
        self._names = certificate_names(transport.get_extra_info("peercert") or None)
        address = self.client[0] if self.client else ""
        crowded_out = self._places.enter(self, address)
        if crowded_out is not None:
            crowded_out.transport.abort()
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        """A part of a request."""
        super().data_received(data)
        if self._answering:
            self._places.leave(self)
            self._drop_deadline()
        elif self._deadline is None:
            self._set_deadline()

    def on_response_complete(self) -> None:
        """The next request has its time from here."""
        super().on_response_complete()
        if not (self._answering or self.transport.is_closing()):
            self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        super().connection_lost(exc)
        self._places.leave(self)
        self._drop_deadline()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _set_deadline(self) -> None:
        self._drop_deadline()
        self._deadline = self.loop.call_later(SECONDS_TO_ASK, self.transport.abort)

    def _drop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    async def _named(self, scope: Any, receive: Any, send: Any) -> None:
        scope[NAMES] = self._names
        await self._application(scope, receive, send)

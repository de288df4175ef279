"""One HTTP connection: uvicorn's, with limits of silence and request rate, and with the client's certificate.

uvicorn lets a client that never finishes its request, or never reads its answer, wait without limit, and does not pass
the client's certificate to the application.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from blast_controller.ops.http.client_counts import ClientCounts
from blast_controller.serving.admission_slots import AdmissionSlots, host_of
from blast_controller.serving.tls import certificate_names

SECONDS_TO_ASK = 10.0
"""From the connection, or the last answer, to the end of the next request's head."""
SECONDS_TO_READ = 10.0
"""For which an answer may wait that the client does not read."""
SECONDS_FOR_GUESTS = 20.0
"""For any answer to a client without an account."""
NAMES = "blast.certificate_names"
"""The scope's key for the names in a verified client certificate."""
HEALTH_PATHS = ("/livez", "/readyz")
CONNECTION = "blast.connection"
"""Where a scope has the `Protocol`."""


class Protocol(H11Protocol):
    """The protocol of one client, created by the listener; all connections without an account share `places`.

    `knows` returns whether the scope of a request is authenticated.
    """

    def __init__(
        self,
        config: Config,
        state: ServerState,
        places: AdmissionSlots[Protocol],
        crowd: ClientCounts,
        knows: Callable[[Scope], bool],
    ) -> None:
        super().__init__(config, state, {}, asyncio.get_running_loop())
        self._places, self._crowd, self._knows = places, crowd, knows
        self._names = certificate_names(None)
        self._application = self.app
        self.app = self._named
        self._account: Hashable = None
        self._deadline: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the connection a guest's place, from which it may be displaced, and a time limit for its request."""
        super().connection_made(transport)
        self._names = certificate_names(transport.get_extra_info("peercert") or None)
        crowded_out = self._places.enter(self, self.address)
        if crowded_out is not None:
            crowded_out.transport.abort()
        self._set_deadline(SECONDS_TO_ASK)

    @property
    def address(self) -> str:
        """Return the client's address."""
        return self.client[0] if self.client else ""

    def become(self, account: Hashable, is_operator: bool) -> None:
        """Count as this account's from now on, and not as a guest's. Raises ConnectionLimitError."""
        if self._account == account:
            return
        self._crowd.enter(account, is_operator)
        self._leave_account()
        self._account = account
        self._places.leave(self)
        if self._answering:
            self._drop_deadline()

    async def wait(self, account: Hashable) -> None:
        """Wait until the account may ask, as often as it does."""
        while wait := self._crowd.account_wait(account):
            await asyncio.sleep(wait)

    def data_received(self, data: bytes) -> None:
        """Process a part of a request."""
        was_answering = self._answering
        super().data_received(data)
        if self._answering and not was_answering:
            if self._account is None:
                self._set_deadline(SECONDS_FOR_GUESTS)
            else:
                self._drop_deadline()
        elif self._deadline is None and not self._answering:
            self._set_deadline(SECONDS_TO_ASK)

    def pause_writing(self) -> None:
        """Start the time limit of a client that does not read."""
        super().pause_writing()
        if self._reading is None:
            self._reading = self.loop.call_later(SECONDS_TO_READ, self.transport.abort)

    def resume_writing(self) -> None:
        """End the time limit: the client has read."""
        super().resume_writing()
        self._stop_reading_clock()

    def on_response_complete(self) -> None:
        """Start the time limit of the next request."""
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if not self._answering:
            self._set_deadline(SECONDS_TO_ASK)
        elif self._account is None:
            self._set_deadline(SECONDS_FOR_GUESTS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection's place."""
        super().connection_lost(exc)
        self._places.leave(self)
        self._leave_account()
        self._drop_deadline()
        self._stop_reading_clock()

    def _leave_account(self) -> None:
        if self._account is not None:
            self._crowd.leave(self._account)
            self._account = None

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _set_deadline(self, seconds: float) -> None:
        self._drop_deadline()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _drop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_reading_clock(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    async def _named(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[NAMES], scope[CONNECTION] = self._names, self
        if self._account is None and not self._knows(scope):
            of_host = self._crowd.health_wait if scope["path"] in HEALTH_PATHS else self._crowd.guest_wait
            # Excess requests are delayed on their own connection: refusing them would cost as much.
            while wait := of_host(host_of(self.address)):
                await asyncio.sleep(wait)
        await self._application(scope, receive, send)

"""The bridge between a NETCONF session and the event loop: bytes, timers, and callers that wait for replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar
from xml.etree.ElementTree import Element

from optical_switch.errors import OpticalSwitchError, SwitchUsageError, UnreachableError
from optical_switch.netconf.messages import RpcReply, ServerHello
from optical_switch.netconf.session import Greeted, NetconfSession, Notified, Replied, SessionBroken, SessionEvent

T = TypeVar("T")


class NetconfLink(asyncio.Protocol):
    """One session on a transport.

    Parameters
    ----------
    timeout : float
        Time limit in seconds for each answer.
    on_event : Callable[[Element], None]
        Function that is called with each event that the device reports on its own. If it raises an
        OpticalSwitchError, the session ends.
    """

    def __init__(self, timeout: float, on_event: Callable[[Element], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._on_event = on_event
        self._session: NetconfSession | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: dict[str, asyncio.Future[RpcReply]] = {}
        self._error: OpticalSwitchError | None = None
        self.greeted: asyncio.Future[ServerHello] = self._loop.create_future()
        self.lost: asyncio.Future[str] = self._loop.create_future()
        """Set with the reason when the connection has ended."""

    def request(self, operation: str) -> asyncio.Future[RpcReply]:
        """Send one request: see `send`."""
        [reply] = self.send([operation])
        return reply

    def send(self, operations: Iterable[str]) -> Sequence[asyncio.Future[RpcReply]]:
        """Send requests in one write.

        Parameters
        ----------
        operations : Iterable[str]
            Operations as XML text.

        Returns
        -------
        Sequence[asyncio.Future[RpcReply]]
            The replies; they fail with the error that ends the session.

        Raises
        ------
        UnreachableError
            If the session has ended.
        SwitchUsageError
            If there is none, or too many requests have no answer yet.
        """
        if self._error is not None:
            raise UnreachableError(str(self._error))
        if self._session is None:
            raise SwitchUsageError("the session is not established")
        waiters: list[asyncio.Future[RpcReply]] = []
        try:
            for operation in operations:
                message_id = self._session.request(operation, self._loop.time())
                self._waiters[message_id] = self._loop.create_future()
                waiters.append(self._waiters[message_id])
        finally:
            self._write()
        return waiters

    def fail(self, error: OpticalSwitchError) -> None:
        """End the session at once: waiting callers fail with `error`."""
        if self._error is None:
            self._error = error
        _fail_waiter(self.greeted, self._error)
        for waiter in self._waiters.values():
            _fail_waiter(waiter, self._error)
        self._waiters.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()

    def leave(self, reason: str) -> None:
        """End the session after all written data is sent."""
        self._error = self._error or UnreachableError(reason)
        if self._transport is not None:
            self._transport.close()

    # ----------------------------------------------------------------------------------------- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the hello."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._session = NetconfSession(self._timeout, self._loop.time())
        self._write()

    def data_received(self, data: bytes) -> None:
        """Pass bytes to the session and its events to the waiting callers."""
        assert self._session is not None
        self._dispatch(self._session.receive(data, self._loop.time()))

    def connection_lost(self, exc: Exception | None) -> None:
        """Let all waiting callers fail."""
        ended = f"connection lost: {exc}" if exc else "the switch closed the connection"
        self.fail(UnreachableError(ended))
        if not self.lost.done():
            self.lost.set_result(str(self._error))

    # ---------------------------------------------------------------------------------------------------- events

    def _on_timer(self) -> None:
        assert self._session is not None
        self._timer = None
        self._dispatch(self._session.handle_timer(self._loop.time()))

    def _dispatch(self, events: list[SessionEvent]) -> None:
        for event in events:
            match event:
                case Greeted():
                    self.greeted.set_result(event.hello)
                case Replied():
                    waiter = self._waiters.pop(event.reply.message_id)
                    if not waiter.done():
                        waiter.set_result(event.reply)
                case SessionBroken():
                    self.fail(event.error)
        self._set_timer()
        # Last, so that a function that raises leaves no caller waiting.
        for event in events:
            if isinstance(event, Notified):
                self._report(event.event)

    def _report(self, event: Element) -> None:
        try:
            self._on_event(event)
        except OpticalSwitchError as error:
            self.fail(error)

    def _write(self) -> None:
        assert self._session is not None
        if (data := self._session.data_to_send()) and self._transport is not None:
            self._transport.write(data)
        self._set_timer()

    def _set_timer(self) -> None:
        assert self._session is not None
        due = None if self._error is not None else self._session.next_timer()
        # A timer that is too early finds nothing due and sets the next one: cheaper than one for each request.
        if due is None or (self._timer is not None and self._timer.when() <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._on_timer)


def _fail_waiter(waiter: asyncio.Future[T], error: OpticalSwitchError) -> None:
    if not waiter.done():
        waiter.set_exception(error)
        # Of several requests a caller may await the first only; asyncio would report the others as forgotten.
        waiter.exception()

"""The SSH channel of one session: requests are carried out in the order in which they arrive (RFC 6241 section 4.5).

A session whose connection ends finishes the operation that is in progress, since the hardware does so too, and drops
the requests behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import asyncssh

from optical_switch.emulator.faults import Faults
from optical_switch.emulator.netconf_server.answers import RpcAnswer
from optical_switch.emulator.netconf_server.messages.rpc_errors import ErrorTag, ServerRpcError
from optical_switch.emulator.netconf_server.session import ServedSession, ServerRequest, SessionViolationError
from optical_switch.emulator.timing import Clock

log = logging.getLogger(__name__)

MAX_WAITING = 64
"""Requests that wait for their turn; further bytes stay in the flow control of SSH until there are fewer."""

MAX_UNSENT = 4 << 20
"""Bytes that a client has not received yet. A session with more is ended: its notifications would fill the memory."""


@dataclass(frozen=True, slots=True)
class ChannelServices:
    """The device, as a channel uses it.

    Parameters
    ----------
    perform : Callable[[ServedSession, ET.Element], Awaitable[RpcAnswer]]
        Function that carries out an operation. Raises `ServerRpcError`.
    end_session : Callable[[ServedSession], Awaitable[None]]
        Function that releases everything of a session that has ended.
    faults : Faults
        Injected faults.
    clock : Clock
        Source of time.
    """

    perform: Callable[[ServedSession, ET.Element], Awaitable[RpcAnswer]]
    end_session: Callable[[ServedSession], Awaitable[None]]
    faults: Faults
    clock: Clock


class NetconfChannel(asyncssh.SSHServerSession[bytes]):
    """A channel on which a client may start the subsystem `netconf`.

    Parameters
    ----------
    services : ChannelServices
        The device.
    open_session : Callable[[NetconfChannel], ServedSession]
        Function that registers a new session.
    """

    def __init__(self, services: ChannelServices, open_session: Callable[[NetconfChannel], ServedSession]) -> None:
        self._services = services
        self._open_session = open_session
        self._session: ServedSession | None = None
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._waiting: deque[ServerRequest] = deque()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_finished = False
        self._ended = asyncio.Event()
        self.worker: asyncio.Task[None] | None = None

    @property
    def session(self) -> ServedSession:
        """The session; only once it is open."""
        assert self._session is not None
        return self._session

    # ------------------------------------------------------------------------------------------ called by asyncssh

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        """Keep the channel."""
        self._channel = chan

    def subsystem_requested(self, subsystem: str) -> bool:
        """Accept the subsystem of RFC 6242 section 3 only."""
        return subsystem == "netconf"

    def session_started(self) -> None:
        """Open the session, and send the hello message without waiting for that of the client."""
        self._session = self._open_session(self)
        self.send(self._session.greeting())
        self.worker = asyncio.create_task(self._work())

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Take bytes of the client."""
        if self._ended.is_set():
            return
        assert self._channel is not None
        try:
            self._waiting.extend(self.session.receive(data))
        except SessionViolationError as violation:
            self.end(str(violation))
            return
        self._arrived.set()
        if len(self._waiting) >= MAX_WAITING:
            self._channel.pause_reading()

    def eof_received(self) -> bool:
        """Carry out the requests that have arrived, then end."""
        self._is_finished = True
        self._arrived.set()
        return True

    def pause_writing(self) -> None:
        """Begin no further request until the client has received the replies."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Go on with the next request."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the session."""
        self._end()

    # ---------------------------------------------------------------------------------------- called by the device

    def send(self, data: bytes) -> None:
        """Send bytes, unless the session has ended."""
        channel = self._channel
        if channel is None or channel.is_closing() or self._ended.is_set():
            return
        channel.write(data)
        if channel.get_write_buffer_size() > MAX_UNSENT:
            self.cut(f"the client leaves more than {MAX_UNSENT} bytes unread")

    def end(self, reason: str) -> None:
        """End the session; all sent bytes still arrive."""
        if self._channel is not None and not self._ended.is_set():
            log.info("session %d ends: %s", self.session.number, reason)
            self._channel.close()
        self._end()

    def cut(self, reason: str) -> None:
        """Cut the connection at once, as a crash would."""
        if self._channel is not None:
            log.info("session %d ends: %s", self.session.number, reason)
            self._channel.get_connection().abort()
        self._end()

    # ---------------------------------------------------------------------------------------------------- the work

    def _end(self) -> None:
        self._ended.set()
        self._arrived.set()

    async def _work(self) -> None:
        while (request := await self._next()) is not None:
            if not self._services.faults.silent:
                await self._carry_out(request)
            await self._unless_ended(self._writable.wait())
        self.end("the client has ended its output")
        try:
            await self._services.end_session(self.session)
        except Exception:
            # The top level of the session's task; the device keeps running.
            log.exception("session %d cannot be ended properly", self.session.number)

    async def _next(self) -> ServerRequest | None:
        while not self._ended.is_set():
            if self._waiting:
                request = self._waiting.popleft()
                if not self._waiting and self._channel is not None:
                    self._channel.resume_reading()
                return request
            if self._is_finished:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return None

    async def _carry_out(self, request: ServerRequest) -> None:
        answer = await self._answer(request)
        faults = self._services.faults
        if answer.moved:
            if faults.cut_before_answer:
                self.cut("an injected fault cuts the connection")
            if faults.lose_answer:
                return
        if faults.answer_delay:
            await self._unless_ended(self._services.clock.sleep(faults.answer_delay))
        self.send(self.session.reply(request, answer.content))
        answer.afterwards()

    async def _answer(self, request: ServerRequest) -> RpcAnswer:
        try:
            if request.operation is None:
                assert request.error is not None
                raise request.error
            return await self._services.perform(self.session, request.operation)
        except ServerRpcError as error:
            return RpcAnswer(error.elements())
        except Exception as error:
            # The top level of an operation: whatever fails, the device keeps running and the client gets a reply.
            log.exception("an operation of session %d failed", self.session.number)
            failure = ServerRpcError(ErrorTag.OPERATION_FAILED, f"The operation failed: {type(error).__name__}.")
            return RpcAnswer(failure.elements())

    async def _unless_ended(self, step: Awaitable[object]) -> None:
        """Wait for a step, or for the end of the session."""
        waits = [asyncio.ensure_future(step), asyncio.ensure_future(self._ended.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

"""The asyncio client of one optical switch.

A thin adapter: the session decides; the client writes bytes, sets timers and wakes waiting callers. Changes are sent
one at a time, because no switch is known to allow more; reads may overlap with everything. After a change whose outcome
is unknown, no other change is sent until the circuits were read, because the switch may still be executing it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from optical_switch.model import Alarm, Circuit, Port
from tl1_driver.dialects.base import Dialect
from tl1_driver.protocol.circuits import ListedCircuit
from tl1_driver.protocol.errors import (
    CommandDeniedError,
    MalformedResponseError,
    OutcomeUnknownError,
    SessionLostError,
    SessionNotOpenError,
    SessionsInUseError,
    SwitchError,
    SwitchTimeoutError,
    SwitchUnreachableError,
    Tl1Error,
)
from tl1_driver.protocol.messages import Autonomous, Response, Tl1Command
from tl1_driver.protocol.payload import quote
from tl1_driver.protocol.procedure import Pause, Procedure, Step, confirmed
from tl1_driver.protocol.session import Answered, CommandFailed, Event, Flooded, Notice, Tl1Session
from tl1_driver.transcript import Mask
from tl1_driver.transport import FloodError, Tcp, Tl1Transport

log = logging.getLogger(__name__)

LOGIN_NOT_ACTIVE = "PLNA"
ALL_RESOURCES_BUSY = "SARB"
"""Code of GR-831; as the answer to a login, the busy resources are sessions."""
SENT, RECEIVED = "sent", "received"
BUFFER_SIZE = 1 << 16
"""Bytes: more than the list of a 320-port switch."""
TCP = Tcp()

T = TypeVar("T")
Outcome = Response | SwitchError
Transcript = Callable[[str, bytes], None]


class _Link(asyncio.Protocol, asyncio.BufferedProtocol):
    """One session: the bridge between a `Tl1Session` and the event loop.

    A socket receives into a buffer of the link, because asyncio allocates 256 KiB for each read without one, in pages
    that the kernel clears. Other transports call `data_received`.
    """

    def __init__(self, session: Tl1Session, on_notice: Callable[[Notice], None], transcript: Transcript | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._session = session
        self._on_notice = on_notice
        self._transcript = transcript
        self._buffer = memoryview(bytearray(BUFFER_SIZE))
        self._masks = {SENT: Mask(b""), RECEIVED: Mask(b"")}
        self._waiters: dict[str, Callable[[Outcome], None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._reason = ""
        self.flooded = False
        self.lost: asyncio.Future[str] = self._loop.create_future()
        self.last_activity = self._loop.time()

    def hide(self, secret: str) -> None:
        """Mask `secret` in the transcript, also where the switch echoes it."""
        self._masks = {direction: Mask(secret.encode()) for direction in self._masks}

    def ask(self, command: Tl1Command, on_outcome: Callable[[Outcome], None]) -> None:
        """Send `command`; `on_outcome` is called once, with its answer or its error. It must not raise."""
        if self._transport is None or self.lost.done():
            raise SessionLostError(self.lost.result() if self.lost.done() else "the session is not established")
        ctag = self._session.send(command, self._loop.time())
        self._waiters[ctag] = on_outcome
        self._write()
        self._set_timer()

    def drop(self, reason: str) -> None:
        """End the session at once."""
        self._reason = self._reason or reason
        if self._transport is not None:
            self._transport.abort()

    def leave(self, reason: str) -> None:
        """End the session after all written data is sent."""
        self._reason = self._reason or reason
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport that the connection uses."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass the received bytes on."""
        self.data_received(bytes(self._buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Pass bytes to the session and its events to the waiting callers."""
        self.last_activity = self._loop.time()
        self._record(RECEIVED, data)
        self._settle(self._session.receive(data, self._loop.time()))

    def connection_lost(self, exc: Exception | None) -> None:
        """Resolve all pending futures."""
        if isinstance(exc, FloodError):
            self.flooded, self._reason = True, self._reason or str(exc)
        reason = self._reason or (f"connection lost: {exc}" if exc else "the switch closed the connection")
        if self._timer is not None:
            self._timer.cancel()
        for direction, mask in self._masks.items():
            if self._transcript and (rest := mask.rest()):
                self._transcript(direction, rest)
        if not self.lost.done():
            self.lost.set_result(reason)
        self._dispatch(self._session.lose(reason))

    def _on_timer(self) -> None:
        self._timer = None
        self._settle(self._session.handle_timer(self._loop.time()))

    def _settle(self, events: list[Event]) -> None:
        self._dispatch(events)
        self._write()
        self._set_timer()

    def _dispatch(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Answered | CommandFailed):
                on_outcome = self._waiters.pop(event.ctag)
                on_outcome(event.response if isinstance(event, Answered) else event.error)
        # Last, so that a callback that raises leaves no caller waiting.
        for event in events:
            if isinstance(event, Notice):
                self._on_notice(event)
            elif isinstance(event, Flooded):
                self.flooded = True
                self.drop(event.reason)

    def _write(self) -> None:
        if (data := self._session.data_to_send()) and self._transport is not None:
            self.last_activity = self._loop.time()
            self._record(SENT, data)
            self._transport.write(data)

    def _set_timer(self) -> None:
        when = self._session.next_timer()
        # A timer that is too early finds nothing due and sets the next one: cheaper than one for each command.
        if when is None or (self._timer is not None and self._timer.when() <= when):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._on_timer)

    def _record(self, direction: str, data: bytes) -> None:
        if self._transcript and (shown := self._masks[direction].feed(data)):
            self._transcript(direction, shown)


class SwitchClient:
    """A client for one session to one switch.

    Parameters
    ----------
    host : str
        Name or address of the switch.
    port : int
        TCP port of the switch.
    dialect : Dialect
        TL1 of the vendor.
    user : str
        User to log in. Empty: no login.
    password : str
        Password of the user.
    timeout : float
        Time limit for an answer, in seconds; an acknowledgment extends it as the dialect specifies.
    on_autonomous : Callable[[Autonomous], None] | None
        Function that is called in the event loop with every message that the switch sends without a command; `alarms`
        returns its conditions.
    transcript : Transcript | None
        Function that is called with "sent" or "received" and the bytes, with the password masked.
    way : Way
        Transport that opens the session.
    """

    def __init__(  # noqa: PLR0913
        self,
        host: str,
        port: int,
        dialect: Dialect,
        *,
        user: str = "",
        password: str = "",
        timeout: float = 2.0,
        on_autonomous: Callable[[Autonomous], None] | None = None,
        transcript: Transcript | None = None,
        way: Tl1Transport = TCP,
    ) -> None:
        self._way = way
        self._address = (host, port)
        self._name = f"{host}:{port}"
        self._dialect = dialect
        self._user = user
        self._password = password
        self._timeout = timeout
        self._on_autonomous = on_autonomous
        self._transcript = transcript
        self._link: _Link | None = None
        self._spoken = dialect
        self._changes = asyncio.Lock()
        self._unsettled = ""
        self._keepalive: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect, and log in if there is a user.

        May be called again after the session was lost or closed.

        Raises
        ------
        SwitchUnreachableError
            If no session can be opened, or the switch does not complete the login.
        SessionsInUseError
            If the switch refuses the login, because others have all of its sessions.
        CommandDeniedError
            If the switch refuses the login, or a query of the properties that the dialect needs.
        InvalidCommandError
            If the user or the password has control characters.
        """
        if self._link is not None and not self._link.lost.done():
            return
        self._link = await self._dial()
        try:
            await self._log_in()
            self._spoken = await _run(self._dialect.introduce(), self._link)
        except (CommandDeniedError, SessionsInUseError):
            await self.close()
            raise
        except (SwitchTimeoutError, SessionLostError, MalformedResponseError) as error:
            await self.close()
            raise SwitchUnreachableError(
                f"optical switch at {self._name} does not complete the login: {error}"
            ) from error
        except BaseException:
            self._link.drop("the login was cancelled")
            raise
        self._changes, self._unsettled = asyncio.Lock(), ""
        self._keepalive = asyncio.create_task(self._keep_alive(self._link))

    async def close(self) -> None:
        """End the session; pending commands fail with `SessionLostError`."""
        if self._keepalive is not None:
            self._keepalive.cancel()
            self._keepalive = None
        if self._link is None or self._link.lost.done():
            return
        if self._user:
            self._link.ask(self._dialect.logout(self._user), lambda _: None)
        self._link.leave("closed by us")
        await asyncio.wait([self._link.lost], timeout=self._timeout)
        self._link.drop("closed by us")

    async def wait_closed(self) -> str:
        """Wait until the session has ended.

        Returns
        -------
        str
            Reason of the end, for messages.

        Raises
        ------
        SessionNotOpenError
            If there was no session.
        """
        return await asyncio.shield(self._session_link().lost)

    @property
    def flooded(self) -> bool:
        """True if the session ended because the switch sent far more than was requested."""
        return self._link is not None and self._link.flooded

    async def connect(self, circuits: Sequence[Circuit]) -> None:
        """Set circuits and return when the switch confirms.

        If the switch fails, some circuits may have been set: read them. After `SwitchTimeoutError` and
        `MalformedResponseError` each further change raises `OutcomeUnknownError` until they are read.

        Parameters
        ----------
        circuits : Sequence[Circuit]
            Circuits to set, in this order. Empty: nothing is sent.

        Raises
        ------
        CommandDeniedError
            If the switch refuses a command.
        SwitchTimeoutError
            If the switch does not answer in time.
        MalformedResponseError
            If an answer cannot be read.
        SessionLostError
            If the session ends first.
        OutcomeUnknownError
            If an earlier change has no known outcome; nothing is sent.
        InvalidCommandError
            If a circuit has a port that does not exist; nothing is sent.
        SessionNotOpenError
            If there was no session.
        """
        if circuits:
            await self._change(lambda: self._spoken.connect(circuits))

    async def disconnect(self, circuits: Sequence[Circuit]) -> None:
        """Remove circuits and return when the switch confirms.

        If the switch fails, some circuits may have been removed: read them.

        Parameters
        ----------
        circuits : Sequence[Circuit]
            Circuits to remove. Empty: nothing is sent.

        Raises
        ------
        SwitchError, OutcomeUnknownError, InvalidCommandError, SessionNotOpenError
            As for `connect`.
        """
        if circuits:
            await self._change(lambda: self._spoken.disconnect(circuits))

    async def circuits(self) -> list[ListedCircuit]:
        """Return all circuits on the switch, including those of other clients.

        After a change whose outcome is unknown, a successful call permits further changes.

        Returns
        -------
        list[ListedCircuit]
            The circuits with their states.

        Raises
        ------
        CommandDeniedError
            If the switch refuses the command.
        SwitchTimeoutError
            If the switch does not answer in time.
        SessionLostError
            If the session ends first.
        MalformedResponseError
            If the list cannot be read.
        SessionNotOpenError
            If there was no session.
        """
        unsettled = self._unsettled
        found = await self._read(self._spoken.circuits)
        # The circuits are known again, unless another change has failed meanwhile.
        if self._unsettled is unsettled:
            self._unsettled = ""
        return found

    async def powers(self) -> dict[Port, float]:
        """Return the optical power at every port that the switch measures.

        Returns
        -------
        dict[Port, float]
            Power in dBm at inputs and outputs.

        Raises
        ------
        CommandDeniedError, SwitchTimeoutError, SessionLostError, MalformedResponseError, SessionNotOpenError
            As for `circuits`.
        """
        return await self._read(self._spoken.powers)

    def alarms(self, message: Autonomous) -> list[Alarm]:
        """Return the conditions that an autonomous message reports.

        Parameters
        ----------
        message : Autonomous
            Message that `on_autonomous` received.

        Returns
        -------
        list[Alarm]
            The conditions with their ports.
        """
        return self._spoken.alarms(message)

    async def _dial(self) -> _Link:
        deadlines = replace(self._dialect.deadlines, answer=self._timeout)
        session = Tl1Session(deadlines, self._dialect.wire)
        link = _Link(session, self._notify, self._transcript)
        if self._password:
            link.hide(quote(self._password))
        await self._way.open(link, *self._address, self._timeout)
        return link

    async def _log_in(self) -> None:
        if not self._user:
            return
        try:
            await _run(self._login(), self._session_link())
        except CommandDeniedError as error:
            if error.code == ALL_RESOURCES_BUSY:
                raise SessionsInUseError(str(error)) from error
            raise

    def _login(self) -> Procedure[Response]:
        return confirmed(self._dialect.login(self._user, self._password))

    def _needs_login(self, error: CommandDeniedError) -> bool:
        """Return true if the code of `error` is that of an expired login."""
        return error.code == LOGIN_NOT_ACTIVE and bool(self._user)

    async def _read(self, procedure: Callable[[], Procedure[T]]) -> T:
        return await _run(self._reading(procedure), self._session_link())

    def _reading(self, procedure: Callable[[], Procedure[T]]) -> Procedure[T]:
        try:
            return (yield from procedure())
        except CommandDeniedError as error:
            if not self._needs_login(error):
                raise
        yield from self._login()
        return (yield from procedure())

    async def _change(self, procedure: Callable[[], Procedure[None]]) -> None:
        link, lock = self._session_link(), self._changes
        await lock.acquire()
        await _run(self._changing(procedure, lock), link)

    def _changing(self, procedure: Callable[[], Procedure[None]], lock: asyncio.Lock) -> Procedure[None]:
        """Run `procedure` and release `lock` at its end, whether or not a caller still waits for it."""
        try:
            if self._unsettled:
                raise OutcomeUnknownError(
                    f"an earlier change has no known outcome, read the circuits first: {self._unsettled}"
                )
            yield from procedure()
        except (SwitchTimeoutError, MalformedResponseError) as error:
            self._unsettled = str(error)
            raise
        except CommandDeniedError as error:
            # The change is not repeated, because only the caller knows what else has changed; but the next change can
            # succeed.
            if self._needs_login(error):
                yield from self._login()
            raise
        finally:
            lock.release()

    def _session_link(self) -> _Link:
        if self._link is None:
            raise SessionNotOpenError(f"the session to the optical switch at {self._name} is not open")
        return self._link

    def _notify(self, notice: Notice) -> None:
        if notice.missed:
            log.warning("%d autonomous messages of the switch at %s are missing", notice.missed, self._name)
        if self._on_autonomous is not None:
            self._on_autonomous(notice.message)

    async def _keep_alive(self, link: _Link) -> None:
        """Send a keepalive command after every idle period; drop the session of a switch that does not answer it."""
        loop = asyncio.get_running_loop()
        while not link.lost.done():
            idle = loop.time() - link.last_activity
            if idle < self._dialect.keepalive:
                await asyncio.sleep(self._dialect.keepalive - idle)
                continue
            try:
                await _run(confirmed(self._dialect.sign_of_life()), link)
            except SwitchTimeoutError as error:
                link.drop(f"the switch does not answer keepalives: {error}")
                return
            except SwitchError as error:
                log.debug("keepalive of the switch at %s: %s", self._name, error)


def _run(procedure: Procedure[T], link: _Link) -> asyncio.Future[T]:
    """Run `procedure` over `link` to its end, even if the caller is cancelled."""
    run = _ProcedureRun(procedure, link)
    run.advance(partial(next, procedure))
    return run.ended


class _ProcedureRun(Generic[T]):
    """A procedure under way. Each outcome continues it at once: a task would take several turns of the event loop."""

    def __init__(self, procedure: Procedure[T], link: _Link) -> None:
        self._procedure = procedure
        self._link = link
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[T] = self._loop.create_future()

    def advance(self, resume: Callable[[], Step]) -> None:
        """Resume the procedure and begin the step that it yields; at its end resolve `ended`."""
        try:
            self._begin(resume())
        except StopIteration as end:
            if not self.ended.done():
                self.ended.set_result(end.value)
        except Exception as error:  # noqa: BLE001 - of whatever kind, it is the caller's
            if not self.ended.done():
                self.ended.set_exception(error)

    def _begin(self, step: Step) -> None:
        if isinstance(step, Pause):
            self._loop.call_later(step.seconds, self.advance, partial(self._procedure.send, None))
            return
        try:
            self._link.ask(step, self._take)
        except Tl1Error as error:
            self._begin(self._procedure.throw(error))

    def _take(self, outcome: Outcome) -> None:
        resume = self._procedure.throw if isinstance(outcome, SwitchError) else self._procedure.send
        self.advance(partial(resume, outcome))

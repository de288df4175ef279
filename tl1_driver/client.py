"""The asyncio client of one optical switch.

A thin adapter: the session decides, this writes bytes, sets timers and wakes who waits. Changes go out one at a time,
since nothing is known of real switches that would allow more; reads may overlap with everything. After a change whose
outcome is unknown no other is sent until the circuits were read, since the switch may still be at it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from tl1_driver.alarms import Alarm
from tl1_driver.circuits import Circuit, CircuitState, Port
from tl1_driver.dialects.base import Dialect
from tl1_driver.errors import (
    Denied,
    MalformedAnswer,
    NotOpen,
    OutcomeUnknown,
    SessionLost,
    SwitchFault,
    SwitchUnreachable,
    TimedOut,
)
from tl1_driver.messages import Autonomous, Command, Response
from tl1_driver.payload import quote
from tl1_driver.procedure import Pause, Procedure, Step
from tl1_driver.session import Answered, Event, Failed, Flooded, Notice, Session
from tl1_driver.transcript import Mask
from tl1_driver.ways import Tcp, TooMuchSaid, Way

__all__ = ["Alarm", "Circuit", "CircuitState", "Port", "SwitchClient"]

log = logging.getLogger(__name__)

LOGIN_NOT_ACTIVE = "PLNA"
SENT, RECEIVED = "sent", "received"
TCP = Tcp()

T = TypeVar("T")
Outcome = Response | SwitchFault
Transcript = Callable[[str, bytes], None]


class _Link(asyncio.Protocol):
    """One session: the bridge between a `Session` and the event loop."""

    def __init__(self, session: Session, on_notice: Callable[[Notice], None], transcript: Transcript | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._session = session
        self._on_notice = on_notice
        self._transcript = transcript
        self._masks = {SENT: Mask(b""), RECEIVED: Mask(b"")}
        self._waiters: dict[str, asyncio.Future[Outcome]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._reason = ""
        self.flooded = False
        self.lost: asyncio.Future[str] = self._loop.create_future()
        self.last_activity = self._loop.time()

    def hide(self, secret: str) -> None:
        """Keep `secret` out of the transcript, also where the switch echoes it."""
        self._masks = {direction: Mask(secret.encode()) for direction in self._masks}

    def ask(self, command: Command) -> asyncio.Future[Outcome]:
        """Send `command`; the future is always resolved, never with an exception, and outlives a cancelled caller."""
        if self._transport is None or self.lost.done():
            raise SessionLost(self.lost.result() if self.lost.done() else "the session is not established")
        ctag = self._session.send(command, self._loop.time())
        answer = self._waiters[ctag] = self._loop.create_future()
        self._write()
        self._set_timer()
        return answer

    def drop(self, reason: str) -> None:
        """End the session at once."""
        self._reason = self._reason or reason
        if self._transport is not None:
            self._transport.abort()

    def leave(self, reason: str) -> None:
        """End the session after what was written has gone out."""
        self._reason = self._reason or reason
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Whatever the way is, this is what it carries bytes by."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Bytes to the session, its events to those who wait."""
        self._record(RECEIVED, data)
        self._settle(self._session.receive(data, self._loop.time()))

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is left waiting."""
        if isinstance(exc, TooMuchSaid):
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
        self._settle(self._session.handle_timer(self._loop.time()))

    def _settle(self, events: list[Event]) -> None:
        self._dispatch(events)
        self._write()
        self._set_timer()

    def _dispatch(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Answered | Failed):
                waiter = self._waiters.pop(event.ctag)
                if not waiter.done():
                    waiter.set_result(event.response if isinstance(event, Answered) else event.error)
        # Last, so that a callback that raises leaves nobody waiting.
        for event in events:
            if isinstance(event, Notice):
                self._on_notice(event)
            elif isinstance(event, Flooded):
                self.flooded = True
                self.drop(event.reason)

    def _write(self) -> None:
        self.last_activity = self._loop.time()
        if (data := self._session.data_to_send()) and self._transport is not None:
            self._record(SENT, data)
            self._transport.write(data)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        when = self._session.next_timer()
        self._timer = self._loop.call_at(when, self._on_timer) if when is not None else None

    def _record(self, direction: str, data: bytes) -> None:
        if self._transcript and (shown := self._masks[direction].feed(data)):
            self._transcript(direction, shown)


class SwitchClient:
    """One session to one switch, which `way` leads to.

    `timeout` is how long to wait for an answer, in seconds; an acknowledgment extends it as the dialect says.
    `on_autonomous` is called in the event loop with every message the switch sends by itself; `alarms` says what is
    in one. `transcript` is called with "sent" or "received" and the bytes, the password masked.
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
        way: Way = TCP,
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

        Raises `SwitchUnreachable` if no session can be had, `Denied` if the login is refused. May be called again
        after the session was lost or closed.
        """
        if self._link is not None and not self._link.lost.done():
            return
        self._link = await self._dial()
        try:
            await self._log_in()
            self._spoken = await _run(self._dialect.introduce(), self._link)
        except Denied:
            await self.close()
            raise
        except (TimedOut, SessionLost, MalformedAnswer) as error:
            await self.close()
            raise SwitchUnreachable(f"optical switch at {self._name} does not complete the login: {error}") from error
        except BaseException:
            self._link.drop("the login was cancelled")
            raise
        self._changes, self._unsettled = asyncio.Lock(), ""
        self._keepalive = asyncio.create_task(self._keep_alive(self._link))

    async def close(self) -> None:
        """End the session; what is under way fails with `SessionLost`."""
        if self._keepalive is not None:
            self._keepalive.cancel()
            self._keepalive = None
        if self._link is None or self._link.lost.done():
            return
        if self._user:
            self._link.ask(self._dialect.logout(self._user))
        self._link.leave("closed by us")
        await asyncio.wait([self._link.lost], timeout=self._timeout)
        self._link.drop("closed by us")

    async def wait_closed(self) -> str:
        """Wait until the session has ended and return why. Raises `NotOpen` if there never was one."""
        return await asyncio.shield(self._session_link().lost)

    @property
    def flooded(self) -> bool:
        """Whether the session was ended because the switch says far more than it is asked for."""
        return self._link is not None and self._link.flooded

    async def connect(self, circuits: Sequence[Circuit]) -> None:
        """Make `circuits`, in this order, and return when the switch confirms.

        Raises `Denied`, `TimedOut` or `SessionLost`; then the circuits must be read to know what was done, for they
        may have been made in part. After `TimedOut` the next change raises `OutcomeUnknown` until that is done.
        """
        if circuits:
            await self._change(lambda: self._spoken.connect(circuits))

    async def disconnect(self, circuits: Sequence[Circuit]) -> None:
        """Remove `circuits` and return when the switch confirms. Raises as `connect` does."""
        if circuits:
            await self._change(lambda: self._spoken.disconnect(circuits))

    async def circuits(self) -> list[CircuitState]:
        """All circuits on the switch, whoever made them.

        Raises `Denied`, `TimedOut`, `SessionLost`, or `MalformedAnswer` if the list cannot be read.
        """
        unsettled = self._unsettled
        found = await self._read(self._spoken.circuits)
        # Read back; unless another change has failed meanwhile.
        if self._unsettled is unsettled:
            self._unsettled = ""
        return found

    async def powers(self) -> dict[Port, float]:
        """The power in dBm at every input and output where the switch measures it. Raises as `circuits` does."""
        return await self._read(self._spoken.powers)

    def alarms(self, message: Autonomous) -> list[Alarm]:
        """The conditions that an autonomous message reports, and at which ports."""
        return self._spoken.alarms(message)

    async def _dial(self) -> _Link:
        deadlines = replace(self._dialect.deadlines, answer=self._timeout)
        session = Session(deadlines, self._dialect.wire)
        link = _Link(session, self._notify, self._transcript)
        if self._password:
            link.hide(quote(self._password))
        await self._way.open(link, *self._address, self._timeout)
        return link

    async def _log_in(self) -> None:
        if self._user:
            _confirmed(await self._session_link().ask(self._dialect.login(self._user, self._password)))

    async def _restored_login(self, error: Denied) -> bool:
        """Log in again if `error` says that the login is no longer active."""
        if error.code != LOGIN_NOT_ACTIVE or not self._user:
            return False
        await self._log_in()
        return True

    async def _read(self, procedure: Callable[[], Procedure[T]]) -> T:
        try:
            return await _run(procedure(), self._session_link())
        except Denied as error:
            if not await self._restored_login(error):
                raise
        return await _run(procedure(), self._session_link())

    async def _change(self, procedure: Callable[[], Procedure[None]]) -> None:
        # A task of its own: a cancelled caller leaves no change half-way, nor lets the next one begin meanwhile.
        change = asyncio.create_task(self._change_in_turn(procedure, self._session_link()))
        change.add_done_callback(_forget)
        await asyncio.shield(change)

    async def _change_in_turn(self, procedure: Callable[[], Procedure[None]], link: _Link) -> None:
        async with self._changes:
            if self._unsettled:
                raise OutcomeUnknown(f"a change is refused until the circuits are read: {self._unsettled}")
            try:
                await _run(procedure(), link)
            except (TimedOut, MalformedAnswer) as error:
                self._unsettled = str(error)
                raise
            except Denied as error:
                # Not repeated, since only the caller knows what else has changed; but the next change can succeed.
                await self._restored_login(error)
                raise

    def _session_link(self) -> _Link:
        if self._link is None:
            raise NotOpen(f"the session to the optical switch at {self._name} is not open")
        return self._link

    def _notify(self, notice: Notice) -> None:
        if notice.missed:
            log.warning("%d autonomous messages of the switch at %s are missing", notice.missed, self._name)
        if self._on_autonomous is not None:
            self._on_autonomous(notice.message)

    async def _keep_alive(self, link: _Link) -> None:
        """Ask for a sign of life after every idle period; a switch that owes it is given up."""
        loop = asyncio.get_running_loop()
        while not link.lost.done():
            idle = loop.time() - link.last_activity
            if idle < self._dialect.keepalive:
                await asyncio.sleep(self._dialect.keepalive - idle)
                continue
            outcome = await link.ask(self._dialect.sign_of_life())
            if isinstance(outcome, TimedOut):
                link.drop(f"no sign of life from the switch: {outcome}")


def _confirmed(outcome: Outcome) -> Response:
    if isinstance(outcome, SwitchFault):
        raise outcome
    return outcome


async def _run(procedure: Procedure[T], link: _Link) -> T:
    """Carry out `procedure` over `link`."""
    move: Callable[[], Step] = partial(next, procedure)
    while True:
        try:
            step = move()
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            move = partial(procedure.send, None)
            continue
        outcome = await link.ask(step)
        move = (
            partial(procedure.throw, outcome) if isinstance(outcome, SwitchFault) else partial(procedure.send, outcome)
        )


def _forget(change: asyncio.Task[None]) -> None:
    """Take note of an error that a cancelled caller no longer waits for."""
    if not change.cancelled():
        change.exception()

"""Execution of cross-connect changes on the optical switches: one session and one queue for each switch.

Every step is answered exactly once. When a switch refuses a command for several reservations at once, its list of
cross-connects determines which ones exist, and the rest is retried for each reservation alone, so that one bad port
fails one reservation only. Changes that arrive while the switch is busy are sent together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

from blast_controller.core.model.commands import CircuitChange, SetCircuits
from blast_controller.core.model.events import (
    CircuitsObserved,
    DeviceConnected,
    DeviceDisconnected,
    DeviceEvent,
    LightAlarmRaised,
    LightNotDetected,
    StepConfirmed,
    StepFailed,
)
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.optical.light_check import LightCheck
from blast_controller.serving.loop_thread import LoopThread
from tl1_driver.client import SwitchClient
from tl1_driver.dialects.base import Dialect
from tl1_driver.protocol.circuits import Circuit
from tl1_driver.protocol.errors import CommandDeniedError, Tl1Error
from tl1_driver.protocol.messages import Autonomous
from tl1_driver.transport import Tcp, Tl1Transport

log = logging.getLogger(__name__)

StepKey = tuple[int, int]
"""(reservation, step)"""

MAX_ALARMS = 2048
"""Taken from one message: more than one for each port of the largest switches."""
SECONDS_TO_CLOSE = 5.0
"""Seconds for commands in progress; a switch that does not answer must not delay the exit."""
FIRST_RETRY = 0.2
"""Seconds to the first new connection: a switch that restarted its agent answers soon."""
LONGEST_RETRY = 10.0
"""Seconds between attempts; a switch that returns is used within this time."""


@dataclass(frozen=True, slots=True)
class SwitchSettings:
    """The connection settings of an optical switch; `timeout` in seconds for each command."""

    name: SwitchId
    host: str
    port: int
    dialect: Dialect
    user: str = ""
    password: str = ""
    timeout: float = 2.0
    light: LightCheck = field(default_factory=LightCheck)
    way: Tl1Transport = Tcp()  # noqa: RUF009 - it cannot be changed

    @property
    def secrets(self) -> frozenset[str]:
        """Return the secrets, which must never be logged."""
        return self.way.secrets | {self.password}


class OpticalExecutor:
    """The sessions of the optical switches, on one loop. `on_event` is called on its thread."""

    def __init__(  # noqa: PLR0913, PLR0917 - with the loop that several share
        self,
        switches: Iterable[SwitchSettings],
        on_event: Callable[[DeviceEvent], None],
        fatal: Callable[[BaseException], None],
        may_write: Callable[[], bool] = lambda: True,
        on_refused: Callable[[str, str], None] = lambda dialect, code: None,
        io: LoopThread | None = None,
    ) -> None:
        """Create the executor, on the loop `io` or (None) on one of its own.

        `may_write` is called before each change: a switch does not know which controller is the leader. `on_refused`
        receives the dialect and the error code of every refusal, on the executor's thread.
        """
        self._io = io or LoopThread("optical")
        hands = _Hands(on_event, may_write, on_refused)
        self._sessions = {settings.name: _SwitchSession(settings, hands) for settings in switches}
        self._fatal = fatal
        self._serving: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to connect, and keep connecting, to every switch."""
        self._io.start()
        self._io.post(self._begin)

    def stop(self) -> None:
        """Close the sessions; cross-connects stay. Without a start there is nothing to close."""
        if self._io.is_running:
            self._io.run(self._end())
        self._io.end()

    def apply(self, command: SetCircuits) -> None:
        """Carry out one decision's changes, after those handed in before. Never blocks."""
        now = time.monotonic()
        work = _Work(command.changes, {_key(change): now for change in command.changes})
        self._io.post(partial(self._sessions[command.switch].take, work))

    def read(self, switch: SwitchId) -> None:
        """Read what a switch holds, after what was handed in before; answered by CircuitsObserved unless it is away."""
        self._io.post(self._sessions[switch].take_reading)

    def _begin(self) -> None:
        self._serving = self._io.loop.create_task(self._run_sessions())

    async def _run_sessions(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for session in self._sessions.values():
                    session.task = group.create_task(session.run())
        except Exception as error:
            log.exception("the optical executor failed")
            self._fatal(error)

    async def _end(self) -> None:
        if self._serving is not None:
            for session in self._sessions.values():
                session.stop()
            await asyncio.wait([self._serving], timeout=SECONDS_TO_CLOSE)


@dataclass(frozen=True, slots=True)
class _Work:
    """Changes to be made together; `since` has the time at which each was queued."""

    changes: tuple[CircuitChange, ...]
    since: Mapping[StepKey, float]

    def joined(self, later: _Work) -> _Work | None:
        """Merge two batches; None if that would change the order within a reservation."""
        if not {key[0] for key in self.since}.isdisjoint(key[0] for key in later.since):
            return None
        return _Work(self.changes + later.changes, {**self.since, **later.since})


class _Hands(NamedTuple):
    """The callbacks of a session to its owner."""

    on_event: Callable[[DeviceEvent], None]
    may_write: Callable[[], bool]
    on_refused: Callable[[str, str], None]


class _SwitchSession:
    """One switch: connects, reports the switch's state, works through the queue, and reconnects after a failure."""

    def __init__(self, settings: SwitchSettings, hands: _Hands) -> None:
        self._settings = settings
        self._on_event, self._may_write, self._on_refused = hands
        self._queue: deque[_Work | None] = deque()
        self._wake = asyncio.Event()
        """Set by new work, and by the end of the session."""
        self._up = False
        self._away = "not connected yet"
        self.task: asyncio.Task[None] | None = None
        self._looking: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def take(self, work: _Work) -> None:
        if self._up:
            self._enqueue(work)
        else:
            self._fail(work.changes, self._away)

    def take_reading(self) -> None:
        if self._up:
            self._enqueue(None)

    def _enqueue(self, work: _Work | None) -> None:
        joined = self._queue[-1].joined(work) if work and self._queue and self._queue[-1] else None
        if joined:
            self._queue[-1] = joined
        else:
            self._queue.append(work)
        self._wake.set()

    async def run(self) -> None:
        retry = FIRST_RETRY
        while True:
            client = self._client()
            try:
                await client.open()
                await self._serve(client)
            except asyncio.CancelledError:
                await client.close()
                return
            except Tl1Error as error:
                if self._up and not client.flooded:
                    retry = FIRST_RETRY
                self._lost(self._refusal(error) if isinstance(error, CommandDeniedError) else str(error))
            await client.close()
            await asyncio.sleep(retry)
            retry = min(2 * retry, LONGEST_RETRY)

    def _client(self) -> SwitchClient:
        s = self._settings
        client = SwitchClient(
            s.host,
            s.port,
            s.dialect,
            user=s.user,
            password=s.password,
            timeout=s.timeout,
            on_autonomous=lambda message: self._report_alarms(client, message),
            way=s.way,
        )
        return client

    def _report_alarms(self, client: SwitchClient, message: Autonomous) -> None:
        for alarm in islice(client.alarms(message), MAX_ALARMS):
            log.warning(
                "optical switch %s: %s %s at %s", self._settings.name, alarm.notification, alarm.condition, alarm.aid
            )
            if alarm.port is not None and alarm.port.side == "out" and not alarm.cleared:
                self._on_event(LightAlarmRaised(self._settings.name, alarm.port.number, alarm.condition))

    def _lost(self, reason: str) -> None:
        if reason != self._away:
            log.warning("optical switch %s is disconnected: %s", self._settings.name, reason)
        if self._up or reason != self._away:
            self._on_event(DeviceDisconnected(self._settings.name, reason))
        self._up, self._away = False, reason
        while self._queue:
            work = self._queue.popleft()
            if work is not None:
                self._fail(work.changes, reason)

    async def _serve(self, client: SwitchClient) -> None:
        """Work until the session is lost, which raises a Tl1Error."""
        present = await self._circuits(client)
        self._up = True
        log.info("optical switch %s is connected, %d cross-connects present", self._settings.name, len(present))
        self._on_event(DeviceConnected(self._settings.name, present))
        lost = asyncio.ensure_future(client.wait_closed())
        lost.add_done_callback(lambda _: self._wake.set())
        try:
            while True:
                work = await self._next(lost)
                await (self._read(client) if work is None else self._do(client, work))
        finally:
            lost.cancel()

    async def _read(self, client: SwitchClient) -> None:
        self._on_event(CircuitsObserved(self._settings.name, await self._circuits(client)))

    async def _circuits(self, client: SwitchClient) -> frozenset[CrossConnect]:
        return frozenset(CrossConnect(self._settings.name, *c) for c in await self._present(client))

    async def _next(self, lost: asyncio.Future[str]) -> _Work | None:
        """Return the next work (None: a reading). Raises _SessionEndedError."""
        while not self._queue and not lost.done():
            self._wake.clear()
            await self._wake.wait()
        if lost.done():
            raise _SessionEndedError(await lost)
        return self._queue.popleft()

    async def _present(self, client: SwitchClient) -> set[Circuit]:
        return {state.circuit for state in await client.circuits() if state.made}

    async def _do(self, client: SwitchClient, work: _Work) -> None:
        unanswered = {_key(c): c for c in work.changes}

        def answer(change: CircuitChange, refusal: str | None) -> None:
            del unanswered[_key(change)]
            if refusal is None:
                self._confirm(change, work.since[_key(change)])
            else:
                self._fail((change,), refusal)

        if not self._may_write():
            self._fail(work.changes, "another controller may be the leader now")
            return
        try:
            stuck = await self._disconnect(client, work.changes, answer)
            for change in work.changes:
                if _key(change) in unanswered and not stuck.isdisjoint(change.after):
                    answer(change, "a conflicting cross-connect could not be removed")
            connected = await self._connect(client, [c for c in work.changes if c.connect], unanswered, answer)
            for change, dark in await self._dark(client, connected):
                del unanswered[_key(change)]
                if dark:
                    self._on_event(LightNotDetected(self._settings.name, change.reservation, change.step, dark))
                else:
                    self._confirm(change, work.since[_key(change)])
        except Tl1Error as error:
            self._fail(unanswered.values(), str(error))
            raise

    def _confirm(self, change: CircuitChange, since: float) -> None:
        elapsed = time.monotonic() - since
        self._on_event(StepConfirmed(self._settings.name, change.reservation, change.step, elapsed))

    async def _dark(
        self, client: SwitchClient, connected: Sequence[CircuitChange]
    ) -> list[tuple[CircuitChange, frozenset[int]]]:
        """Return the connected changes, each with its dark leaves."""
        leaves = {leaf for change in connected for leaf in change.leaves}
        if not leaves or self._settings.light.when == "off":
            return [(change, frozenset()) for change in connected]
        if self._settings.light.when == "under_traffic":
            self._look_later(client, leaves)
            return [(change, frozenset()) for change in connected]
        dark = await self._settings.light.dark(client, leaves)
        return [(change, dark & frozenset(change.leaves)) for change in connected]

    def _look_later(self, client: SwitchClient, leaves: Collection[int]) -> None:
        async def look() -> None:
            try:
                dark = await self._settings.light.dark(client, leaves)
            except Tl1Error as error:
                log.warning("optical switch %s: the light check failed: %s", self._settings.name, error)
                return
            for output in sorted(dark):
                self._on_event(LightAlarmRaised(self._settings.name, output, "no light while traffic flows"))

        task = asyncio.create_task(look())
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    async def _disconnect(self, client: SwitchClient, changes: Sequence[CircuitChange], answer: _Answer) -> set[int]:
        """Return the reservations with a circuit that could not be disconnected."""
        doomed = [_circuit(c) for change in changes for c in change.disconnect]
        refusals: dict[Circuit, str] = {}
        if doomed:
            try:
                await client.disconnect(doomed)
            except CommandDeniedError as error:
                self._refusal(error)
                refusals = await self._disconnect_singly(client, doomed)
        stuck = set()
        for change in changes:
            refusal = next((refusals[_circuit(c)] for c in change.disconnect if _circuit(c) in refusals), None)
            if refusal:
                stuck.add(change.reservation)
            if refusal or not change.connect:
                answer(change, refusal)
        return stuck

    async def _disconnect_singly(self, client: SwitchClient, doomed: Sequence[Circuit]) -> dict[Circuit, str]:
        """Disconnect one by one; a missing circuit counts as disconnected."""
        refusals: dict[Circuit, str] = {}
        for circuit in set(doomed) & await self._present(client):
            try:
                await client.disconnect([circuit])
            except CommandDeniedError as error:
                refusals[circuit] = self._refusal(error)
        return refusals

    async def _connect(
        self,
        client: SwitchClient,
        changes: Sequence[CircuitChange],
        unanswered: dict[StepKey, CircuitChange],
        answer: _Answer,
    ) -> list[CircuitChange]:
        """Connect the changes that have not failed yet; answer refused ones and return the others."""
        changes = [change for change in changes if _key(change) in unanswered]
        if not changes:
            return []
        refusal: str | None = None
        try:
            await client.connect(_roots_first(changes))
        except CommandDeniedError as error:
            refusal = self._refusal(error)
        if refusal is None:
            return changes
        if len(changes) == 1:
            answer(changes[0], refusal)
            return []
        return await self._connect_singly(client, changes, answer)

    async def _connect_singly(
        self, client: SwitchClient, changes: Sequence[CircuitChange], answer: _Answer
    ) -> list[CircuitChange]:
        present = await self._present(client)
        connected = []
        for change in changes:
            missing = [c for c in map(_circuit, change.connect) if c not in present]
            refusal = await self._connect_alone(client, missing)
            if refusal is None:
                connected.append(change)
            else:
                answer(change, refusal)
        return connected

    async def _connect_alone(self, client: SwitchClient, missing: list[Circuit]) -> str | None:
        if not missing:
            return None
        try:
            await client.connect(missing)
        except CommandDeniedError as error:
            return self._refusal(error)
        return None

    def _refusal(self, error: CommandDeniedError) -> str:
        """Count a refusal and return its message."""
        self._on_refused(self._settings.dialect.name, error.code)
        return str(error)

    def _fail(self, changes: Iterable[CircuitChange], reason: str) -> None:
        for change in list(changes):
            sentence = f"optical switch {self._settings.name}: {reason}"
            self._on_event(StepFailed(self._settings.name, change.reservation, change.step, sentence))


def _key(change: CircuitChange) -> StepKey:
    return change.reservation, change.step


_Answer = Callable[[CircuitChange, str | None], None]


class _SessionEndedError(Tl1Error):
    """The switch, or the way to it, ended the session."""


def _circuit(c: CrossConnect) -> Circuit:
    return Circuit(c.input, c.output)


def _roots_first(changes: Sequence[CircuitChange]) -> list[Circuit]:
    """Return the circuits to connect, in the order of the changes, each of which lists its roots first."""
    return [_circuit(c) for change in changes for c in change.connect]

"""Execution of cross-connect changes on the optical switches: one session and one queue for each switch.

Every step is answered exactly once. Changes that arrive while the switch is busy are sent together; `isolation.py`
finds the one that a refusal is due to. A switch whose answer does not mean that the change is in effect is read until
its list shows it, or the deadline of a step passes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from blast_controller.core.model.commands import CircuitChange, SetCircuits
from blast_controller.core.model.events import (
    CircuitFailed,
    CircuitsObserved,
    DeviceConnected,
    DeviceDisconnected,
    DeviceEvent,
    LightAlarmRaised,
    LightNotDetected,
    LossMeasured,
    StepConfirmed,
    StepFailed,
)
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.optical.attenuation import set_levels
from blast_controller.optical.isolation import ChangeProcedure, CircuitBatch, StepKey, key_of
from blast_controller.optical.light_check import LightCheck
from blast_controller.serving.loop_thread import LoopThread
from optical_switch.errors import DeviceBusyError, OpticalSwitchError, RefusedError, UnreachableError
from optical_switch.model import Alarm, Circuit, CircuitReading, CircuitState, LossReading
from optical_switch.session import BatchResult, Notice, SwitchSession

log = logging.getLogger(__name__)

SECONDS_TO_CLOSE = 5.0
"""Seconds for commands in progress; a switch that does not answer must not delay the exit."""
FIRST_RETRY = 0.2
"""Seconds to the first new connection: a switch that restarted its agent answers soon."""
LONGEST_RETRY = 10.0
"""Seconds between attempts; a switch that returns is used within this time."""


STEADY_SECONDS = 10.0
"""A session that lasted as long was no accident: the next connection is tried soon again."""
FIRST_PAUSE = 0.05
"""Seconds between the first two readings of a list that lags; each further pause is twice as long."""
NOT_LEADER = "another controller may be the leader now"


@dataclass(frozen=True, slots=True)
class SwitchSettings:
    """The driver of an optical switch; `timeout` is the time in seconds for a change to be in effect.

    `levels` has the largest power in dBm by output (None: no attenuation); empty: the attenuators stay as they are.
    """

    name: SwitchId
    driver: str
    new_session: Callable[[], SwitchSession]
    timeout: float = 2.0
    light: LightCheck = field(default_factory=LightCheck)
    levels: Mapping[int, float | None] = field(default_factory=dict)


class OpticalExecutor:
    """The sessions of the optical switches, on one loop. `on_event` is called on its thread."""

    def __init__(  # noqa: PLR0913, PLR0917 - with the loop that several share
        self,
        switches: Iterable[SwitchSettings],
        on_event: Callable[[DeviceEvent], None],
        fatal: Callable[[BaseException], None],
        may_write: Callable[[], bool] = lambda: True,
        on_refused: Callable[[str, str], None] = lambda driver, code: None,
        io: LoopThread | None = None,
    ) -> None:
        """Create the executor, on the loop `io` or (None) on one of its own.

        `may_write` is called before each change: a switch does not know which controller is the leader. `on_refused`
        receives the driver and the error code of every refusal, on the executor's thread.
        """
        self._io = io or LoopThread("optical")
        hands = _Hands(on_event, may_write, on_refused)
        self._sessions = {settings.name: _SwitchWorker(settings, hands) for settings in switches}
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
        work = _Work(command.changes, {key_of(change): now for change in command.changes})
        self._io.post(partial(self._sessions[command.switch].take, work))

    def read(self, switch: SwitchId) -> None:
        """Read a switch's circuits after all earlier work; answered by CircuitsObserved unless it is disconnected."""
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


class _SwitchWorker:
    """One switch: connects, reports the switch's state, works through the queue, and reconnects after a failure."""

    def __init__(self, settings: SwitchSettings, hands: _Hands) -> None:
        self._settings = settings
        self._on_event, self._may_write, self._on_refused = hands
        self._queue: deque[_Work | None] = deque()
        self._wake = asyncio.Event()
        """Set by new work, and by the end of the session."""
        self._reported = asyncio.Event()
        """Set when the switch reports a circuit on its own."""
        self._being_set: frozenset[Circuit] = frozenset()
        self._unseen: dict[Circuit, float] = {}
        """Circuits that the switch may have set although its list lacks them, and until when the list may lag."""
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
        loop = asyncio.get_running_loop()
        retry = FIRST_RETRY
        while True:
            session = self._settings.new_session()
            session.subscribe(self._take_notice)
            began = loop.time()
            try:
                await session.open()
                await self._serve(session)
            except asyncio.CancelledError:
                await session.close()
                return
            except OpticalSwitchError as error:
                if self._up and loop.time() - began >= STEADY_SECONDS:
                    retry = FIRST_RETRY
                self._lost(self._refusal(error) if isinstance(error, RefusedError) else str(error))
            await session.close()
            await asyncio.sleep(retry)
            retry = min(2 * retry, LONGEST_RETRY)

    def _take_notice(self, notice: Notice) -> None:
        if isinstance(notice, Alarm):
            self._report_alarm(notice)
        elif isinstance(notice, LossReading):
            self._report_loss(notice)
        elif isinstance(notice, CircuitReading):
            self._reported.set()
            if notice.state is CircuitState.FAILED and self._up and notice.circuit not in self._being_set:
                reason = notice.cause or "the switch gives no cause"
                self._on_event(CircuitFailed(CrossConnect(self._settings.name, *notice.circuit), reason))

    def _report_loss(self, reading: LossReading) -> None:
        if self._up:
            circuit = CrossConnect(self._settings.name, *reading.circuit)
            self._on_event(LossMeasured(circuit, reading.db, reading.accuracy))

    def _report_alarm(self, alarm: Alarm) -> None:
        level, suffix = (logging.INFO, " is over") if alarm.cleared else (logging.WARNING, "")
        fault = f"{alarm.severity} {alarm.condition}".strip()
        log.log(level, "optical switch %s: %s at %s%s", self._settings.name, fault, alarm.name, suffix)
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

    async def _serve(self, session: SwitchSession) -> None:
        """Work until the session is lost, which raises an OpticalSwitchError."""
        self._unseen.clear()
        if self._settings.levels:
            await self._set_levels(session)
        present = await self._cross_connects(session)
        self._up = True
        log.info("optical switch %s is connected, %d cross-connects present", self._settings.name, len(present))
        self._on_event(DeviceConnected(self._settings.name, present))
        if session.capabilities.measures_loss:
            for reading in await session.read_losses():
                self._report_loss(reading)
        lost = asyncio.ensure_future(session.wait_closed())
        lost.add_done_callback(lambda _: self._wake.set())
        try:
            while True:
                work = await self._next(lost)
                await (self._read(session) if work is None else self._do(session, work))
        finally:
            lost.cancel()

    async def _set_levels(self, session: SwitchSession) -> None:
        """Set the attenuators before any circuit, because the core plans with the limited power."""
        if not self._may_write():
            raise DeviceBusyError(NOT_LEADER)
        await set_levels(session, self._settings.levels)

    async def _read(self, session: SwitchSession) -> None:
        self._on_event(CircuitsObserved(self._settings.name, await self._cross_connects(session)))

    async def _cross_connects(self, session: SwitchSession) -> frozenset[CrossConnect]:
        return frozenset(CrossConnect(self._settings.name, *circuit) for circuit in await self._present(session))

    async def _present(self, session: SwitchSession) -> frozenset[Circuit]:
        """Return the circuits that occupy their ports, once the list can no longer lack one that was just set."""
        clock = asyncio.get_running_loop().time
        pause = FIRST_PAUSE
        while True:
            self._reported.clear()
            readings = await session.read_circuits()
            present = frozenset(reading.circuit for reading in readings if reading.state is not CircuitState.ABSENT)
            self._unseen = {c: until for c, until in self._unseen.items() if c not in present and until > clock()}
            if not self._unseen:
                return present
            await _wait_for(self._reported, min(pause, max(self._unseen.values()) - clock()))
            pause *= 2

    async def _next(self, lost: asyncio.Future[str]) -> _Work | None:
        """Return the next work (None: a reading). Raises UnreachableError when the session has ended."""
        while not self._queue and not lost.done():
            self._wake.clear()
            await self._wake.wait()
        if lost.done():
            raise UnreachableError(await lost)
        return self._queue.popleft()

    # -------------------------------------------------------------------------------------------------- changes

    async def _do(self, session: SwitchSession, work: _Work) -> None:
        unanswered = {key_of(change): change for change in work.changes}
        if not self._may_write():
            self._fail(work.changes, NOT_LEADER)
            return
        connected: list[CircuitChange] = []

        def answer(change: CircuitChange, refusal: str | None) -> None:
            if refusal is None and change.connect:
                connected.append(change)
                return
            del unanswered[key_of(change)]
            if refusal is None:
                self._confirm(change, work.since[key_of(change)])
            else:
                self._fail((change,), refusal)

        try:
            await self._carry_out(session, ChangeProcedure(session.capabilities, answer, self._refusal), work.changes)
            for change, dark in await self._dark(session, connected):
                del unanswered[key_of(change)]
                if dark:
                    self._on_event(LightNotDetected(self._settings.name, change.reservation, change.step, dark))
                else:
                    self._confirm(change, work.since[key_of(change)])
        except OpticalSwitchError as error:
            self._fail(unanswered.values(), str(error))
            raise

    async def _carry_out(
        self, session: SwitchSession, procedure: ChangeProcedure, changes: Sequence[CircuitChange]
    ) -> None:
        steps = procedure.run(changes)
        try:
            step = next(steps)
            while True:
                if isinstance(step, CircuitBatch):
                    step = steps.send(await self._apply(session, step))
                else:
                    step = steps.send(await self._present(session))
        except StopIteration:
            return

    async def _apply(self, session: SwitchSession, batch: CircuitBatch) -> BatchResult:
        """Have a batch done; an accepted one is in effect on return, or its missing circuits are refused."""
        self._being_set = frozenset(batch.adds)
        capabilities = session.capabilities
        if len(batch.adds) > 1 and not (capabilities.confirms or capabilities.atomic):
            # A part may be set although the batch is refused.
            until = asyncio.get_running_loop().time() + self._settings.timeout
            self._unseen.update(dict.fromkeys(batch.adds, until))
        try:
            result = await self._apply_and_read(session, batch)
        finally:
            self._being_set = frozenset()
        if capabilities.measures_loss and result.error is None:
            # Before the confirmation, so that a grant shows the margins that there are.
            for reading in await session.read_losses():
                if reading.circuit in batch.adds:
                    self._report_loss(reading)
        return result

    async def _apply_and_read(self, session: SwitchSession, batch: CircuitBatch) -> BatchResult:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.timeout
        result = await session.apply(batch.deletes, batch.adds)
        if session.capabilities.confirms or result.error is not None:
            return result
        pause = FIRST_PAUSE
        while True:
            self._reported.clear()
            readings = {reading.circuit: reading for reading in await session.read_circuits()}
            self._unseen = {c: seconds for c, seconds in self._unseen.items() if c not in readings}
            refused = {**_lacking(batch, readings, final=False), **result.refused}
            pending = _lacking(batch, readings, final=True).keys() - refused.keys()
            if not pending:
                return BatchResult(refused)
            left = until - loop.time()
            if left <= 0:
                return BatchResult({**_lacking(batch, readings, final=True), **refused})
            await _wait_for(self._reported, min(pause, left))
            pause *= 2

    def _confirm(self, change: CircuitChange, since: float) -> None:
        elapsed = time.monotonic() - since
        self._on_event(StepConfirmed(self._settings.name, change.reservation, change.step, elapsed))

    # ---------------------------------------------------------------------------------------------------- light

    async def _dark(
        self, session: SwitchSession, connected: Sequence[CircuitChange]
    ) -> list[tuple[CircuitChange, frozenset[int]]]:
        """Return the connected changes, each with its dark leaves."""
        leaves = {leaf for change in connected for leaf in change.leaves}
        if not leaves or self._settings.light.when == "off":
            return [(change, frozenset()) for change in connected]
        if self._settings.light.when == "under_traffic":
            self._look_later(session, leaves)
            return [(change, frozenset()) for change in connected]
        dark = await self._settings.light.dark(session, leaves)
        return [(change, dark & frozenset(change.leaves)) for change in connected]

    def _look_later(self, session: SwitchSession, leaves: Collection[int]) -> None:
        async def look() -> None:
            try:
                dark = await self._settings.light.dark(session, leaves)
            except OpticalSwitchError as error:
                log.warning("optical switch %s: the light check failed: %s", self._settings.name, error)
                return
            for output in sorted(dark):
                self._on_event(LightAlarmRaised(self._settings.name, output, "no light while traffic flows"))

        task = asyncio.create_task(look())
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    def _refusal(self, error: RefusedError) -> str:
        """Count a refusal and return its message."""
        self._on_refused(self._settings.driver, error.code)
        return str(error)

    def _fail(self, changes: Iterable[CircuitChange], reason: str) -> None:
        for change in list(changes):
            sentence = f"optical switch {self._settings.name}: {reason}"
            self._on_event(StepFailed(self._settings.name, change.reservation, change.step, sentence))


def _lacking(
    batch: CircuitBatch, readings: Mapping[Circuit, CircuitReading], *, final: bool
) -> dict[Circuit, RefusedError]:
    """Return the circuits that are not as the batch wants them and, unless it is `final`, will not come to be so."""
    found: dict[Circuit, RefusedError] = {}
    for circuit in batch.adds:
        reading = readings.get(circuit)
        state = CircuitState.ABSENT if reading is None else reading.state
        if state is CircuitState.FAILED or (final and state is not CircuitState.CONNECTED):
            cause = reading.cause if reading is not None and reading.cause else f"the switch lists it as {state}"
            found[circuit] = RefusedError(state, f"input {circuit.input} to output {circuit.output}: {cause}")
    kept = set(batch.deletes) - set(batch.adds)
    for circuit in kept & readings.keys() if final else ():
        if readings[circuit].state is not CircuitState.ABSENT:
            text = f"input {circuit.input} to output {circuit.output}: the switch still lists it"
            found[circuit] = RefusedError(readings[circuit].state, text)
    return found


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return

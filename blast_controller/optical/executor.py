"""Carries out cross-connect changes on the optical switches: one session and one queue for each switch.

Every step handed in is answered exactly once. When a switch refuses a command for several reservations at once, its
list of cross-connects decides who has what, and the rest is tried again for each reservation alone, so that one bad
port fails one reservation only.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from blast_controller.core.commands import CircuitChange, SetCircuits
from blast_controller.core.events import DeviceDown, DeviceEvent, DeviceUp, StepConfirmed, StepFailed
from blast_controller.core.fabric import CrossConnect
from tl1_driver.circuits import Circuit
from tl1_driver.client import SwitchClient
from tl1_driver.dialects.base import Dialect
from tl1_driver.errors import Denied, Tl1Error

log = logging.getLogger(__name__)

FIRST_RETRY = 0.2
LONGEST_RETRY = 10.0


@dataclass(frozen=True, slots=True)
class SwitchSettings:
    """How to reach an optical switch; `timeout` in seconds for each command."""

    name: str
    host: str
    port: int
    dialect: Dialect
    user: str = ""
    password: str = ""
    timeout: float = 2.0


class OpticalExecutor:
    """The optical switches, from one asyncio loop in a thread of its own. `on_event` is called on that thread."""

    def __init__(
        self,
        switches: Iterable[SwitchSettings],
        on_event: Callable[[DeviceEvent], None],
        fatal: Callable[[BaseException], None],
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._sessions = {settings.name: _SwitchSession(settings, on_event) for settings in switches}
        self._fatal = fatal
        self._thread = threading.Thread(target=self._run, name="optical", daemon=True)

    def start(self) -> None:
        """Start to connect, and keep connecting, to every switch."""
        self._thread.start()

    def stop(self) -> None:
        """Close the sessions; cross-connects stay."""
        self._loop.call_soon_threadsafe(self._stop_sessions)
        self._thread.join(timeout=5)

    def apply(self, command: SetCircuits) -> None:
        """Carry out one decision's changes, after those handed in before. Never blocks."""
        work = _Work(command, time.monotonic())
        self._loop.call_soon_threadsafe(self._sessions[command.switch].take, work)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run_sessions())
        except BaseException as error:
            log.exception("the optical executor failed")
            self._fatal(error)

    async def _run_sessions(self) -> None:
        async with asyncio.TaskGroup() as group:
            for session in self._sessions.values():
                session.task = group.create_task(session.run())

    def _stop_sessions(self) -> None:
        for session in self._sessions.values():
            session.stop()


@dataclass(frozen=True, slots=True)
class _Work:
    command: SetCircuits
    since: float


class _SwitchSession:
    """One switch: connect, say what is there, do the queue in order, and again when the session is lost."""

    def __init__(self, settings: SwitchSettings, on_event: Callable[[DeviceEvent], None]) -> None:
        self._settings = settings
        self._on_event = on_event
        self._queue: asyncio.Queue[_Work] = asyncio.Queue()
        self._up = False
        self._away = "not connected yet"
        self.task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def take(self, work: _Work) -> None:
        if self._up:
            self._queue.put_nowait(work)
        else:
            self._fail(work.command.changes, self._away)

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
                if self._up:
                    retry = FIRST_RETRY
                self._lost(str(error))
            await client.close()
            await asyncio.sleep(retry)
            retry = min(2 * retry, LONGEST_RETRY)

    def _client(self) -> SwitchClient:
        s = self._settings
        return SwitchClient(s.host, s.port, s.dialect, user=s.user, password=s.password, timeout=s.timeout)

    def _lost(self, reason: str) -> None:
        if reason != self._away:
            log.warning("optical switch %s is away: %s", self._settings.name, reason)
        if self._up or reason != self._away:
            self._on_event(DeviceDown(self._settings.name, reason))
        self._up, self._away = False, reason
        while not self._queue.empty():
            self._fail(self._queue.get_nowait().command.changes, reason)

    async def _serve(self, client: SwitchClient) -> None:
        """Work until the session is lost, which raises a Tl1Error."""
        present = frozenset(CrossConnect(self._settings.name, *c) for c in await self._present(client))
        self._up = True
        log.info("optical switch %s is connected, %d cross-connects present", self._settings.name, len(present))
        self._on_event(DeviceUp(self._settings.name, present))
        lost = asyncio.ensure_future(client.wait_closed())
        try:
            while True:
                taken = asyncio.ensure_future(self._queue.get())
                await asyncio.wait((lost, taken), return_when=asyncio.FIRST_COMPLETED)
                if not taken.done():
                    taken.cancel()
                    raise _SessionEnded(await lost)
                await self._do(client, taken.result())
        finally:
            lost.cancel()

    async def _present(self, client: SwitchClient) -> set[Circuit]:
        return {Circuit(state.input, state.output) for state in await client.circuits()}

    async def _do(self, client: SwitchClient, work: _Work) -> None:
        unanswered = {(c.reservation, c.step): c for c in work.command.changes}

        def answer(change: CircuitChange, refusal: str | None) -> None:
            del unanswered[change.reservation, change.step]
            if refusal is None:
                elapsed = time.monotonic() - work.since
                self._on_event(StepConfirmed(self._settings.name, change.reservation, change.step, elapsed))
            else:
                self._fail((change,), refusal)

        try:
            await self._disconnect(client, work.command.changes, answer)
            await self._connect(client, [c for c in work.command.changes if c.connect], unanswered, answer)
        except Tl1Error as error:
            self._fail(unanswered.values(), str(error))
            raise

    async def _disconnect(self, client: SwitchClient, changes: Sequence[CircuitChange], answer: _Answer) -> None:
        doomed = [_circuit(c) for change in changes for c in change.disconnect]
        refusals: dict[Circuit, str] = {}
        if doomed:
            try:
                await client.disconnect(doomed)
            except Denied:
                refusals = await self._disconnect_singly(client, doomed)
        for change in changes:
            refusal = next((refusals[_circuit(c)] for c in change.disconnect if _circuit(c) in refusals), None)
            if refusal or not change.connect:
                answer(change, refusal)

    async def _disconnect_singly(self, client: SwitchClient, doomed: Sequence[Circuit]) -> dict[Circuit, str]:
        """What is not there counts as disconnected."""
        refusals: dict[Circuit, str] = {}
        for circuit in set(doomed) & await self._present(client):
            try:
                await client.disconnect([circuit])
            except Denied as error:
                refusals[circuit] = str(error)
        return refusals

    async def _connect(
        self,
        client: SwitchClient,
        changes: Sequence[CircuitChange],
        unanswered: dict[tuple[int, int], CircuitChange],
        answer: _Answer,
    ) -> None:
        changes = [change for change in changes if (change.reservation, change.step) in unanswered]
        if not changes:
            return
        refusal: str | None = None
        try:
            await client.connect(_roots_first(changes))
        except Denied as error:
            refusal = str(error)
        if refusal is None or len(changes) == 1:
            for change in changes:
                answer(change, refusal)
            return
        present = await self._present(client)
        for change in changes:
            missing = [c for c in map(_circuit, change.connect) if c not in present]
            answer(change, await self._connect_alone(client, missing))

    @staticmethod
    async def _connect_alone(client: SwitchClient, missing: list[Circuit]) -> str | None:
        if not missing:
            return None
        try:
            await client.connect(missing)
        except Denied as error:
            return str(error)
        return None

    def _fail(self, changes: Iterable[CircuitChange], reason: str) -> None:
        for change in list(changes):
            sentence = f"optical switch {self._settings.name}: {reason}"
            self._on_event(StepFailed(self._settings.name, change.reservation, change.step, sentence))


_Answer = Callable[[CircuitChange, str | None], None]


class _SessionEnded(Tl1Error):
    """The switch, or the way to it, ended the session."""


def _circuit(c: CrossConnect) -> Circuit:
    return Circuit(c.input, c.output)


def _roots_first(changes: Sequence[CircuitChange]) -> list[Circuit]:
    """Each change lists its roots first; so does the whole."""
    return [_circuit(c) for change in changes for c in change.connect]

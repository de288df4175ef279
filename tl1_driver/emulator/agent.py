"""The TL1 agent of an emulated optical switch: Glimmerglass commands over TCP, with the switch's own delays.

Theory of operation. Each command is a task of its own, so that reads are answered while a change is under way; changes
take turns. A change is checked against the crossbar first and denied whole or done whole. Setting the light paths
(`apply`) is part of the switching delay: it is begun so early that it has most likely returned when the delay is over,
and the answer leaves at the end of the delay, or when `apply` has returned if that is later. The crossbar changes
when `apply` has returned; if it fails, the crossbar stays as it was and the command is denied.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from tl1_driver.circuits import Circuit
from tl1_driver.emulator.connection import Connection
from tl1_driver.emulator.crossbar import Crossbar, Refusal
from tl1_driver.emulator.faults import Faults
from tl1_driver.emulator.replies import (
    answer,
    connection_rows,
    denial,
    message,
    port_rows,
    power_rows,
    system_rows,
)
from tl1_driver.emulator.requests import (
    BAD_PARAMETER,
    NOT_A_COMMAND,
    Port,
    Request,
    circuits_named,
    circuits_to_delete,
    ports,
)
from tl1_driver.emulator.timing import TIMER_GRAIN, Clock, Estimate
from tl1_driver.messages import Severity
from tl1_driver.payload import unquote

__all__ = ["Apply", "EmulatedSwitch", "Faults", "Port", "PowerModel"]

log = logging.getLogger(__name__)

FIRST_ESTIMATE = 0.003
NOT_LOGGED_IN = "PLNA"
WRONG_USER = "PIUI"
FAILED = "SROF"

Apply = Callable[[Sequence[Circuit], Sequence[Circuit]], Awaitable[None]]
"""`apply(removed, added)` sets the real light paths and returns when they are set."""

PowerModel = Callable[[Sequence[Circuit]], Mapping[Port, float]]
"""The power at each lit port in dBm, given the circuits; ports left out are dark."""


def _dark(_circuits: Sequence[Circuit]) -> Mapping[Port, float]:
    return {}


@dataclass(frozen=True, slots=True)
class _Change:
    """What a command asks of the crossbar. `refusal` follows once the circuits here are set."""

    removed: tuple[Circuit, ...]
    added: tuple[Circuit, ...]
    seconds: float
    waits: bool = True
    refusal: Refusal | None = None


class EmulatedSwitch:
    """An optical circuit switch with ports 1..`inputs` and 1..`outputs`, as a TL1 agent shows it.

    `apply` sets the light paths. A connect is answered `connect_seconds` after it arrived, a disconnect
    `disconnect_seconds` after, later only if `apply` takes longer. A login is needed only if `user` is given.
    `faults` can be changed while the switch runs.
    """

    def __init__(  # noqa: PLR0913
        self,
        inputs: int,
        outputs: int,
        *,
        apply: Apply,
        connect_seconds: float = 0.014172,
        disconnect_seconds: float = 0.0,
        user: str = "",
        password: str = "",
        sid: str = "ocs",
        faults: Faults | None = None,
        power: PowerModel = _dark,
        clock: Clock | None = None,
    ) -> None:
        self.faults = faults or Faults()
        self._crossbar = Crossbar(inputs, outputs)
        self._apply = apply
        self._seconds = {"ENT-CRS-FIBER": connect_seconds, "DLT-CRS-FIBER": disconnect_seconds}
        self._credentials = (user, password)
        self._sid = sid
        self._power = power
        self._clock = clock or Clock()
        self._estimate = Estimate(FIRST_ESTIMATE)
        self._changing = asyncio.Lock()
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._atag = 0
        self._reads: dict[str, Callable[[str], Sequence[str]]] = {
            "RTRV-CRS-FIBER": lambda aid: connection_rows(self._crossbar, ports(aid, self._crossbar), self._light()),
            "RTRV-CFG-FIBER": lambda aid: port_rows(ports(aid, self._crossbar)),
            "RTRV-PORT-POWER": lambda aid: power_rows(ports(aid, self._crossbar), self._light()),
            "RTRV-SYSTEM-INFO": lambda _: system_rows(self._crossbar),
            "RTRV-HDR": lambda _: [],
        }

    @property
    def circuits(self) -> tuple[Circuit, ...]:
        """The circuits that are set, by input."""
        return self._crossbar.circuits

    async def serve(self, sock: socket.socket) -> asyncio.Server:
        """Serve on `sock`, which is bound and listens."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: Connection(self._connections, self._accept), sock=sock)

    def cut(self) -> None:
        """Cut all connections at once, as a crash or a pulled cable would; circuits stay."""
        for connection in list(self._connections):
            connection.cut()

    def report(self, severity: Severity, verb: str, text: str) -> None:
        """Send an autonomous message, such as `REPT ALM EQPT`, to all who are connected."""
        self._atag += 1
        line = f"{severity:<2} {self._atag} {verb}"
        for connection in self._connections:
            connection.write(message(self._sid, self._clock.date(), line, [f'"{text}"']) + "\r\n<")

    def _accept(self, connection: Connection, request: Request) -> None:
        task = asyncio.create_task(self._obey(connection, request, self._clock.now()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _obey(self, connection: Connection, request: Request, arrived: float) -> None:
        if self.faults.silent:
            return
        connection.echo(request)
        date = self._clock.date()
        try:
            rows = await self._carry_out(connection, request, arrived)
        except Refusal as refusal:
            reply = denial(self._sid, date, request.ctag, refusal.code, refusal.text)
        except Exception as error:
            # The top of the task of one command: whatever went wrong, the switch lives on and the client is told.
            log.exception("the emulated switch could not carry out %s", request.verb)
            reply = denial(self._sid, date, request.ctag, FAILED, f"the operation failed: {type(error).__name__}")
        else:
            reply = answer(self._sid, date, request.ctag, rows, self.faults.rows_per_part)
        await self._reply(connection, request, reply)

    async def _reply(self, connection: Connection, request: Request, reply: str) -> None:
        if request.verb in self._seconds and (self.faults.acknowledge_only or self.faults.cut_before_answer):
            if self.faults.cut_before_answer:
                connection.cut()
            return
        if self.faults.answer_delay:
            await self._clock.sleep(self.faults.answer_delay)
        if self.faults.alarm_before_answer:
            self.report(Severity.MINOR, "REPT ALM EQPT", "CHASSIS:MN,FAN,NSA")
        connection.write(reply + "\r\n<")

    async def _carry_out(self, connection: Connection, request: Request, arrived: float) -> Sequence[str]:
        if request.verb == "ACT-USER":
            return self._log_in(connection, request)
        if self._credentials[0] and not connection.logged_in:
            raise Refusal(NOT_LOGGED_IN, "login not active")
        if self.faults.refuse_all:
            raise Refusal(FAILED, "refused by an injected fault")
        if request.verb == "CANC-USER":
            connection.logged_in = False
            return []
        if request.verb in self._reads:
            return self._reads[request.verb](request.aid)
        if request.verb in self._seconds:
            await self._carry_out_change(connection, request, arrived)
            return []
        raise Refusal(NOT_A_COMMAND, "invalid command")

    def _log_in(self, connection: Connection, request: Request) -> Sequence[str]:
        password = unquote(request.payload[0]) if request.payload else ""
        if self._credentials[0] and (request.aid, password) != self._credentials:
            raise Refusal(WRONG_USER, "unknown user or wrong password")
        connection.logged_in = True
        return []

    async def _carry_out_change(self, connection: Connection, request: Request, arrived: float) -> None:
        if self.faults.acknowledge_only:
            connection.write(f"IP {request.ctag}\r\n<")
        waited = self._changing.locked()
        await self._changing.acquire()
        try:
            change = self._change(request)
            began = self._clock.now() if waited else arrived
        except BaseException:
            self._changing.release()
            raise
        setting = asyncio.ensure_future(self._set(change, began))
        if change.waits:
            await setting
            if change.refusal is not None:
                raise change.refusal
        else:
            setting.add_done_callback(_log_failure)

    def _change(self, request: Request) -> _Change:
        """What `request` asks, checked against the crossbar as it is. Raises `Refusal`."""
        mode = request.settings.get("OPMODE", "sync").lower()
        if mode not in ("sync", "async"):
            raise Refusal(BAD_PARAMETER, f"opmode is sync or async, not {mode}")
        seconds, waits = self._seconds[request.verb], mode == "sync"
        if request.verb == "DLT-CRS-FIBER":
            removed = circuits_to_delete(request.aid, self._crossbar)
            self._crossbar.check_disconnect(removed)
            return _Change(tuple(removed), (), seconds, waits)
        added = circuits_named(request.aid, self._crossbar)
        try:
            self._check_connect(added)
        except Refusal as refusal:
            if not self.faults.partial_bulk:
                raise
            return _Change((), self._possible(added), seconds, waits, refusal)
        return _Change((), tuple(added), seconds, waits)

    def _check_connect(self, circuits: Sequence[Circuit]) -> None:
        for circuit in circuits:
            if circuit.input in self.faults.refused_inputs or circuit.output in self.faults.refused_outputs:
                raise Refusal(FAILED, f"connecting {circuit.input} to {circuit.output} failed")
        self._crossbar.check_connect(circuits)

    def _possible(self, circuits: Sequence[Circuit]) -> tuple[Circuit, ...]:
        """The circuits before the first that cannot be made."""
        for count in range(len(circuits), 0, -1):
            try:
                self._check_connect(circuits[:count])
            except Refusal:
                continue
            return tuple(circuits[:count])
        return ()

    async def _set(self, change: _Change, began: float) -> None:
        """Set the light paths within the switching delay. Ends the turn of this change in any case."""
        try:
            deadline = began + change.seconds
            if change.removed or change.added:
                early = deadline - self._estimate.seconds - TIMER_GRAIN - self._clock.now()
                if early > 0:
                    await self._clock.sleep(early)
                started = self._clock.now()
                await self._apply(change.removed, change.added)
                self._estimate.add(self._clock.now() - started)
                self._crossbar.change(change.removed, change.added)
            await self._clock.until(deadline)
        finally:
            self._changing.release()

    def _light(self) -> Mapping[Port, float]:
        return self._power(self._crossbar.circuits)


def _log_failure(setting: asyncio.Future[None]) -> None:
    if not setting.cancelled() and (error := setting.exception()):
        log.error("a change in the background failed: %s", error)

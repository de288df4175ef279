"""The TL1 agent of an emulated optical switch: a vendor's commands over TCP, with the switch's own delays.

Theory of operation. Each command is a separate task, so that reads are answered during a change; changes are
serialized. A change is checked against the crossbar first and denied or executed as a whole. Setting the light paths
(`apply`) is part of the switching delay: it starts early enough to return before the delay ends in most cases, and the
answer leaves at the end of the delay, or when `apply` returns if that is later. The crossbar changes when `apply`
returns; if it fails, the crossbar stays as it was and the command is denied.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence

from tl1_driver.emulator.connection import EmulatedConnection
from tl1_driver.emulator.crossbar import Crossbar, RefusalError
from tl1_driver.emulator.faults import Faults
from tl1_driver.emulator.languages import LANGUAGES
from tl1_driver.emulator.light import PowerModel, PowerMonitors, no_light
from tl1_driver.emulator.manual_circuits import FAILED, CrossbarChange, ManualCircuits
from tl1_driver.emulator.replies import answer, denial, message
from tl1_driver.emulator.requests import NOT_A_COMMAND, ReceivedCommand
from tl1_driver.emulator.timing import TIMER_GRAIN, Clock, DurationEstimate
from tl1_driver.protocol.circuits import Circuit, Port
from tl1_driver.protocol.messages import Severity
from tl1_driver.protocol.payload import unquote

__all__ = ["Apply", "EmulatedSwitch", "Faults", "Port", "PowerModel"]

log = logging.getLogger(__name__)

FIRST_ESTIMATE = 0.003
"""Seconds that a command is expected to take before any was measured."""
NOT_LOGGED_IN = "PLNA"
WRONG_USER = "PIUI"
NO_CTAG = "0"

Apply = Callable[[Sequence[Circuit], Sequence[Circuit]], Awaitable[None]]
"""`apply(removed, added)` sets the real light paths and returns when they are set."""


class EmulatedSwitch:
    """An optical circuit switch with ports 1..`inputs` and 1..`outputs`, as a TL1 agent presents it.

    Parameters
    ----------
    inputs : int
        Number of input ports.
    outputs : int
        Number of output ports.
    apply : Apply
        Function that sets the light paths.
    dialect : str
        Dialect that the switch speaks, a key of `LANGUAGES`.
    connect_seconds : float | None
        Time in seconds of a connect from its arrival, longer only if `apply` takes longer. None: the vendor's figure.
    disconnect_seconds : float
        Time in seconds of a disconnect from its arrival, longer only if `apply` takes longer.
    user : str
        User that must log in. Empty: no login is needed.
    password : str
        Password of the user.
    sid : str
        Identifier of the switch in the headers of messages.
    faults : Faults | None
        Injected faults, which can be changed while the switch runs.
    power : PowerModel
        Model of the power at the ports.
    clock : Clock | None
        Source of time. None: the system's clocks.
    session_seconds : float
        Seconds of silence after which a new login is needed. 0: never.
    """

    def __init__(  # noqa: PLR0913
        self,
        inputs: int,
        outputs: int,
        *,
        apply: Apply,
        dialect: str = "glimmerglass",
        connect_seconds: float | None = None,
        disconnect_seconds: float = 0.0,
        user: str = "",
        password: str = "",
        sid: str = "ocs",
        faults: Faults | None = None,
        power: PowerModel = no_light,
        clock: Clock | None = None,
        session_seconds: float = 0.0,
    ) -> None:
        self.faults = faults or Faults()
        self._clock = clock or Clock()
        self._crossbar = Crossbar(inputs, outputs)
        self._light = PowerMonitors(power, self.faults, self._clock.now)
        language = LANGUAGES[dialect]
        seconds = language.connect_seconds if connect_seconds is None else connect_seconds
        self._bench = ManualCircuits(self._crossbar, self.faults, self._light, sid, seconds, disconnect_seconds)
        self._language = language(self._bench)
        self._apply = apply
        self._credentials = (user, password)
        self._session_seconds = session_seconds
        self._sid = sid
        self._estimate = DurationEstimate(FIRST_ESTIMATE)
        self._changing = asyncio.Lock()
        self._connections: set[EmulatedConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._atag = 0

    @property
    def circuits(self) -> tuple[Circuit, ...]:
        """The circuits that are set, by input."""
        return self._crossbar.circuits

    async def serve(self, sock: socket.socket) -> asyncio.Server:
        """Serve TL1 on a socket.

        Parameters
        ----------
        sock : socket.socket
            Socket that is bound and listens.

        Returns
        -------
        asyncio.Server
            The running server.
        """
        loop = asyncio.get_running_loop()
        greeting = self._language.greeting
        return await loop.create_server(
            lambda: EmulatedConnection(self._connections, self._accept, greeting), sock=sock
        )

    def cut(self) -> None:
        """Drop all connections at once, as a crash or a pulled cable would; circuits stay."""
        for connection in list(self._connections):
            connection.cut()

    def log_out(self) -> None:
        """End every login, as a session timeout would; the connections stay."""
        for connection in self._connections:
            connection.logged_in = False

    async def connect_by_hand(self, circuit: Circuit, owner: str = "noc", *, locked: bool = False) -> None:
        """Set a circuit as an operator at the switch would.

        Parameters
        ----------
        circuit : Circuit
            Circuit to set.
        owner : str
            Owner that the switch reports.
        locked : bool
            True if the circuit cannot be removed over TL1.

        Raises
        ------
        RefusalError
            If a port of the circuit does not exist or is connected.
        """
        async with self._changing:
            await self._apply((), (circuit,))
            self._crossbar.change((), (circuit,))
            self._bench.owners[circuit] = owner
            if locked:
                self._bench.locked.add(circuit)

    def light_changed(self) -> None:
        """Report an alarm for each connected input that has gone dark, and for each that is lit again."""
        darkened, relit = self._light.changes(self._crossbar.circuits)
        stamp = f"{self._clock.date():%m-%d,%H-%M-%S}"
        for port in darkened:
            self.report(Severity.CRITICAL, "REPT ALM EQPT", f"{self._language.name_of(port)}:CR,LOS,SA,{stamp},,RCV")
        for port in relit:
            self.report(Severity.EVENT, "REPT ALM EQPT", f"{self._language.name_of(port)}:CL,LOS,SA,{stamp},,RCV")

    def report(self, severity: Severity, verb: str, text: str) -> None:
        """Send an autonomous message to all connected clients.

        Parameters
        ----------
        severity : Severity
            Alarm code of the message.
        verb : str
            Text after the ATAG, such as `REPT ALM EQPT`.
        text : str
            The only row, without quotes.
        """
        self._atag += 1
        line = f"{severity:<2} {self._atag} {verb}"
        for connection in self._connections:
            connection.write(message(self._sid, self._clock.date(), line, [f'"{text}"']) + self._language.prompt)

    def _accept(self, connection: EmulatedConnection, request: ReceivedCommand) -> None:
        task = asyncio.create_task(self._obey(connection, request, self._clock.now()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _obey(self, connection: EmulatedConnection, request: ReceivedCommand, arrived: float) -> None:
        if self.faults.silent:
            return
        if self._language.echo:
            connection.write(f"{request.text};\r\n")
        date = self._clock.date()
        try:
            rows = await self._carry_out(connection, request, arrived)
        except RefusalError as refusal:
            ctag = NO_CTAG if self.faults.ctag_lost else request.ctag
            reply = [denial(self._sid, date, ctag, refusal)]
        except Exception as error:
            # The top level of a command's task: whatever fails, the switch keeps running and the client gets an answer.
            log.exception("the emulated switch could not carry out %s", request.verb)
            failure = RefusalError(FAILED, f"the operation failed: {type(error).__name__}")
            reply = [denial(self._sid, date, request.ctag, failure)]
        else:
            reply = answer(self._sid, date, request.ctag, rows, self.faults.rows_per_part)
        await self._reply(connection, request, reply)

    async def _reply(self, connection: EmulatedConnection, request: ReceivedCommand, reply: Sequence[str]) -> None:
        faults = self.faults
        if request.verb in self._language.changes:
            if faults.cut_before_answer:
                connection.cut()
            if faults.cut_before_answer or faults.acknowledge_only or faults.lose_answer:
                return
        if faults.answer_delay:
            await self._clock.sleep(faults.answer_delay)
        if faults.alarm_before_answer:
            self._report_fan()
        for number, part in enumerate(reply):
            if number and faults.alarm_between_parts:
                self._report_fan()
            connection.write(part + self._language.prompt)

    def _report_fan(self) -> None:
        self.report(Severity.MINOR, "REPT ALM EQPT", "CHASSIS:MN,FAN,NSA")

    async def _carry_out(
        self, connection: EmulatedConnection, request: ReceivedCommand, arrived: float
    ) -> Sequence[str]:
        if self._session_seconds and arrived - connection.last_request > self._session_seconds:
            connection.logged_in = False
        connection.last_request = arrived
        if request.verb == "ACT-USER":
            return self._log_in(connection, request)
        if self._credentials[0] and not connection.logged_in:
            raise RefusalError(NOT_LOGGED_IN, "login not active")
        if self.faults.refuse_all:
            raise RefusalError(FAILED, "refused by an injected fault")
        if request.verb == "CANC-USER":
            connection.logged_in = False
            return []
        self._language.check_target(request)
        if request.verb in self._language.reads:
            return self._language.reads[request.verb](request)
        if request.verb in self._language.changes:
            await self._carry_out_change(connection, request, arrived)
            return []
        raise RefusalError(NOT_A_COMMAND, "invalid command")

    def _log_in(self, connection: EmulatedConnection, request: ReceivedCommand) -> Sequence[str]:
        password = unquote(request.payload[0]) if request.payload else ""
        if self._credentials[0] and (request.aid, password) != self._credentials:
            raise RefusalError(WRONG_USER, "unknown user or wrong password")
        connection.logged_in = True
        return []

    async def _carry_out_change(self, connection: EmulatedConnection, request: ReceivedCommand, arrived: float) -> None:
        if self.faults.acknowledge_only:
            connection.write(f"IP {request.ctag}\r\n<")
        waited = self._changing.locked()
        await self._changing.acquire()
        try:
            change = self._language.changes[request.verb](request)
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

    async def _set(self, change: CrossbarChange, began: float) -> None:
        """Set the light paths within the switching delay. Releases the lock of changes in any case."""
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
            change.done(change.refusal)
        except BaseException as error:
            change.done(RefusalError(FAILED, f"the operation failed: {type(error).__name__}"))
            raise
        finally:
            self._changing.release()
        if self._light.is_modeled:
            self.light_changed()


def _log_failure(setting: asyncio.Future[None]) -> None:
    if not setting.cancelled() and (error := setting.exception()):
        log.error("a change in the background failed: %s", error)

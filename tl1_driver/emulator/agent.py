"""The TL1 agent of an emulated optical switch: a vendor's commands over TCP.

Theory of operation. Each command is a separate task, so that reads are answered during a change;
`optical_switch.emulator.hardware` sets the changes one after the other, each within the switch's own time. A change is
denied or carried out as a whole, but for injected faults. Its answer leaves when it is done, unless the vendor's
language answers before. If setting the light paths fails, the command is denied.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence

from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.crossbar import Crossbar, RefusalError, SwitchRefusal
from optical_switch.emulator.hardware import Apply, OpticalHardware
from optical_switch.emulator.light import PowerModel, no_light
from optical_switch.emulator.timing import Clock
from optical_switch.model import Circuit
from tl1_driver.emulator.connection import EmulatedConnection
from tl1_driver.emulator.faults import Tl1Faults
from tl1_driver.emulator.languages import LANGUAGES
from tl1_driver.emulator.replies import answer, denial, message, refused
from tl1_driver.emulator.requests import ReceivedCommand
from tl1_driver.protocol.messages import Severity
from tl1_driver.protocol.payload import unquote

log = logging.getLogger(__name__)


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
    faults : Tl1Faults | None
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
        faults: Tl1Faults | None = None,
        power: PowerModel = no_light,
        clock: Clock | None = None,
        session_seconds: float = 0.0,
    ) -> None:
        self.faults = faults or Tl1Faults()
        self._clock = clock or Clock()
        self._new_language = LANGUAGES[dialect]
        self.hardware = OpticalHardware(
            Crossbar(inputs, outputs),
            apply,
            self._new_language.connect_seconds if connect_seconds is None else connect_seconds,
            disconnect_seconds,
            self.faults,
            power,
            self._clock,
            # A TL1 switch denies a connect that fails, and does not list it.
            keeps_failed=False,
        )
        if self.hardware.light.is_modeled:
            self.hardware.listeners.append(self._reading_changed)
        self._credentials = (user, password)
        self._session_seconds = session_seconds
        self._sid = sid
        self._language = self._new_language(self.hardware, self.faults, sid)
        self._connections: set[EmulatedConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._atag = 0

    @property
    def circuits(self) -> tuple[Circuit, ...]:
        """The circuits that are set, by input."""
        return self.hardware.crossbar.circuits

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
            lambda: EmulatedConnection(self._connections, self._accept, self._refuses_connections, greeting), sock=sock
        )

    def cut(self) -> None:
        """Drop all connections at once, as a crash or a pulled cable would; circuits stay."""
        for connection in list(self._connections):
            connection.cut()

    def log_out(self) -> None:
        """End every login, as a session timeout would; the connections stay."""
        for connection in self._connections:
            connection.logged_in = False

    async def reboot(self) -> None:
        """Cut all sessions and lose all circuits, as a power cycle would. Returns when no circuit is lit."""
        for connection in self._connections:
            connection.lost_power = True
        self.cut()
        self._language = self._new_language(self.hardware, self.faults, self._sid)
        await self.hardware.reset()

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
            If a port of the circuit does not exist, is connected or has failed.
        """
        await self.hardware.connect_by_hand(circuit, owner, locked=locked)

    def light_changed(self) -> None:
        """Report an alarm for each connected input that has gone dark, and for each that is lit again."""
        darkened, relit = self.hardware.light.changes(self.hardware.crossbar.circuits)
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
            reply = refused(self._sid, date, request.ctag, refusal, self.faults)
        except Exception as error:
            # The top level of a command's task: whatever fails, the switch keeps running and the client gets an answer.
            log.exception("the emulated switch could not carry out %s", request.verb)
            failure = RefusalError(SwitchRefusal.FAILED, f"the operation failed: {type(error).__name__}")
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
            raise RefusalError(SwitchRefusal.NOT_LOGGED_IN, "login not active")
        if self.faults.refuse_all:
            raise RefusalError(SwitchRefusal.FAILED, "refused by an injected fault")
        if request.verb == "CANC-USER":
            connection.logged_in = False
            return []
        self._language.check_target(request)
        if request.verb in self._language.reads:
            return self._language.reads[request.verb](request)
        if request.verb in self._language.changes:
            await self._carry_out_change(connection, request, arrived)
            return []
        raise RefusalError(SwitchRefusal.UNKNOWN_COMMAND, "invalid command")

    def _log_in(self, connection: EmulatedConnection, request: ReceivedCommand) -> Sequence[str]:
        password = unquote(request.payload[0]) if request.payload else ""
        if self._credentials[0] and (request.aid, password) != self._credentials:
            raise RefusalError(SwitchRefusal.WRONG_USER, "unknown user or wrong password")
        if not connection.logged_in and self._credentials[0] and self._is_full():
            raise RefusalError(SwitchRefusal.SESSIONS_FULL, "all sessions are in use")
        connection.logged_in = True
        return []

    async def _carry_out_change(self, connection: EmulatedConnection, request: ReceivedCommand, arrived: float) -> None:
        if self.faults.acknowledge_only:
            connection.write(f"IP {request.ctag}\r\n<")
        waits = self._language.waits(request)
        setting = await self.hardware.plan_and_set(lambda: self._plan(connection, request), arrived)
        if waits:
            await setting
        else:
            setting.add_done_callback(_log_failure)

    def _plan(self, connection: EmulatedConnection, request: ReceivedCommand) -> CrossbarChange:
        if connection.lost_power:
            raise RefusalError(SwitchRefusal.FAILED, "the switch has lost its power since")
        return self._language.changes[request.verb](request)

    def _refuses_connections(self) -> bool:
        return not self._credentials[0] and self._is_full()

    def _is_full(self) -> bool:
        """Return True if the session table is full; where a login is needed, a session begins with it."""
        sessions = [other for other in self._connections if other.logged_in or not self._credentials[0]]
        return self.faults.max_sessions is not None and len(sessions) >= self.faults.max_sessions

    def _reading_changed(self) -> None:
        # Circuits that are being set change no power yet.
        if not self.hardware.tuning:
            self.light_changed()


def _log_failure(setting: asyncio.Future[None]) -> None:
    error = None if setting.cancelled() else setting.exception()
    # Refusals are part of the emulation: the language has a command that shows them.
    if error is not None and not isinstance(error, RefusalError):
        log.error("a change in the background failed: %s", error)

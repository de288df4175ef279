"""ToRs and optical switches, and the connections of controllers to them in place of OpenFlow server and TL1 client.

A ToR does as Open vSwitch: a new connection is EQUAL and may write. A request to be MASTER or SLAVE with an older
generation than the latest is refused as stale; a new MASTER makes the old one a SLAVE without notice; writes of a SLAVE
are refused. The generation outlives all connections. An optical switch knows no leader.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from blast_controller.core.model.commands import Forward
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.openflow import rules
from blast_controller.openflow import vocabulary as openflow
from blast_controller.openflow.vocabulary import Input, Numbered
from optical_switch.errors import RefusedError, UnreachableError
from optical_switch.model import Circuit, CircuitReading, CircuitState
from optical_switch.session import BatchResult, Capabilities, Notice
from tests.support.succession.network import Act, Wire, outcome
from tests.support.succession.scheduler import Process, Scheduler

if TYPE_CHECKING:
    from tests.support.succession.room import Controller

STALE = "OFPET_ROLE_REQUEST_FAILED/OFPRRFC_STALE"
IS_SLAVE = "OFPET_BAD_REQUEST/OFPBRC_IS_SLAVE"
ANSWERS_WITHIN = 2.0
_MODULUS = 1 << 64

# --------------------------------------------------------------------------------------------------------------- ToRs


class Role(Enum):
    """OpenFlow 1.3.5, section 6.3.6."""

    EQUAL = "equal"
    MASTER = "master"
    SLAVE = "slave"


@dataclass(eq=False)
class ModeledTor:
    """A ToR; `wrong` are writes that it accepted from an older leader, or from a controller without a role."""

    datapath: int
    rules: dict[tuple[int, int, rules.Match], rules.Rule] = field(default_factory=dict)
    sessions: list[ModeledSession] = field(default_factory=list)
    generation: int | None = None
    newest: int = 0
    wrong: list[str] = field(default_factory=list)

    def receive(self, session: ModeledSession, numbered: Numbered) -> None:
        xid, message = numbered
        match message:
            case openflow.RequestMaster(generation):
                self._role(session, xid, Role.MASTER, generation)
            case openflow.RequestSlave(generation):
                self._role(session, xid, Role.SLAVE, generation)
            case rules.AddRule() | rules.DeleteRule() | rules.DeleteStray() | openflow.TransmitProbe():
                self._write(session, xid, message)
            case openflow.ReadOurRules():
                ours = tuple(r for r in self.rules.values() if r.cookie & rules.MAGIC_MASK == rules.MAGIC)
                session.answer(openflow.RulesRead(session, xid, ours, True))
            case openflow.CountRules():
                session.answer(openflow.RulesCounted(session, xid, len(self.rules)))
            case openflow.Fence():
                session.answer(openflow.BarrierAnswered(session, xid))

    @property
    def held(self) -> frozenset[tuple[int, Forward]]:
        """Return the forwarding rules, each with its reservation."""
        found = ((rule.reservation, rules.forward_of(rule)) for rule in self.rules.values())
        return frozenset((number, forward) for number, forward in found if forward is not None)

    def _role(self, session: ModeledSession, xid: int, role: Role, generation: int) -> None:
        # Generations are compared as signed differences of 64 bits.
        if self.generation is not None and (generation - self.generation) % _MODULUS >= _MODULUS // 2:
            session.answer(openflow.ErrorReceived(session, xid, STALE, fenced=True))
            return
        self.generation = generation
        if role is Role.MASTER:
            for other in self.sessions:
                if other.role is Role.MASTER and other is not session:
                    other.role = Role.SLAVE
            session.claimed = generation
            self.newest = max(self.newest, generation)
        session.role = role
        session.answer(openflow.RoleAnswered(session, xid, role is Role.MASTER))

    def _write(self, session: ModeledSession, xid: int, message: openflow.Message) -> None:
        if session.role is Role.SLAVE:
            session.answer(openflow.ErrorReceived(session, xid, IS_SLAVE, fenced=True))
            return
        if session.claimed is None:
            self.wrong.append(f"{message} of a controller that has asked for no role")
        elif session.claimed < self.newest:
            self.wrong.append(f"{message} of generation {session.claimed} after that of {self.newest}")
        match message:
            case rules.AddRule(rule):
                self.rules[rule.place] = rule
            case rules.DeleteRule(rule):
                there = self.rules.get(rule.place)
                if there is not None and there.cookie & rules.OWNER_MASK == rule.cookie & rules.OWNER_MASK:
                    del self.rules[rule.place]


class ModeledServer:
    """A replacement of `openflow.server.Server`: one thread that handles the messages of ToRs in turn."""

    def __init__(self, scheduler: Scheduler, process: Process, modules: dict[str, Any]) -> None:
        self.port = 6653
        self.loop = self
        self.process = process
        self.deliver: Callable[[Input], None] | None = None
        self.sessions: list[ModeledSession] = []
        self._scheduler = scheduler
        self._queue = modules["queue"].SimpleQueue()

    def start(self, _: object, deliver: Callable[[Input], None]) -> None:
        self.deliver = deliver
        self._scheduler.spawn(self.process, self._run)

    def _run(self) -> None:
        while True:
            self._queue.get()()

    def soon(self, work: Act) -> None:
        self._queue.put(work)

    def settle(self, connection: object) -> None:
        """Do nothing: all connections are known."""

    def call_at(self, moment: float, work: Act) -> SimpleNamespace:
        """Return what has the methods of an asyncio.TimerHandle."""
        cancelled: list[bool] = []
        self._scheduler.at(moment, lambda: None if cancelled else self.soon(work))
        return SimpleNamespace(when=lambda: moment, cancel=lambda: cancelled.append(True))

    def stop(self) -> None:
        for session in list(self.sessions):
            session.hang_up()

    def receive(self, happened: Input) -> None:
        assert self.deliver is not None
        deliver = self.deliver
        self.soon(lambda: deliver(happened))


class ModeledSession:
    """A ToR's connection to a controller: `is_open` at the controller, `is_alive` at the ToR, where it has a role.

    `claimed` is the generation with which the controller became the master.
    """

    _numbers = itertools.count(1)

    def __init__(self, controller: Controller, server: ModeledServer, tor: ModeledTor) -> None:
        scheduler, link, latency = controller.room.scheduler, controller.to_devices, controller.room.soon
        self.address = (f"tor{tor.datapath}", next(self._numbers))
        self.names: frozenset[tuple[str, str]] = frozenset()
        self.role, self.claimed = Role.EQUAL, None
        self.is_open = self.is_alive = True
        self.tor, self._server = tor, server
        self._to_tor, self._to_us = Wire(scheduler, link, latency), Wire(scheduler, link, latency)
        tor.sessions.append(self)
        server.sessions.append(self)
        ports = tuple(openflow.PortState(port, True) for port in range(1, 200))
        server.receive(openflow.Connected(self, tor.datapath, ports, self.names))

    def transmit(self, messages: tuple[Numbered, ...]) -> bool:
        if self.is_open:
            for message in messages:
                self._to_tor.send(lambda message=message: self._arrive(message))
        return self.is_open

    def hang_up(self) -> None:
        """Close the connection from the controller; data in transit still arrives."""
        if self.is_open:
            self._close_here()
            self._to_tor.send(self._close_there)

    def lose(self) -> None:
        """Break the connection on both sides; data in transit is lost."""
        self._close_there()
        self._close_here()

    def process_ended(self) -> None:
        """End the controller's process; data in transit still arrives, and then the end of the stream."""
        self.is_open = False
        self._to_tor.send(self._close_there)

    def answer(self, answer: Input) -> None:
        self._to_us.send(lambda: self._server.receive(answer) if self.is_open else None)

    def _close_here(self) -> None:
        if self.is_open:
            self.is_open = False
            self._server.sessions.remove(self)
            self._server.receive(openflow.SessionLost(self, "its connection was closed"))

    def _close_there(self) -> None:
        self.is_alive = False
        if self in self.tor.sessions:
            self.tor.sessions.remove(self)

    def _arrive(self, message: Numbered) -> None:
        if self.is_alive:
            self.tor.receive(self, message)


# --------------------------------------------------------------------------------------------------- optical switches


@dataclass(frozen=True)
class Written:
    """A command that a switch has executed: its time, and the generation of its leader."""

    at: float
    generation: int
    connected: tuple[Circuit, ...]
    disconnected: tuple[Circuit, ...]


@dataclass(eq=False)
class ModeledSwitch:
    """An optical switch, which connects an input to one output only, and refuses a command as a whole."""

    name: SwitchId
    circuits: dict[int, int] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)

    def connect(self, circuits: Sequence[Circuit]) -> None:
        """Set circuits. Raises RefusedError."""
        for circuit in circuits:
            used = {i: o for i, o in self.circuits.items() if (i == circuit.input) != (o == circuit.output)}
            if used:
                raise RefusedError("SNVS", f"in use: {used}")
        self.circuits.update(circuits)

    def disconnect(self, circuits: Sequence[Circuit]) -> None:
        """Remove circuits. Raises RefusedError."""
        for circuit in circuits:
            if self.circuits.get(circuit.input) != circuit.output:
                raise RefusedError("SNVS", f"no such cross-connect: {circuit}")
        for circuit in circuits:
            del self.circuits[circuit.input]


class ModeledSwitchSession:
    """A session that is created by the thread of the controller's optical executor."""

    capabilities = Capabilities(one_transaction=False, atomic=False)

    def __init__(self, controller: Controller, switch: ModeledSwitch) -> None:
        self._controller, self._switch, self._room = controller, switch, controller.room
        self._process = self._room.scheduler.process
        self._loop = asyncio.get_running_loop()
        self._lost: asyncio.Future[str] = self._loop.create_future()
        self._to_switch, self._to_us = (
            Wire(self._room.scheduler, controller.to_devices, self._room.soon) for _ in range(2)
        )

    async def open(self) -> None:
        try:
            await self._ask(lambda: None)
        except UnreachableError as error:
            raise UnreachableError(f"optical switch {self._switch.name}: {error}") from error

    async def close(self) -> None:
        self._end("closed")

    async def wait_closed(self) -> str:
        return await asyncio.shield(self._lost)

    def subscribe(self, listener: Callable[[Notice], None]) -> None:
        pass

    async def read_circuits(self) -> list[CircuitReading]:
        there = await self._ask(lambda: sorted(self._switch.circuits.items()))
        return [CircuitReading(Circuit(*pair), CircuitState.CONNECTED) for pair in there]

    async def apply(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> BatchResult:
        try:
            await self._change(tuple(adds), tuple(deletes))
        except RefusedError as error:
            return BatchResult(error=error)
        return BatchResult()

    async def _change(self, connected: tuple[Circuit, ...], disconnected: tuple[Circuit, ...]) -> None:
        # The process may be stopped between the check of its lease and the write.
        await asyncio.sleep(self._room.soon())  # on the simulated clock
        generation = self._controller.led

        def act() -> None:
            self._switch.disconnect(disconnected)
            self._switch.connect(connected)
            written = Written(self._room.scheduler.now, generation, connected, disconnected)
            self._switch.written.append(written)
            self._room.note_write(written, self._switch)

        await self._ask(act, self._room.late_or_soon())

    async def _ask(self, act: Act, latency: float | None = None) -> Any:
        if self._lost.done():
            raise UnreachableError(self._lost.result())
        answer: asyncio.Future[Any] = self._loop.create_future()

        def arrive() -> None:
            found = outcome(act, RefusedError)
            self._to_us.send(lambda: self._receive(answer, found))

        self._to_switch.send(arrive, latency)
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                return await answer
        except TimeoutError as error:
            self._end("it does not answer")
            raise UnreachableError("no answer in time") from error

    def _receive(self, answer: asyncio.Future[Any], found: Future[Any]) -> None:
        def settle() -> None:
            if not answer.done():
                fault = found.exception()
                answer.set_exception(fault) if fault else answer.set_result(found.result())

        if not self._process.ended:
            self._loop.call_soon_threadsafe(settle)

    def _end(self, reason: str) -> None:
        if not self._lost.done():
            self._lost.set_result(reason)

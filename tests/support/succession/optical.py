"""An optical switch, and what stands in for its TL1 client: no switch knows which of two controllers leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import SwitchId
from tests.support.succession.scheduler import Process, Scheduler
from tests.support.succession.wire import Link, Wire
from tl1_driver.circuits import Circuit, CircuitState
from tl1_driver.errors import Denied, SessionLost, SwitchUnreachable, TimedOut
from tl1_driver.messages import Autonomous


@dataclass(frozen=True)
class Written:
    """One command that a switch has carried out: when, and of which leader's term, by its generation."""

    at: float
    generation: int
    connected: tuple[Circuit, ...]
    disconnected: tuple[Circuit, ...]


@dataclass(eq=False)
class ModelledSwitch:
    """Joins an input to one output only. It refuses a command whole."""

    name: SwitchId
    circuits: dict[int, int] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)

    @property
    def held(self) -> frozenset[CrossConnect]:
        """Its circuits."""
        return frozenset(CrossConnect(self.name, *pair) for pair in self.circuits.items())

    def connect(self, wanted: Sequence[Circuit]) -> None:
        """Raises Denied."""
        for circuit in wanted:
            used = {i: o for i, o in self.circuits.items() if (i == circuit.input) != (o == circuit.output)}
            if used:
                raise _denied(f"in use: {used}")
        self.circuits.update(wanted)

    def disconnect(self, gone: Sequence[Circuit]) -> None:
        """Raises Denied."""
        for circuit in gone:
            if self.circuits.get(circuit.input) != circuit.output:
                raise _denied(f"no such cross-connect: {circuit}")
        for circuit in gone:
            del self.circuits[circuit.input]


def _denied(reason: str) -> Denied:
    return Denied("SNVS", reason)


class ModelledClient:
    """As `SwitchClient`, over a link; made by the thread of the controller's optical executor."""

    flooded = False

    def __init__(self, scheduler: Scheduler, process: Process, switch: ModelledSwitch, way: OpticalWay) -> None:
        self._scheduler, self._process, self._switch, self._way = scheduler, process, switch, way
        self._loop = asyncio.get_running_loop()
        self._lost: asyncio.Future[str] = self._loop.create_future()
        self._to_switch = Wire(scheduler, way.link, way.quick)
        self._to_us = Wire(scheduler, way.link, way.quick)
        self._is_open = False

    async def open(self) -> None:
        try:
            await self._ask(lambda: None)
        except TimedOut as error:
            raise SwitchUnreachable(f"optical switch {self._switch.name}: {error}") from error
        self._is_open = True

    async def close(self) -> None:
        self._end("closed")

    async def wait_closed(self) -> str:
        return await asyncio.shield(self._lost)

    async def circuits(self) -> list[CircuitState]:
        return list(
            await self._ask(lambda: [CircuitState(*pair, "steady") for pair in sorted(self._switch.circuits.items())])
        )

    async def connect(self, wanted: Sequence[Circuit]) -> None:
        await self._change(tuple(wanted), ())

    async def disconnect(self, gone: Sequence[Circuit]) -> None:
        await self._change((), tuple(gone))

    def alarms(self, message: Autonomous) -> list[Any]:
        """It tells of none."""
        return []

    async def _change(self, connected: tuple[Circuit, ...], disconnected: tuple[Circuit, ...]) -> None:
        # The process may be stopped between having looked at its lease and writing.
        await asyncio.sleep(self._way.quick())  # on the simulated clock
        generation = self._way.generation()

        def act() -> None:
            self._switch.disconnect(disconnected)
            self._switch.connect(connected)
            written = Written(self._scheduler.now, generation, connected, disconnected)
            self._switch.written.append(written)
            self._way.note(written, self._switch)

        await self._ask(act, self._way.latency())

    async def _ask(self, act: Callable[[], Any], latency: float | None = None) -> Any:
        if self._lost.done():
            raise SessionLost(self._lost.result())
        answer: asyncio.Future[Any] = self._loop.create_future()

        def arrive() -> None:
            result: Any = None
            fault: Exception | None = None
            try:
                result = act()
            except Denied as error:
                fault = error
            self._to_us.send(lambda: self._hear(answer, result, fault))

        self._to_switch.send(arrive, latency)
        try:
            async with asyncio.timeout(self._way.timeout):
                return await answer
        except TimeoutError as error:
            self._end("it does not answer")
            raise TimedOut("no answer in time") from error

    def _hear(self, answer: asyncio.Future[Any], result: Any, fault: Exception | None) -> None:
        def settle() -> None:
            if not answer.done():
                answer.set_exception(fault) if fault is not None else answer.set_result(result)

        if not self._process.ended:
            self._loop.call_soon_threadsafe(settle)

    def _end(self, reason: str) -> None:
        if not self._lost.done():
            self._lost.set_result(reason)


@dataclass(eq=False)
class OpticalWay:
    """Between one controller and one switch: `latency` of what it writes, `quick` of what is answered."""

    link: Link
    latency: Callable[[], float]
    quick: Callable[[], float]
    generation: Callable[[], int]
    note: Callable[[Written, ModelledSwitch], None]
    timeout: float = 2.0

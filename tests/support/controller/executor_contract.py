"""An emulated switch in a thread, and an executor for it with the events that it gave."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from blast_controller.core.model.commands import CircuitChange, SetCircuits
from blast_controller.core.model.events import StepConfirmed, StepFailed
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.optical.executor import OpticalExecutor, SwitchSettings
from optical_switch.drivers import SwitchTarget
from optical_switch.model import Circuit
from tests.support.waiting import for_a_while
from tl1_driver.dialects import DIALECTS
from tl1_driver.driver import Tl1Access
from tl1_driver.emulator.agent import EmulatedSwitch
from tl1_driver.emulator.connection import EmulatedConnection
from tl1_driver.emulator.requests import ReceivedCommand
from tl1_driver.transport import Tcp, Tl1Transport

TIMEOUT = 30.0
TCP = Tcp()


class NotingSwitch(EmulatedSwitch):
    """A switch that records every change that it receives, in `commands`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.commands: list[str] = []

    def _accept(self, connection: EmulatedConnection, request: ReceivedCommand) -> None:
        verb, _, rest = request.text.partition("::")
        if verb in ("ent-crs-fiber", "dlt-crs-fiber"):
            self.commands.append(f"{verb[:3]} {rest.split(':')[0]}")
        super()._accept(connection, request)


class SwitchThread:
    """An emulated switch 16 x 16 in a thread; `commands` are the changes it was sent."""

    def __init__(self, port: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.switch = NotingSwitch(16, 16, apply=self._apply, connect_seconds=0.0)
        self.commands = self.switch.commands
        self.lit: set[Circuit] = set()
        listening = socket.create_server(("127.0.0.1", port), reuse_port=True)
        self.port = listening.getsockname()[1]
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._await(self.switch.serve(listening))

    async def _apply(self, removed, added) -> None:
        self.lit = self.lit - set(removed) | set(added)

    def _await(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(TIMEOUT)

    def do(self, function: Callable[[], object]) -> None:
        """Do something on the switch's own thread."""

        async def call() -> None:
            function()

        self._await(call())

    def stop(self) -> None:
        self.do(self._server.close)
        self.do(self.switch.cut)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()
        self.loop.close()


class Bench:
    """An executor for the switch "ocs1" and the events it gave."""

    def __init__(self, port: int, timeout: float, way: Tl1Transport = TCP) -> None:
        self.port = port
        self.events: queue.Queue = queue.Queue()
        self.failures: list[BaseException] = []
        target = SwitchTarget("ocs1", "127.0.0.1", port, 16, 16, timeout)
        access = Tl1Access(target, DIALECTS["glimmerglass"], way=way)
        settings = SwitchSettings("ocs1", "tl1", access.new_session, timeout)
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.executor = OpticalExecutor(
            [settings],
            self.events.put,
            self.failures.append,
            on_refused=lambda *refusal: self.refusals.update([refusal]),
        )
        self.executor.start()

    def next(self, kind: type):
        event = self.events.get(timeout=TIMEOUT)
        assert isinstance(event, kind), event
        return event

    def apply(self, *changes: CircuitChange) -> None:
        self.executor.apply(SetCircuits("ocs1", changes))

    def answers(self, count: int) -> dict[tuple[int, int], StepConfirmed | StepFailed]:
        """Return the next answers by step; check that there is exactly one for each."""
        found = [self.next(StepConfirmed | StepFailed) for _ in range(count)]
        steps = {(event.reservation, event.step): event for event in found}
        assert len(steps) == count
        return steps

    def quiet(self) -> None:
        for_a_while(self.events.empty, "silence of the executor")


@contextlib.contextmanager
def bench(port: int, timeout: float = 2.0, way: Tl1Transport = TCP) -> Iterator[Bench]:
    found = Bench(port, timeout, way)
    try:
        yield found
    finally:
        found.executor.stop()
    assert found.failures == []


def circuits(*pairs: tuple[int, int]) -> tuple[CrossConnect, ...]:
    return tuple(CrossConnect("ocs1", *pair) for pair in pairs)

"""An emulated switch in a thread, and an executor for it with the events that it gave."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from blast_controller.core.model.commands import CircuitChange, SetCircuits
from blast_controller.core.model.events import StepConfirmed, StepFailed
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.optical.executor import OpticalExecutor, SwitchSettings
from tests.support.waiting import for_a_while
from tl1_driver.circuits import Circuit
from tl1_driver.dialects import DIALECTS
from tl1_driver.emulator.agent import EmulatedSwitch
from tl1_driver.emulator.connection import Connection
from tl1_driver.emulator.requests import Request
from tl1_driver.ways import Tcp, Way

PATIENCE = 30.0
TCP = Tcp()


class NotingSwitch(EmulatedSwitch):
    """One that writes down every change that it is sent, in `commands`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.commands: list[str] = []

    def _accept(self, connection: Connection, request: Request) -> None:
        verb, _, rest = request.text.partition("::")
        if verb in ("ent-crs-fiber", "dlt-crs-fiber"):
            self.commands.append(f"{verb[:3]} {rest.split(':')[0]}")
        super()._accept(connection, request)


class SwitchThread:
    """An emulated switch 16 x 16 in a thread; `commands` are the changes it was sent."""

    def __init__(self, port: int, connect_seconds: float = 0.0) -> None:
        self.loop = asyncio.new_event_loop()
        self.switch = NotingSwitch(16, 16, apply=self._apply, connect_seconds=connect_seconds)
        self.commands = self.switch.commands
        self.lit: set[Circuit] = set()
        self._listening = socket.create_server(("127.0.0.1", port), reuse_port=True)
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    async def _apply(self, removed, added) -> None:
        self.lit = self.lit - set(removed) | set(added)

    def _run(self) -> None:
        self.loop.run_until_complete(self._serve())
        self.loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await self.switch.serve(self._listening)
        self._ready.set()
        await self._stop.wait()
        server.close()
        self.switch.cut()

    def do(self, function: Callable[[], object]) -> None:
        """Do something on the switch's own thread."""
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (function(), done.set()))
        assert done.wait(PATIENCE)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


class Bench:
    """An executor for the switch "ocs1" and the events it gave."""

    def __init__(self, port: int, timeout: float, way: Way = TCP) -> None:
        self.port = port
        self.events: queue.Queue = queue.Queue()
        self.failures: list[BaseException] = []
        settings = SwitchSettings("ocs1", "127.0.0.1", port, DIALECTS["glimmerglass"], timeout=timeout, way=way)
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.executor = OpticalExecutor(
            [settings], self.events.put, self.failures.append, on_refused=lambda *told: self.refusals.update([told])
        )
        self.executor.start()

    def next(self, kind: type):
        event = self.events.get(timeout=PATIENCE)
        assert isinstance(event, kind), event
        return event

    def apply(self, *changes: CircuitChange) -> None:
        self.executor.apply(SetCircuits("ocs1", changes))

    def answers(self, count: int) -> dict[tuple[int, int], StepConfirmed | StepFailed]:
        """The next answers, by step; there must be one of each and no more."""
        found = [self.next(StepConfirmed | StepFailed) for _ in range(count)]
        steps = {(event.reservation, event.step): event for event in found}
        assert len(steps) == count
        return steps

    def quiet(self) -> None:
        for_a_while(self.events.empty, "silence of the executor")


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@contextlib.contextmanager
def bench(port: int, timeout: float = 2.0, way: Way = TCP) -> Iterator[Bench]:
    found = Bench(port, timeout, way)
    try:
        yield found
    finally:
        found.executor.stop()
    assert found.failures == []


def circuits(*pairs: tuple[int, int]) -> tuple[CrossConnect, ...]:
    return tuple(CrossConnect("ocs1", *pair) for pair in pairs)

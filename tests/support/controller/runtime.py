"""A runtime with devices that confirm at once (or on demand), for tests of the shells around the core."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from functools import partial

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import SetCircuits, SetForwarding
from blast_controller.core.model.events import DeviceConnected, StepConfirmed, StepFailed
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.observer import Observer
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.methods import ROLES
from blast_controller.runtime.runtime import Runtime
from blast_controller.store.details import read_page
from blast_controller.store.memory import MemoryStore

TIMEOUT = 60.0
"""Seconds after which a test gives up."""


class InstantDevices:
    """Both drivers: they confirm every step at once; while `held`, they keep commands until `release`.

    These tests do not read the state of devices: a call of `look` or `read` fails.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.commands: list[SetCircuits | SetForwarding] = []
        self.held: list[SetCircuits | SetForwarding] | None = None
        self.denied: str | None = None

    def apply(self, command: SetCircuits | SetForwarding) -> None:
        self.commands.append(command)
        if self.held is not None:
            self.held.append(command)
        else:
            self._answer(command)

    def release(self) -> None:
        held, self.held = self.held or [], None
        for command in held:
            self._answer(command)

    def _answer(self, command: SetCircuits | SetForwarding) -> None:
        device = command.switch if isinstance(command, SetCircuits) else command.datapath
        for change in command.changes:
            if self.denied is not None:
                self._runtime.post(StepFailed(device, change.reservation, change.step, self.denied))
            else:
                self._runtime.post(StepConfirmed(device, change.reservation, change.step, 0.001))


class Running:
    """A started runtime; `failures` are what it called fatal."""

    def __init__(self, fabric: Fabric, settings: CoreSettings, observers: Iterable[Observer] = ()) -> None:
        self.failures: list[BaseException] = []
        self.store = MemoryStore()
        loaded = self.store.open()
        self.runtime = Runtime(Core(fabric, settings), self.store, self.failures.append, observers=observers)
        self.devices = InstantDevices(self.runtime)
        self.runtime.start(self.devices, self.devices, loaded)
        for device in [*fabric.switches, *{rack.datapath for rack in fabric.racks.values()}]:
            self.runtime.post(DeviceConnected(device))
        self.settle()

    def make_handler(self, gate: Gate | None = None) -> BlastHandler:
        """Return the controller's interface; all clients may use it unless a gate restricts it."""
        gate = gate or Gate(OPEN_POLICY, ROLES)
        return BlastHandler(self.runtime, "os-ken", partial(read_page, self.store.journal), gate)

    def settle(self) -> None:
        """Wait until everything posted, and its consequences of two levels, is handled."""
        for _ in range(6):
            handled: Future[None] = Future()
            # Calls of accounts alternate, and calls without an account overtake them.
            self.runtime._inbox.put_last(partial(self.runtime._work_into, handled, lambda context: None))
            handled.result(TIMEOUT)

    def look(self) -> Core:
        """Return the core once nothing is in transit."""
        self.settle()
        return self.runtime.call(lambda context: context.core).result(TIMEOUT)


@contextlib.contextmanager
def running(
    fabric: Fabric, settings: CoreSettings | None = None, observers: Iterable[Observer] = ()
) -> Iterator[Running]:
    """Run a runtime during the block, and check that it ends without a failure."""
    lab = Running(fabric, settings or CoreSettings(), observers)
    try:
        yield lab
    finally:
        lab.runtime.stop()
    assert lab.failures == []

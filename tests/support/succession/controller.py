"""One of several controllers: the real daemon with its threads, whose ways to etcd and to devices are modelled."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit

from blast_controller import daemon as daemon_module
from blast_controller.daemon import Daemon
from blast_controller.holding import EndRecord
from blast_controller.openflow import driver as driver_module
from blast_controller.openflow.driver import OpenFlowDriver
from blast_controller.openflow.rules import RuleSettings
from blast_controller.ops.activity_log import ActivityLog
from blast_controller.optical import executor as executor_module
from blast_controller.optical.executor import OpticalExecutor, SwitchSettings
from blast_controller.rpc.clients import gate as gate_module
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.methods import ROLES
from blast_controller.runtime import inbox as inbox_module
from blast_controller.runtime import runtime as runtime_module
from blast_controller.runtime.runtime import Runtime
from blast_controller.store import compaction as compaction_module
from blast_controller.store.compaction import Compactor
from blast_controller.store.etcd import leadership as leadership_module
from blast_controller.store.etcd import lease as lease_module
from blast_controller.store.etcd import store as store_module
from blast_controller.store.etcd import watching as watching_module
from blast_controller.store.etcd.access import Access
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.interface import Loaded
from blast_controller.store.retention import Retention
from blast_controller.succession import by_etcd as by_etcd_module
from blast_controller.succession import candidate as candidate_module
from blast_controller.succession import following as following_module
from blast_controller.succession.by_etcd import EtcdSuccession, LeaderTerms
from tests.support.modelled_etcd import ModelledConnection
from tests.support.succession.forwarding import ModelledServer
from tests.support.succession.network import EtcdNetwork
from tests.support.succession.optical import ModelledClient, OpticalWay
from tests.support.succession.scheduler import Process
from tests.support.succession.threads import Overlay, modules, waiting_future
from tests.support.succession.wire import Link
from tl1_driver.dialects import DIALECTS

if TYPE_CHECKING:
    from tests.support.succession.room import Room

LEASE = 1
BEGINNING_ANEW = 0.4
"""Seconds in which a process starts."""

_USES = {
    lease_module: ("threading", "time"),
    leadership_module: ("time",),
    store_module: ("threading", "time"),
    watching_module: ("threading",),
    candidate_module: ("threading",),
    following_module: ("threading", "time"),
    runtime_module: ("threading", "time"),
    inbox_module: ("threading", "queue"),
    compaction_module: ("threading", "time"),
    driver_module: ("time",),
    executor_module: ("asyncio", "threading", "time"),
    daemon_module: ("threading", "time"),
    gate_module: ("time",),
}


@dataclass(eq=False)
class Controller:
    """`led` is the generation of its latest time as the leader; `died` are its ends by a fault of its own."""

    room: Room
    number: int
    to_etcd: Link = field(default_factory=Link)
    to_devices: Link = field(default_factory=Link)
    led: int = 0
    process: Process | None = None
    daemon: SimulatedDaemon | None = None
    network: EtcdNetwork | None = None
    server: ModelledServer | None = None
    died: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"ctl{self.number}:9090"

    @property
    def is_up(self) -> bool:
        """Whether it can be connected to."""
        return self.process is not None and not self.process.ended and self.daemon is not None and self.daemon.is_up

    def start(self) -> None:
        """Start a process."""
        room = self.room
        self.process = Process(self.address, wall=room.wall_of(self))
        self.network = EtcdNetwork(room.scheduler, self.process, room.members, self.to_etcd, room.dice)
        room.of_process[self.process] = self
        room.scheduler.spawn(self.process, self._run)

    def _run(self) -> None:
        self.daemon = SimulatedDaemon(self)
        self.daemon.begin()

    def end(self) -> None:
        """Its process ends where it is; what it has sent still arrives."""
        process, self.daemon = self.process, None
        if process is None or process.ended:
            return
        self.room.of_process.pop(process, None)
        if self.server is not None:
            for session in list(self.server.sessions):
                session.process_ended()
            self.server = None
        self.room.scheduler.end(process)

    def begin_anew(self) -> None:
        """As the process sees it: it is replaced by one that has just been started."""
        self._replace()
        raise GreenletExit

    def exit(self, _: int) -> None:
        """As the process sees it: it ends, and a supervisor starts another."""
        self._replace()
        raise GreenletExit

    def _replace(self) -> None:
        ended = self.process
        self.end()
        self.room.scheduler.after(BEGINNING_ANEW, lambda: self.start() if self.process is ended else None)


class SimulatedDaemon(Daemon):
    """The daemon's own code, on parts that are modelled where they meet the world."""

    def __init__(self, controller: Controller) -> None:
        room, scheduler = controller.room, controller.room.scheduler
        self._controller = controller
        self.is_up = False
        self._config = SimpleNamespace(policy=SimpleNamespace(optimise_ms=0), room=room)
        self._began = scheduler.now
        keys = Keys("/simulated/")
        self._succession = EtcdSuccession(
            Access((f"of {controller.address}",)), keys, controller.address, LeaderTerms(LEASE, Retention(entries=400))
        )
        self._store = self._succession.store
        self._loaded = Loaded(0, {}, False)
        self.epoch = 0
        self._ends = EndRecord(None)
        self._compactor = Compactor(self._store, self._die)
        self._garbage = SimpleNamespace(start=lambda: None)
        self.runtime = Runtime(room.core(), self._store, self._die, observers=[ActivityLog()])
        settings = [SwitchSettings(name, name, 0, DIALECTS["glimmerglass"]) for name in room.fabric.switches]
        self._optical = OpticalExecutor(settings, self.runtime.post, self._die, self._may_write)
        self.gate = Gate(OPEN_POLICY, ROLES)
        self.handler = BlastHandler(self.runtime, "simulated", self._history, self.gate, self)
        self._deposed = daemon_module.threading.Lock()
        self.on_epoch = self._leads
        self._optimiser = self._recorder = None
        self._openflow = None

    def begin(self) -> None:
        """As `start`, without the servers for clients."""
        room = self._controller.room
        ports = {rack.datapath: [port.port for port in rack.optical_ports] for rack in room.fabric.racks.values()}
        group = str(room.settings.group_network)
        self._openflow = OpenFlowDriver(
            ("", 0), RuleSettings(), ports, group, self.runtime.post, self._die, generation=None
        )
        self._stand(self._succession)
        self.is_up = True

    def _leads(self, epoch: int) -> None:
        self._controller.led = self._succession.generation
        self._controller.room.note_leader(self._controller, epoch)

    def _die(self, error: BaseException) -> None:
        if not isinstance(error, GreenletExit):
            before = len(self._controller.died)
            self._controller.died.append(f"{type(error).__name__}: {error}")
            if isinstance(error, daemon_module.Dispossessed) or self._deposed.locked():
                del self._controller.died[before:]
            super()._die(error)


@contextmanager
def simulated(room: Room) -> Iterator[None]:
    """The controller's modules see the room's clock, threads and network instead of the machine's."""
    scheduler = room.scheduler
    overlays = modules(scheduler)

    def controller() -> Controller:
        return room.of_process[scheduler.process]

    def connection(_: Access) -> ModelledConnection:
        network = controller().network
        assert network is not None
        return ModelledConnection(room.etcd, network)

    def server(_: tuple[str, int], *__: Any) -> ModelledServer:
        here = controller()
        here.server = ModelledServer(scheduler, scheduler.process, overlays)
        return here.server

    def client(host: str, *_: Any, **__: Any) -> ModelledClient:
        here = controller()
        way = OpticalWay(here.to_devices, room.late_or_soon, room.soon, lambda: here.led, room.note_write)
        return ModelledClient(scheduler, scheduler.process, room.switches[host], way)

    names: list[tuple[Any, str, Any]] = [
        (module, name, overlays[name]) for module, uses in _USES.items() for name in uses
    ]
    names += [
        (runtime_module, "Future", waiting_future(scheduler)),
        (by_etcd_module, "Connection", connection),
        (driver_module, "Server", server),
        (driver_module, "encode", lambda _, messages: messages),
        (executor_module, "SwitchClient", client),
        (daemon_module, "_core", lambda config: config.room.core()),
        (daemon_module, "begin_anew", lambda: controller().begin_anew()),
        (daemon_module, "os", Overlay(os, _exit=lambda status: controller().exit(status))),
        (daemon_module, "logging", Overlay(logging, shutdown=lambda: None)),
    ]
    with _patched(names):
        yield


@contextmanager
def _patched(names: list[tuple[Any, str, Any]]) -> Iterator[None]:
    before = [(module, name, getattr(module, name)) for module, name, _ in names]
    for module, name, value in names:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)

"""Controllers, etcd, ToRs that reconnect repeatedly, optical switches, and calls of clients.

A controller is the real daemon with its threads; its etcd, its devices, its clock and its threads are modeled.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from greenlet import GreenletExit

from blast_controller.core.controller import Core
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.settings import CoreSettings
from blast_controller.openflow import driver as driver_module
from blast_controller.openflow.driver import OpenFlowDriver
from blast_controller.openflow.rules import RuleSettings
from blast_controller.ops.activity_log import ActivityLog
from blast_controller.optical import executor as executor_module
from blast_controller.optical.executor import OpticalExecutor, SwitchSettings
from blast_controller.process import daemon as daemon_module
from blast_controller.process.daemon import Daemon
from blast_controller.process.safe_mode import EndRecord
from blast_controller.rpc.clients import gate as gate_module
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.methods import ROLES
from blast_controller.runtime import group_commit as group_commit_module
from blast_controller.runtime import inbox as inbox_module
from blast_controller.runtime import runtime as runtime_module
from blast_controller.runtime.runtime import Runtime
from blast_controller.serving import loop_thread as loop_thread_module
from blast_controller.store import compaction as compaction_module
from blast_controller.store.compaction import Compactor
from blast_controller.store.etcd import leadership as leadership_module
from blast_controller.store.etcd import lease as lease_module
from blast_controller.store.etcd import ledger
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
from optical_switch.model import Circuit
from tests.support.controller.core import make_fabric
from tests.support.controller.modeled_etcd import ModeledConnection, ModeledEtcd, UnansweredError
from tests.support.dice import SeededDice
from tests.support.succession.devices import (
    ModeledServer,
    ModeledSession,
    ModeledSwitch,
    ModeledSwitchSession,
    ModeledTor,
    Written,
)
from tests.support.succession.network import EtcdNetwork, Link, Members, between, outcome
from tests.support.succession.scheduler import Process, Scheduler
from tests.support.succession.threads import modules, overlay, waiting_future

LEASE = 1
RESTART_SECONDS = 0.4
"""Seconds in which a process starts."""
ANSWER_WITHIN = 1.0
AUDIT = 5.0
BACKOFF = 1.0
"""Seconds between two tries of a ToR to connect."""
SILENCE = (4.0, 9.0)
"""Seconds without data after which either side closes a connection."""

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
    executor_module: ("time",),
    loop_thread_module: ("asyncio", "threading"),
    group_commit_module: ("threading", "queue"),
    daemon_module: ("threading", "time"),
    gate_module: ("time",),
}


class Room:
    """A simulated installation, made from a seed. `leaders` are the generations of all leaders, in order."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = SeededDice(seed)
        self.scheduler = Scheduler(lambda: dice.number(0, 200) * 1e-6)
        self.fabric: Fabric = make_fabric(4, [4, 2], hosts=1)
        self.settings = CoreSettings(
            reconcile_every=AUDIT, lease_minimum=dice.pick([20.0, 60.0, 3.0]), keep_warm=dice.pick([0.0, 0.0, 3.0])
        )
        self.etcd = ModeledEtcd(lambda: self.scheduler.now, lambda: dice.number(0, 500) / 1000)
        self.members = Members(self.etcd)
        self.etcd.on_change = self._etcd_changed
        self.switches = {str(name): ModeledSwitch(name) for name in self.fabric.switches}
        self.tors = {rack.datapath: ModeledTor(rack.datapath) for rack in self.fabric.racks.values()}
        self.of_process: dict[Process, Controller] = {}
        self.controllers = [Controller(self, number) for number in range(dice.pick([2, 3]))]
        self.leaders: list[int] = []
        self.late_writes = False
        self.on_late: Callable[[], None] = lambda: None
        self.late_circuits: list[tuple[float, Circuit]] = []
        self.is_frozen = False
        self.max_bytes = dice.pick([ledger.MAX_BYTES, 3000, 1000])
        self._numbers = itertools.count(1)

    def core(self) -> Core:
        """Return a core as every controller makes it of its configuration."""
        return Core(self.fabric, self.settings)

    def note_leader(self, controller: Controller) -> None:
        """Record that a controller has become leader."""
        assert all(controller.led > before for before in self.leaders), "two leaders have one generation"
        self.leaders.append(controller.led)

    @property
    def leading(self) -> list[Controller]:
        """Return the controllers that decide as leader."""
        found = [one for one in self.controllers if one.is_up and one.process is not None and not one.process.paused]
        return [
            one
            for one in found
            if one.daemon is not None and one.daemon.runtime.standby is None and one.daemon._may_write()
        ]

    def note_write(self, written: Written, switch: ModeledSwitch) -> None:
        """Record stale circuits that a switch has made for a command of an older leader."""
        leading = self.leading
        if len(leading) != 1 or leading[0].led <= written.generation or leading[0].daemon is None:
            return
        layouts = (layout for r in leading[0].daemon.runtime.core.reservations for layout in r.layouts)
        expected = {(c.input, c.output) for layout in layouts for c in layout.circuits if c.switch == switch.name}
        self.late_circuits += [(written.at, circuit) for circuit in written.connected if circuit not in expected]

    def soon(self) -> float:
        """Draw the seconds of a message between machines of a room."""
        return self.dice.number(1, 40) / 10_000

    def late_or_soon(self) -> float:
        """Draw those of a write to an optical switch, which may be much later."""
        if not self.late_writes or not self.dice.number(0, 2):
            return self.soon()
        self.on_late()
        return self.dice.number(10, 65) / 10

    def begin(self) -> None:
        """Start everything."""
        for controller in self.controllers:
            controller.start()
        for tor in self.tors.values():
            for controller in self.controllers:
                self._keep_connecting(tor, controller)

    def _keep_connecting(self, tor: ModeledTor, controller: Controller) -> None:
        server, is_cut = controller.server, controller.to_devices.is_cut
        sessions = [one for one in server.sessions if one.tor is tor] if server else []
        if server and server.deliver and not sessions and controller.is_up and not is_cut:
            ModeledSession(controller, server, tor)
        for session in sessions:
            if is_cut:
                self.scheduler.after(
                    between(self.dice, *SILENCE), lambda session=session: self._find_dead(controller, session)
                )
        self.scheduler.after(BACKOFF * between(self.dice, 0.5, 1.0), lambda: self._keep_connecting(tor, controller))

    def _find_dead(self, controller: Controller, session: ModeledSession) -> None:
        if controller.to_devices.is_cut and session.is_open:
            session.lose()

    def _etcd_changed(self) -> None:
        waiting, self.members.waiting = self.members.waiting, []
        for wake in waiting:
            self.scheduler.after(self.soon(), lambda wake=wake: self.scheduler.wake(wake))

    def call(self, controller: Controller, connection: Connection, method: str, *arguments: object) -> Any:
        """Make a client's call, by a thread of its own. Raises UnansweredError, and what the handler raises."""
        scheduler, process = self.scheduler, controller.process
        if process is None or not controller.is_up:
            scheduler.wait(scheduler.now + self.soon())
            raise UnansweredError("not up", is_surely_not_done=True)
        answers: list[Future[Any]] = []
        wake = scheduler.waiting(scheduler.now + ANSWER_WITHIN)

        def answer(future: Future[Any]) -> None:
            if not process.ended:
                scheduler.after(self.soon(), lambda: receive(future))

        def receive(future: Future[Any]) -> None:
            if not wake.is_over:
                answers.append(future)
                scheduler.wake(wake)

        def carry_out() -> None:
            if controller.daemon is not None:
                called = getattr(controller.daemon.handler, method)
                found = outcome(lambda: called(connection, *arguments), Exception)
                is_later = found.exception() is None and isinstance(found.result(), Future)
                (found.result() if is_later else found).add_done_callback(answer)

        scheduler.after(self.soon(), lambda: None if process.ended else scheduler.spawn(process, carry_out))
        scheduler.sleep()
        if not answers:
            raise UnansweredError("no answer in time")
        return answers[0].result(0)

    def connection(self) -> Connection:
        """Return a new connection of a client."""
        return Connection(next(self._numbers), "192.0.2.1:5")

    def settle(self, condition: Callable[[], bool], event: str, seconds: float = 120.0) -> None:
        """Let time pass until the condition holds."""
        self.scheduler.run(self.scheduler.now + seconds, condition)
        assert condition(), f"not within {seconds:g} s: {event}"


@dataclass(eq=False)
class Controller:
    """`led` is the generation of its latest time as the leader, `wall` the error of its machine's wall clock.

    `died` are its ends by a fault of its own.
    """

    room: Room
    number: int
    to_etcd: Link = field(default_factory=Link)
    to_devices: Link = field(default_factory=Link)
    led: int = 0
    wall: float = 0.0
    process: Process | None = None
    daemon: SimulatedDaemon | None = None
    network: EtcdNetwork | None = None
    server: ModeledServer | None = None
    died: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"ctl{self.number}:9090"

    @property
    def is_up(self) -> bool:
        """Return True if it accepts connections."""
        return self.process is not None and not self.process.ended and self.daemon is not None and self.daemon.is_up

    def start(self) -> None:
        """Start a process."""
        room = self.room
        self.process = Process(self.address, wall=self.wall)
        self.network = EtcdNetwork(room.scheduler, self.process, room.members, self.to_etcd, room.dice)
        room.of_process[self.process] = self
        room.scheduler.spawn(self.process, self._run)

    def _run(self) -> None:
        self.daemon = SimulatedDaemon(self)
        self.daemon.begin()

    def jump(self, seconds: float) -> None:
        """Set the wall clock of its machine forward or back."""
        self.wall += seconds
        if self.process is not None:
            self.process.wall = self.wall

    def end(self) -> None:
        """Kill the process; data in transit still arrives."""
        process, self.daemon = self.process, None
        if process is None or process.ended:
            return
        self.room.of_process.pop(process, None)
        if self.server is not None:
            for session in list(self.server.sessions):
                session.process_ended()
            self.server = None
        self.room.scheduler.end(process)

    def replace(self, _: object = None) -> None:
        """Restart from the view of the process: it ends, and another one starts, by itself or by a supervisor."""
        ended = self.process
        self.end()
        self.room.scheduler.after(RESTART_SECONDS, lambda: self.start() if self.process is ended else None)
        raise GreenletExit


class SimulatedDaemon(Daemon):
    """The daemon's own code, on modeled parts."""

    def __init__(self, controller: Controller) -> None:
        room, scheduler = controller.room, controller.room.scheduler
        self._controller = controller
        self.is_up = False
        self._config = SimpleNamespace(policy=SimpleNamespace(optimizer_budget_ms=0), room=room)
        self._began = scheduler.now
        terms = LeaderTerms(LEASE, Retention(entries=400))
        access = Access((f"of {controller.address}",))
        self._succession = EtcdSuccession(access, Keys("/simulated/"), controller.address, terms)
        self._store = self._succession.store
        self._loaded = Loaded(0, {}, False)
        self.epoch = 0
        self._ends = EndRecord(None)
        self._compactor = Compactor(self._store, self._die)
        self._garbage = SimpleNamespace(start=lambda: None)
        self.runtime = Runtime(room.core(), self._store, self._die, observers=[ActivityLog()])
        settings = [
            SwitchSettings(name, "modeled", partial(ModeledSwitchSession, controller, room.switches[name]))
            for name in room.fabric.switches
        ]
        self._optical = OpticalExecutor(settings, self.runtime.post, self._die, self._may_write)
        self.gate = Gate(OPEN_POLICY, ROLES)
        self.handler = BlastHandler(self.runtime, "simulated", self._history, self.gate, self)
        self._deposed = daemon_module.threading.Lock()
        self.on_epoch = self._note_leader
        self._optimizer = self._recorder = None
        self._openflow = None

    def begin(self) -> None:
        """Start without the servers for clients."""
        room = self._controller.room
        ports = {rack.datapath: [port.port for port in rack.optical_ports] for rack in room.fabric.racks.values()}
        group = str(room.settings.group_network)
        self._openflow = OpenFlowDriver(
            ("", 0), RuleSettings(), ports, group, self.runtime.post, self._die, generation=None
        )
        self._stand(self._succession)
        self.is_up = True

    def _note_leader(self, _: int) -> None:
        self._controller.led = self._succession.generation
        self._controller.room.note_leader(self._controller)

    def _die(self, error: BaseException) -> None:
        if not isinstance(error, GreenletExit):
            if not isinstance(error, daemon_module.LockLostError) and not self._deposed.locked():
                self._controller.died.append(f"{type(error).__name__}: {error}")
            super()._die(error)


@contextmanager
def simulated(room: Room) -> Iterator[None]:
    """Give the controller's modules the room's clock, threads and network instead of the machine's."""
    scheduler = room.scheduler
    overlays = modules(scheduler)

    def controller() -> Controller:
        return room.of_process[scheduler.process]

    def connection(_: Access) -> ModeledConnection:
        network = controller().network
        assert network is not None
        return ModeledConnection(room.etcd, network)

    def server(_: tuple[str, int], *__: Any) -> ModeledServer:
        here = controller()
        here.server = ModeledServer(scheduler, scheduler.process, overlays)
        return here.server

    names: list[tuple[Any, str, Any]] = [
        (module, name, overlays[name]) for module, uses in _USES.items() for name in uses
    ]
    names += [
        (runtime_module, "Future", waiting_future(scheduler)),
        (by_etcd_module, "EtcdConnection", connection),
        (driver_module, "Server", server),
        (driver_module, "encode", lambda _, messages: messages),
        (daemon_module, "_core", lambda config: config.room.core()),
        (daemon_module, "start_over", lambda: controller().replace()),
        (daemon_module, "os", overlay(os, _exit=lambda status: controller().replace(status))),
        (daemon_module, "logging", overlay(logging, shutdown=lambda: None)),
        # So that some commits are larger than one transaction.
        (ledger, "MAX_BYTES", room.max_bytes),
    ]
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in names:
            patch.setattr(module, name, value)
        yield

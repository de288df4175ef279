"""The whole of it: controllers, etcd, ToRs that connect again and again, optical switches, and calls of clients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from blast_controller.core.controller import Core
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.settings import CoreSettings
from blast_controller.rpc.connections.connection import Connection
from blast_controller.store.etcd import ledger
from tests.support.core import make_fabric
from tests.support.dice import SeededDice
from tests.support.modelled_etcd import ModelledEtcd
from tests.support.succession.controller import Controller
from tests.support.succession.forwarding import BACKOFF, SILENCE, ModelledSession
from tests.support.succession.network import Members
from tests.support.succession.optical import ModelledSwitch, Written
from tests.support.succession.scheduler import Process, Scheduler
from tests.support.succession.tor import ModelledTor
from tl1_driver.circuits import Circuit

ANSWER_WITHIN = 1.0
AUDIT = 5.0


class NoAnswer(Exception):
    """A call had none; whether it was done is not known, unless `is_surely_not_done`."""

    def __init__(self, is_surely_not_done: bool = False) -> None:
        super().__init__("no answer")
        self.is_surely_not_done = is_surely_not_done


class Room:
    """Made of a seed. `epochs` are those of all leaders so far, `leaders` who they were, with their generations."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = SeededDice(seed)
        self.scheduler = Scheduler(lambda: dice.number(0, 200) * 1e-6)
        self.fabric: Fabric = make_fabric(4, [4, 2], hosts=1)
        self.settings = CoreSettings(
            reconcile_every=AUDIT, lease_minimum=dice.pick([20.0, 60.0, 3.0]), keep_warm=dice.pick([0.0, 0.0, 3.0])
        )
        self.etcd = ModelledEtcd(lambda: self.scheduler.now, lambda: dice.number(0, 500) / 1000)
        self.members = Members(self.etcd)
        self.etcd.on_change = self._etcd_changed
        self.switches = {str(name): ModelledSwitch(name) for name in self.fabric.switches}
        self.tors = {rack.datapath: ModelledTor(rack.datapath) for rack in self.fabric.racks.values()}
        self.of_process: dict[Process, Controller] = {}
        self.controllers = [Controller(self, number) for number in range(dice.pick([2, 3]))]
        self.leaders: list[tuple[int, Controller, int]] = []
        self.late_writes = False
        self.on_late: Callable[[], None] = lambda: None
        self.came_late: list[tuple[float, Circuit]] = []
        self.is_frozen = False
        self.most_bytes = dice.pick([ledger.MOST_BYTES, 3000, 1000])
        self._walls: dict[Controller, float] = {}
        self._numbers = itertools.count(1)

    def core(self) -> Core:
        """As every controller makes it of its configuration."""
        return Core(self.fabric, self.settings)

    def wall_of(self, controller: Controller) -> float:
        """By how much a machine's wall clock is wrong."""
        return self._walls.get(controller, 0.0)

    def jump(self, controller: Controller, seconds: float) -> None:
        """Somebody sets a machine's wall clock."""
        self._walls[controller] = self.wall_of(controller) + seconds
        if controller.process is not None:
            controller.process.wall = self._walls[controller]

    def note_leader(self, controller: Controller, epoch: int) -> None:
        """Somebody says that it leads."""
        generation = controller.led
        assert all(generation > before for _, _, before in self.leaders), "two leaders have one generation"
        self.leaders.append((epoch, controller, generation))

    @property
    def leading(self) -> list[Controller]:
        """Who decides, and believes that it may."""
        found = [one for one in self.controllers if one.is_up and one.process is not None and not one.process.paused]
        return [
            one
            for one in found
            if one.daemon is not None and one.daemon.runtime.standby is None and one.daemon._may_write()
        ]

    def note_write(self, written: Written, switch: ModelledSwitch) -> None:
        """A switch has carried out a command: remember what an older leader's has made that nobody wants."""
        leading = self.leading
        if len(leading) != 1 or leading[0].led <= written.generation or leading[0].daemon is None:
            return
        layouts = (layout for r in leading[0].daemon.runtime.core.reservations for layout in r.layouts)
        wanted = {(c.input, c.output) for layout in layouts for c in layout.circuits if c.switch == switch.name}
        self.came_late += [(written.at, circuit) for circuit in written.connected if circuit not in wanted]

    def soon(self) -> float:
        """Seconds of a message between machines of a room."""
        return self.dice.number(1, 40) / 10_000

    def late_or_soon(self) -> float:
        """The same for what is written to an optical switch, some of which may be much later."""
        if not self.late_writes or not self.dice.number(0, 2):
            return self.soon()
        self.on_late()
        return self.dice.number(10, 65) / 10

    # ---------------------------------------------------------------------------------------------------------- ToRs

    def begin(self) -> None:
        """Start everything."""
        for controller in self.controllers:
            controller.start()
        for tor in self.tors.values():
            for controller in self.controllers:
                self._keep_connecting(tor, controller)

    def _keep_connecting(self, tor: ModelledTor, controller: Controller) -> None:
        def look() -> None:
            server = controller.server
            sessions = [one for one in server.sessions if one._tor is tor] if server else []
            if server and server.deliver and not sessions and controller.is_up and not controller.to_devices.is_cut:
                ModelledSession(self.scheduler, server, tor, controller.to_devices, self.soon)
            for session in sessions:
                if controller.to_devices.is_cut:
                    self.scheduler.after(
                        self._between(*SILENCE), lambda session=session: self._find_dead(controller, session)
                    )
            self.scheduler.after(BACKOFF * self._between(0.5, 1.0), look)

        look()

    def _find_dead(self, controller: Controller, session: ModelledSession) -> None:
        if controller.to_devices.is_cut and session.is_open:
            session.lose()

    def _between(self, least: float, most: float) -> float:
        return least + (most - least) * self.dice.number(0, 1000) / 1000

    def _etcd_changed(self) -> None:
        waiting, self.members.waiting = self.members.waiting, []
        for wake in waiting:
            self.scheduler.after(self.soon(), lambda wake=wake: self.scheduler.wake(wake))

    # --------------------------------------------------------------------------------------------------------- calls

    def call(self, controller: Controller, connection: Connection, method: str, *arguments: object) -> Any:
        """A client's call, by a thread of its own. Raises NoAnswer, and what the handler raises."""
        scheduler, process = self.scheduler, controller.process
        if process is None or not controller.is_up:
            scheduler.wait(scheduler.now + self.soon())
            raise NoAnswer(is_surely_not_done=True)
        answers: list[Future[Any]] = []
        wake = scheduler.waiting()
        scheduler.timed(wake, scheduler.now + ANSWER_WITHIN)

        def answer(future: Future[Any]) -> None:
            if not process.ended:
                scheduler.after(self.soon(), lambda: hear(future))

        def hear(future: Future[Any]) -> None:
            if not wake.is_over:
                answers.append(future)
                scheduler.wake(wake)

        def carry_out() -> None:
            daemon = controller.daemon
            if daemon is None:
                return
            try:
                result = getattr(daemon.handler, method)(connection, *arguments)
            except Exception as error:  # noqa: BLE001 - it is the answer
                result = Future()
                result.set_exception(error)
            if isinstance(result, Future):
                result.add_done_callback(answer)
            else:
                future: Future[Any] = Future()
                future.set_result(result)
                answer(future)

        scheduler.after(self.soon(), lambda: None if process.ended else scheduler.spawn(process, carry_out))
        scheduler.sleep(wake)
        if not answers:
            raise NoAnswer
        return answers[0].result(0)

    def connection(self) -> Connection:
        """A client's."""
        return Connection(next(self._numbers), "192.0.2.1:5")

    def settle(self, is_so: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
        """Let time pass until something is so."""
        self.scheduler.run(self.scheduler.now + seconds, is_so)
        assert is_so(), f"not within {seconds:g} s: {what}"

"""Two controllers of a lab, on real switches and a journal in a real etcd: their roles, and their faults."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from blast_api.ttypes import Grant, MulticastRequest
from blast_client import BlastError, Client, NotLeader
from mininet_topos.controller_namespace import ControllerNamespace
from mininet_topos.lab import Lab, _entering, blast_controller
from mininet_topos.process import LabProcess
from tests.support.waiting import eventually

T = TypeVar("T")
PATIENCE = 180.0
GROUPS = (("r1h1", ("r2h1", "r3h1")), ("r4h1", ("r5h1", "r6h1")))


class Controller:
    """The controller of this number, from 1, as a process."""

    def __init__(self, lab: Lab, number: int, address: str) -> None:
        self._lab, self.number, self.address = lab, number, address
        self.is_paused = False

    @property
    def network(self) -> ControllerNamespace:
        return self._lab.controller_namespace(self.number)

    @property
    def process(self) -> LabProcess | None:
        return self._lab._controller if self.number == 1 else self._standby._process

    def kill(self) -> None:
        if self.number == 1:
            self._lab.kill_controller()
        elif self._standby._process is not None:
            self._standby._process.kill()
            self._standby._process = None
        self.is_paused = False

    def start(self) -> None:
        if self.number == 1:
            self._lab.start_controller()
        else:
            self._standby.start(_entering(self.network, blast_controller), self._lab.id, self._lab.directory)

    def pause(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)
        self.is_paused = True

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)
        self.is_paused = False

    def is_behind(self) -> bool | None:
        """Whether it stands by, and answers what another has decided; None where it does not answer."""
        with suppress(BlastError), Client(self.address, timeout=5.0) as client:
            return client.fabric().staleMs is not None
        return None

    def leads(self) -> bool:
        return self.is_behind() is False

    def stands_by(self) -> bool:
        return self.is_behind() is True

    @property
    def _standby(self):
        return self._lab._standbys[self.number - 2]


class Room:
    """A lab and its controllers."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        addresses = lab.controllers.split(",")
        self.controllers = [Controller(lab, number, address) for number, address in enumerate(addresses, 1)]

    @property
    def leader(self) -> Controller:
        """Wait for exactly one leader."""
        return eventually(self._only_leader, "exactly one leader", PATIENCE)

    def roles(self) -> tuple[Controller, Controller]:
        """Return the leader and the other one."""
        leader = self.leader
        return leader, next(controller for controller in self.controllers if controller is not leader)

    def _only_leader(self) -> Controller | None:
        running = [one for one in self.controllers if one.process is not None and not one.is_paused]
        states = {one: one.is_behind() for one in running}
        leading = [one for one, is_behind in states.items() if is_behind is False]
        return leading[0] if len(leading) == 1 and None not in states.values() else None

    def ask_leader(self, ask: Callable[[Client], T]) -> T:
        """Ask the leader; on a busy machine a lease may end in between, and another leads."""

        def answer() -> list[T]:
            with suppress(NotLeader), Client(self.leader.address, timeout=PATIENCE) as client:
                return [ask(client)]
            return []

        return eventually(answer, "an answer of the leader", PATIENCE)[0]

    def grant(self, key: str) -> Grant:
        sender, receivers = GROUPS[0]
        request = MulticastRequest(key, sender, list(receivers), 10**8)
        return self.ask_leader(lambda client: client.request(request, timeout=PATIENCE))

    def wait_for_devices(self) -> None:
        eventually(lambda: self.ask_leader(_all_connected), "all devices at the leader", PATIENCE)

    def restore(self) -> None:
        """Let both controllers run and serve, without requests."""
        for controller in self.controllers:
            if controller.process is None:
                controller.start()
            elif controller.is_paused:
                controller.go_on()
        self.wait_for_devices()
        eventually(lambda: self.ask_leader(_is_dark), "the last light tree to go", PATIENCE)


def _is_dark(client: Client) -> bool:
    """Withdraw all requests; whether there are no light trees any more."""
    for request in client.list_requests():
        if not request.state.final:
            client.withdraw(request.key)
    return not client.fabric().lightTrees


def _all_connected(client: Client) -> bool:
    fabric = client.fabric()
    return all(device.connected for device in (*fabric.racks, *fabric.opticalSwitches))

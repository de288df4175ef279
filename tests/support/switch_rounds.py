"""Rounds of faults of one emulated optical switch under the real core and the real executor; ToRs always obey.

After each round the faults are over and the operator reconciles: then the switch has exactly the circuits that the core
wants and those of other writers, the light paths are those of the switch, and nothing is left half way.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import Command, ReadDevice, SetCircuits, SetForwarding
from blast_controller.core.model.errors import RequestError
from blast_controller.core.model.events import (
    AuditRequested,
    DeviceConnected,
    ElementReleased,
    Event,
    FinishRequested,
    RequestSubmitted,
    StepConfirmed,
    TableObserved,
    TimePassed,
    WithdrawRequested,
)
from blast_controller.core.model.settings import CoreSettings
from blast_controller.optical.executor import OpticalExecutor, SwitchSettings
from optical_switch.model import Circuit, Port
from tests.support.controller.core import TENANT, make_fabric, multicast
from tests.support.switch_beds import PORTS, MakeBed, SwitchBed
from tests.support.waiting import eventually_async

ANSWER_SECONDS = 0.3
"""For an answer, and for a change to be in effect: faults let some never come."""
FAULT_SECONDS = 0.15
"""A fault lasts for some steps, not for the whole deadline of one."""
SETTLED_SECONDS = 60.0
"""A limit that only keeps a failed round from hanging."""
RACKS = ("r1", "r2", "r3", "r4")


class SwitchController:
    """The core, the executor of one switch, and ToRs that confirm at once."""

    def __init__(self, bed: SwitchBed) -> None:
        # Ports 1 to 4 are racks; two splitters 1:2 have inputs 5 to 8 and outputs 5 and 6.
        self.fabric = make_fabric(len(RACKS), [2, 2])
        self.core = Core(self.fabric, CoreSettings(lease_minimum=1e6, lease_factor=1.0, failures_allowed=3))
        self.failures: list[BaseException] = []
        self._events: queue.Queue[Event] = queue.Queue()
        settings = SwitchSettings("ocs1", "test", bed.access.new_session, ANSWER_SECONDS)
        self._executor = OpticalExecutor([settings], self._events.put, self.failures.append)
        self._rules: dict[int, set[object]] = {}
        self._keys: list[str] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the executor, and the core on this loop."""
        self._executor.start()
        for rack in self.fabric.racks.values():
            self.handle(DeviceConnected(rack.datapath))
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            # Its sessions need this loop to end, on which the switch runs.
            await asyncio.to_thread(self._executor.stop)
        assert self.failures == []

    async def _run(self) -> None:
        while True:
            while not self._events.empty():
                self.handle(self._events.get())
            due = self.core.next_timer()
            if due is not None and due <= time.monotonic():
                self.handle(TimePassed())
            await asyncio.sleep(0.001)  # events of the executor come from another thread

    def handle(self, event: Event) -> None:
        """Give the core an event and carry out its commands."""
        for command in self.core.handle(event, time.monotonic()):
            self._carry_out(command)

    def _carry_out(self, command: Command) -> None:
        match command:
            case SetCircuits():
                self._executor.apply(command)
            case ReadDevice(device=str() as switch):
                self._executor.read(switch)
            case ReadDevice(device=int() as datapath):
                self._events.put(TableObserved(datapath, frozenset(self._rules.get(datapath, set())), 0))
            case SetForwarding(datapath=datapath):
                for change in command.changes:
                    rules = self._rules.setdefault(datapath, set())
                    rules.difference_update((change.reservation, forward) for forward in change.remove)
                    rules.update((change.reservation, forward) for forward in change.add)
                    self._events.put(StepConfirmed(datapath, change.reservation, change.step, 0.0))

    @property
    def required(self) -> set[Circuit]:
        """The circuits of all reservations."""
        layouts = (reservation.layout for reservation in self.core.reservations)
        return {Circuit(c.input, c.output) for layout in layouts for c in layout.circuits}

    @property
    def is_settled(self) -> bool:
        """True if the switch is there and no step is under way."""
        return not self.core.view.away and all(not r.busy for r in self.core.reservations)

    # -------------------------------------------------------------------------------------------------- requests

    def submit(self, key: str, dice: random.Random) -> None:
        """Submit a request of one rack to one or two others."""
        sender, *others = dice.sample(RACKS, dice.randint(2, 3))
        with contextlib.suppress(RequestError):
            self.handle(RequestSubmitted(multicast(key, f"{sender}h1", [f"{rack}h1" for rack in others])))
            self._keys.append(key)

    def finish(self, dice: random.Random) -> None:
        """Finish a part of a request or, if it has no grant, withdraw the request."""
        if not self._keys:
            return
        key = self._keys.pop(dice.randrange(len(self._keys)))
        try:
            self.handle(FinishRequested((TENANT, key), 0))
        except RequestError:
            with contextlib.suppress(RequestError):
                self.handle(WithdrawRequested((TENANT, key)))

    def release_everything(self) -> None:
        """Release what was quarantined, so that later rounds have a fabric."""
        for element in list(self.core.view.quarantined):
            self.handle(ElementReleased(element))


Inject = Callable[["Rounds"], Awaitable[None]]


@dataclass
class Rounds:
    """Rounds of faults of one switch."""

    bed: SwitchBed
    controller: SwitchController
    dice: random.Random
    counts: Counter[str]
    foreign: set[Circuit]
    number: int = 0

    async def play(self, faults: dict[str, Inject]) -> None:
        """Play one round. Raises AssertionError if switch and core do not agree after it."""
        name = self.dice.choice(sorted(faults))
        self.counts[name] += 1
        self._some_requests()
        if self.dice.random() < 0.7:
            await eventually_async(lambda: self.controller.is_settled, "the circuits are set", SETTLED_SECONDS)
        await faults[name](self)
        self._some_requests()
        await asyncio.sleep(self.dice.random() * FAULT_SECONDS)  # the length of a fault is random
        self._some_requests()
        self._end_faults()
        await self._reconciled(name)
        self.controller.release_everything()

    def _some_requests(self) -> None:
        for _ in range(self.dice.randint(0, 2)):
            self.controller.finish(self.dice)
        for _ in range(self.dice.randint(1, 2)):
            self.number += 1
            self.controller.submit(f"q{self.number}", self.dice)

    def _end_faults(self) -> None:
        fresh = type(self.bed.faults)()
        for key, value in vars(fresh).items():
            setattr(self.bed.faults, key, value)
        self.bed.hardware.changed()

    async def _reconciled(self, fault: str) -> None:
        def audit_begins() -> bool:
            with contextlib.suppress(RequestError):  # the core may be reconciling by itself
                if self.controller.is_settled:
                    self.controller.handle(AuditRequested(dry_run=False))
                    return True
            return False

        def agree() -> bool:
            if not self.controller.is_settled or self.bed.hardware.busy:
                return False
            there, required = set(self.bed.hardware.crossbar.circuits), self.controller.required
            return required <= there and there - required <= self.foreign and there == self.bed.paths.lit

        await eventually_async(audit_begins, f"the switch is back after {fault}", SETTLED_SECONDS)
        try:
            await eventually_async(agree, "they agree", SETTLED_SECONDS)
        except AssertionError:
            there, required = set(self.bed.hardware.crossbar.circuits), self.controller.required
            raise AssertionError(
                f"after {fault}: required but absent {required - there}, unwanted {there - required - self.foreign}, "
                f"not lit {there - self.bed.paths.lit}, lit only {self.bed.paths.lit - there}, "
                f"settled {self.controller.is_settled}"
            ) from None


def _fault(name: str, value: object = True) -> Inject:
    async def inject(rounds: Rounds) -> None:
        setattr(rounds.bed.faults, name, value)

    return inject


async def _none(rounds: Rounds) -> None:
    pass


async def _refuse_a_port(rounds: Rounds) -> None:
    rounds.bed.faults.refused_inputs.add(rounds.dice.randint(1, PORTS))
    rounds.bed.faults.refused_outputs.add(rounds.dice.randint(1, PORTS))


async def _stick(rounds: Rounds) -> None:
    rounds.bed.faults.stuck_inputs.add(rounds.dice.randint(1, PORTS))


async def _kill_a_port(rounds: Rounds) -> None:
    rounds.bed.faults.dead_ports.add(Port("out", rounds.dice.randint(1, PORTS)))
    rounds.bed.hardware.changed()


async def _raise_losses(rounds: Rounds) -> None:
    rounds.bed.faults.extra_loss_db.update(dict.fromkeys(rounds.bed.hardware.crossbar.circuits, 6.0))
    rounds.bed.hardware.changed()


async def _slow(rounds: Rounds) -> None:
    rounds.bed.faults.slow_inputs.update(dict.fromkeys(range(1, PORTS + 1), 0.05))


async def _cut(rounds: Rounds) -> None:
    rounds.bed.cut()


async def _cut_in_mid_batch(rounds: Rounds) -> None:
    rounds.bed.faults.slow_inputs.update(dict.fromkeys(range(1, PORTS + 1), 0.02))
    rounds._some_requests()
    await asyncio.sleep(0.01)  # into the batch, whose mirrors take longer
    rounds.bed.cut()


async def _reboot(rounds: Rounds) -> None:
    await rounds.bed.reboot()
    rounds.foreign &= set(rounds.bed.hardware.crossbar.circuits)


async def _another_writer(rounds: Rounds) -> None:
    used = rounds.bed.hardware.crossbar.circuits
    inputs = set(range(1, PORTS + 1)) - {c.input for c in used}
    outputs = {7, 8} - {c.output for c in used} - {c.output for c in rounds.foreign}
    if inputs and outputs:
        circuit = Circuit(rounds.dice.choice(sorted(inputs)), min(outputs))
        # A change under way may take the port first.
        with contextlib.suppress(Exception):
            await rounds.bed.another_writer(circuit)
            rounds.foreign.add(circuit)


async def _flush(rounds: Rounds) -> None:
    assert rounds.bed.flush is not None
    await rounds.bed.flush()
    rounds.foreign.clear()


FAULTS: dict[str, Inject] = {
    "nothing": _none,
    "refused ports": _refuse_a_port,
    "a stuck mirror": _stick,
    "a dead port": _kill_a_port,
    "raised losses": _raise_losses,
    "slow mirrors": _slow,
    "everything refused": _fault("refuse_all"),
    "silence": _fault("silent"),
    "cut before the answer": _fault("cut_before_answer"),
    "a lost answer": _fault("lose_answer"),
    "late answers": _fault("answer_delay", 0.05),
    "a late list": _fault("late_list", 0.05),
    "a full session table": _fault("max_sessions", 0),
    "a partial bulk": _fault("partial_bulk"),
    "a cut session": _cut,
    "a session cut in mid-batch": _cut_in_mid_batch,
    "a reboot": _reboot,
    "another writer": _another_writer,
}
FLUSH: dict[str, Inject] = {"a flushed database": _flush}


async def play(make_bed: MakeBed, folder: Path, rounds: int, seed: int, counts: Counter[str]) -> None:
    """Play rounds with one switch, and count how often each fault was injected."""
    async with make_bed(folder, ANSWER_SECONDS) as bed:
        controller = SwitchController(bed)
        async with controller.running():
            game = Rounds(bed, controller, random.Random(seed), counts, set())
            for _ in range(rounds):
                await game.play(FAULTS if bed.flush is None else FAULTS | FLUSH)

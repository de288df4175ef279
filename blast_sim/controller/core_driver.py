"""The controller's core on a virtual clock, without the daemon and its devices.

Records are durable at once; optical switches and ToRs have delays (`simulated_devices`). A decision takes its
computation time, during which events are queued; queued events are decided together.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from algorithms.b_matching.budget import StepBudget
from algorithms.scheduling.choosing import choose
from blast_controller.core.controller import Core
from blast_controller.core.model.commands import (
    Command,
    Optimize,
    Publish,
    ReadDevice,
    SetCircuits,
    SetForwarding,
)
from blast_controller.core.model.errors import RequestError
from blast_controller.core.model.events import DecisionTimed, DeviceConnected, Event, Optimized, TimePassed
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.requests import RequestEvent, RequestKey
from blast_sim.base.virtual_clock import VirtualClock
from blast_sim.controller.simulated_devices import SimulatedSwitch, SimulatedTor

OPTIMIZER_STEPS = 300
"""Looks that stand for the optimizer's wall time, so that runs repeat bit for bit."""

Compute = Callable[[float], float]
"""Measured seconds of a decision -> seconds that it takes on the virtual clock."""


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds from command to confirmation: of an optical switch, of a ToR; `rpc` from a client to the core."""

    optical: float
    forwarding: float
    rpc: float = 0.0


@dataclass(frozen=True, slots=True)
class Notification:
    """A message of the core to a client; `decided` is the time of the decision, from which leases count."""

    request: RequestKey
    event: RequestEvent
    decided: float


@dataclass(frozen=True, slots=True)
class EventRefused:
    """An application's event that the core has refused."""

    event: Event
    error: RequestError


class CoreDriver:
    """Feeds events to a core, and executes its commands. `listener` receives all messages to clients."""

    def __init__(
        self,
        core: Core,
        clock: VirtualClock,
        delays: Delays,
        compute: Compute,
        listener: Callable[[Notification | EventRefused], None],
    ) -> None:
        self.core = core
        self.decisions: list[float] = []
        self._clock = clock
        self._delays = delays
        self._compute = compute
        self._listener = listener
        self._inbox: list[Event] = []
        self._busy_until = 0.0
        self._wakes_at: float | None = None
        self._ticks_at: float | None = None
        self._switches = {
            name: SimulatedSwitch(name, clock, delays.optical, self._receive) for name in core.fabric.switches
        }
        racks = core.fabric.racks.values()
        self._tors = {
            rack.datapath: SimulatedTor(rack.datapath, clock, delays.forwarding, self._receive) for rack in racks
        }
        self._carry_out(core.restore((), clock.now), clock.now)
        devices: list[Device] = [*self._switches, *self._tors]
        for device in devices:
            core.take(DeviceConnected(device), clock.now)
        self._carry_out(core.conclude(clock.now), clock.now)
        self._appoint_tick()

    def submit(self, event: Event) -> None:
        """Submit an application's event, which arrives after the delay of the call."""
        if self._delays.rpc:
            self._clock.at(self._clock.now + self._delays.rpc, lambda: self._receive(event))
        else:
            self._receive(event)

    def _receive(self, event: Event) -> None:
        self._inbox.append(event)
        if self._wakes_at is None:
            self._wakes_at = max(self._clock.now, self._busy_until)
            # All that comes at one moment is decided on together.
            self._clock.at(self._wakes_at, self._decide, late=True)

    def _decide(self) -> None:
        now, self._wakes_at = self._clock.now, None
        events, self._inbox = self._inbox, []
        began = time.thread_time()
        refused = [EventRefused(event, error) for event in events if (error := self._take(event)) is not None]
        commands = self.core.conclude(now)
        taken = self._compute(time.thread_time() - began)
        if any(isinstance(command, SetForwarding) for command in commands):
            self.decisions.append(taken)
            # Nothing follows from how long it took.
            self.core.take(DecisionTimed(taken), now)
        else:
            taken = 0.0
        self._busy_until = now + taken
        for refusal in refused:
            self._listener(refusal)
        if taken:
            self._clock.at(now + taken, partial(self._carry_out, commands, now))
        else:
            self._carry_out(commands, now)
        self._appoint_tick()

    def _take(self, event: Event) -> RequestError | None:
        try:
            self.core.take(event, self._clock.now)
        except RequestError as error:
            return error
        return None

    def _appoint_tick(self) -> None:
        due = self.core.next_timer()
        if due is not None and (self._ticks_at is None or due < self._ticks_at):
            # A tick handles only some of very many simultaneous deadlines; the others are late already.
            due = max(due, self._clock.now)
            self._ticks_at = due
            self._clock.at(due, partial(self._tick, due), late=True)

    def _tick(self, appointed: float) -> None:
        if self._ticks_at == appointed:
            self._ticks_at = None
            self._receive(TimePassed())

    def _carry_out(self, commands: list[Command], decided: float) -> None:
        for command in commands:
            match command:
                case SetCircuits():
                    self._switches[command.switch].do(command)
                case SetForwarding():
                    self._tors[command.datapath].do(command)
                case ReadDevice(str() as switch):
                    self._switches[switch].do(command)
                case ReadDevice(int() as datapath):
                    self._tors[datapath].do(command)
                case Publish():
                    self._listener(Notification(command.request, command.event, decided))
                case Optimize():
                    self._clock.at(self._clock.now + command.seconds, partial(self._optimize, command))

    def _optimize(self, question: Optimize) -> None:
        dice = random.Random(question.revision)
        self._receive(Optimized(question.revision, choose(question.contention, StepBudget(OPTIMIZER_STEPS), dice)))

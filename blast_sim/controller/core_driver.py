"""The controller's own core on a virtual clock: what the daemon and its devices do in a machine room, without them.

Records are durable at once; optical switches and ToRs take their time (`simulated_devices`). A decision takes its
computation time, in which the core hears nothing; what comes then is decided on together.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from algorithms.b_matching.budget import Steps
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
from blast_controller.core.model.events import DecisionTimed, DeviceUp, Event, Optimized, Tick
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
class Told:
    """What the core tells a client; `decided` is when it was decided, from which leases count."""

    request: RequestKey
    event: RequestEvent
    decided: float


@dataclass(frozen=True, slots=True)
class Refused:
    """An application's event that the core has refused."""

    event: Event
    error: RequestError


class CoreDriver:
    """Gives a core its events, and carries its commands out. `listener` hears all that clients would."""

    def __init__(
        self,
        core: Core,
        clock: VirtualClock,
        delays: Delays,
        compute: Compute,
        listener: Callable[[Told | Refused], None],
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
            name: SimulatedSwitch(name, clock, delays.optical, self._hear) for name in core.fabric.switches
        }
        racks = core.fabric.racks.values()
        self._tors = {
            rack.datapath: SimulatedTor(rack.datapath, clock, delays.forwarding, self._hear) for rack in racks
        }
        self._carry_out(core.restore((), clock.now), clock.now)
        devices: list[Device] = [*self._switches, *self._tors]
        for device in devices:
            core.take(DeviceUp(device), clock.now)
        self._carry_out(core.conclude(clock.now), clock.now)
        self._appoint_tick()

    def tell(self, event: Event) -> None:
        """An application tells the core something; it arrives after the delay of the call."""
        if self._delays.rpc:
            self._clock.at(self._clock.now + self._delays.rpc, lambda: self._hear(event))
        else:
            self._hear(event)

    def _hear(self, event: Event) -> None:
        self._inbox.append(event)
        if self._wakes_at is None:
            self._wakes_at = max(self._clock.now, self._busy_until)
            # All that comes at one moment is decided on together.
            self._clock.at(self._wakes_at, self._decide, late=True)

    def _decide(self) -> None:
        now, self._wakes_at = self._clock.now, None
        events, self._inbox = self._inbox, []
        began = time.thread_time()
        refused = [Refused(event, error) for event in events if (error := self._take(event)) is not None]
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
        wanted = self.core.next_timer()
        if wanted is not None and (self._ticks_at is None or wanted < self._ticks_at):
            # Of very many deadlines at one moment a tick handles some, and the others are late already.
            wanted = max(wanted, self._clock.now)
            self._ticks_at = wanted
            self._clock.at(wanted, partial(self._tick, wanted), late=True)

    def _tick(self, appointed: float) -> None:
        if self._ticks_at == appointed:
            self._ticks_at = None
            self._hear(Tick())

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
                    self._listener(Told(command.request, command.event, decided))
                case Optimize():
                    self._clock.at(self._clock.now + command.seconds, partial(self._optimize, command))

    def _optimize(self, question: Optimize) -> None:
        dice = random.Random(question.revision)
        self._hear(Optimized(question.revision, choose(question.contention, Steps(OPTIMIZER_STEPS), dice)))

"""Claim: with 10,000 pending parts, each event of a client or device occupies the deciding thread for at most 50 ms.

A fabric of 1,000 racks has 10,000 pending parts, for every policy, with and without a power budget, and handles 1,000
random events: submissions, finishes, withdrawals, progress reports, extensions, a client that disappears, ends of
leases, answers of devices, a ToR that disconnects and returns. The output has the processor time of each kind, median,
99th percentile and largest, that of a loop in the same run as a measure of the speed of the machine, and the peak
memory of the process. With several switches, each is that of a pod, and requests stay within their pod.

    .venv/bin/python benchmarks/control_plane/largest_event.py
    .venv/bin/python benchmarks/control_plane/largest_event.py --racks 10000 --switches 25 --policies srpt-lease
    .venv/bin/python benchmarks/control_plane/largest_event.py --racks 100 --pending 500 --events 100 --policies paper
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

from algorithms.scheduling import POLICIES
from benchmarks import machine
from blast_controller.core.model.commands import Command
from blast_controller.core.model.errors import RequestError
from blast_controller.core.model.events import (
    ClientsVanished,
    Event,
    ExtendRequested,
    FinishRequested,
    ProgressReported,
    RequestSubmitted,
    TimePassed,
    WithdrawRequested,
)
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import DatapathId, Device
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension, MulticastRequest, RequestKey
from blast_controller.core.model.settings import CoreSettings
from blast_controller.process.garbage import GarbageCollection
from tests.support.controller.core import World, make_fabric
from tests.support.controller.core_power import with_optics

CLIENTS = 50
LIVE = (PartState.PENDING, PartState.CONFIGURING, PartState.ACTIVE)
LOOP = 200_000


class Measured(World):
    """A world that, while `timing` is set, records the time of each event in the core by `kind`."""

    kind = "?"
    timing = False

    def __init__(self, fabric: Fabric, settings: CoreSettings) -> None:
        super().__init__(fabric, settings)
        self.spent: defaultdict[str, list[float]] = defaultdict(list)

    def handle(self, event: Event) -> list[Command]:
        """Pass an event to the core and record the time."""
        began = time.thread_time()
        try:
            self.core.take(event, self.now)
            commands = self.core.conclude(self.now)
        finally:
            if self.timing:
                self.spent[self.kind].append(time.thread_time() - began)
        return self._carry_out(commands)


class Crowd:
    """Random clients that overload the fabric, and random devices; identical in every run."""

    def __init__(self, world: Measured) -> None:
        self._world, racks = world, len(world.fabric.racks)
        self._racks, self._pods = racks, len(world.fabric.switches)
        self._chance = random.Random(7)
        self._numbers = count()
        self._live: list[RequestKey] = []
        self._kinds: dict[str, Callable[[], Event | None]] = {
            "submit": self._ask,
            "finish": lambda: FinishRequested(self._one(), 0),
            "withdraw": lambda: WithdrawRequested(self._chance.choice(self._live)),
            "progress": lambda: ProgressReported(self._one(), 0, 10**6),
            "change": lambda: ExtendRequested(self._chance.choice(self._live), Extension(add_seconds=1.0)),
            "lease ends": TimePassed,
            "client leaves": self._leave,
            "switch goes": lambda: self._lose(self._chance.choice(world.fabric.switches)),
            "ToR goes": lambda: self._lose(DatapathId(self._chance.randint(1, racks))),
            "devices come": self._come_back,
        }

    def fill(self, pending: int) -> None:
        """Submit requests until `pending` of them are pending."""
        world = self._world
        while world.core.pending_count < pending:
            with suppress(RequestError):
                world.handle(self._ask())
            if world.core.pending_count % 100 == 0:
                world.settle()
        world.settle()

    def step(self) -> None:
        """Handle one random event and all answers of devices to its commands."""
        world, known = self._world, self._world.core.requests
        world.now += 0.02
        self._live = [key for key in self._live if key in known and known[key].state in LIVE]
        world.kind = self._chance.choice(list(self._kinds))
        with suppress(RequestError):
            asked = self._kinds[world.kind]()
            if asked is not None:
                world.handle(asked)
        world.deliver()
        world.kind = "answer"
        world.settle()

    def _one(self) -> RequestKey:
        """Return a live request, preferably an active one."""
        known = self._world.core.requests
        active = [key for key in self._live if known[key].state is PartState.ACTIVE]
        return self._chance.choice(active or self._live)

    def _ask(self) -> Event:
        chance, client = self._chance, self._chance.randrange(CLIENTS)
        size = chance.choice([2, 2, 3, 4, 7])
        pod = range(1 + chance.randrange(self._pods), self._racks + 1, self._pods)
        sender, *receivers = (f"r{number}h1" for number in chance.sample(pod, size))
        key, volume = f"{client}-{next(self._numbers)}", 10 ** chance.randint(7, 10)
        request = MulticastRequest(key, f"t{client}", sender, tuple(receivers), volume)
        self._live.append(request.id)
        return RequestSubmitted(request, attached=True)

    def _leave(self) -> Event:
        tenant = f"t{self._chance.randrange(CLIENTS)}"
        return ClientsVanished(tuple(key for key in self._live if key[0] == tenant))

    def _lose(self, device: Device) -> None:
        if self._world.device(device).up:
            self._world.lose(device)

    def _come_back(self) -> None:
        for device in self._world.devices:
            if not self._world.device(device).up:
                self._world.come_back(device)


def in_pods(fabric: Fabric) -> Fabric:
    """Return the fabric with each rack on one switch only, dealt in turn."""
    racks = {
        name: replace(rack, optical_ports=(rack.optical_ports[number % len(fabric.switches)],))
        for number, (name, rack) in enumerate(fabric.racks.items())
    }
    return replace(fabric, racks=racks)


def fabric_of(racks: int, switches: int, budget: bool) -> Fabric:
    """Return a fabric with three splitters for 16 racks; with a power budget, every fifth rack is weak."""
    fabric = in_pods(make_fabric(racks, [4] * (racks // 8) + [8] * (racks // 16), switches=switches))
    return with_optics(fabric, {f"r{number}": 2.5 for number in range(1, racks, 5)}) if budget else fabric


def measure(fabric: Fabric, policy: str, pending: int, events: int) -> dict[str, Any]:
    """Return the seconds of one configuration by kind of event: median, 99th percentile, largest and number."""
    world = Measured(
        fabric, CoreSettings(policy=policy, max_pending_per_tenant=2 * pending, keep_warm=5.0, warm_reserve=0.1)
    )
    world.connect_all()
    crowd = Crowd(world)
    crowd.fill(pending)
    world.timing = True
    for _ in range(events):
        crowd.step()
    spent = sorted(world.spent.items())
    found = {kind: summary(times) for kind, times in [*spent, ("all", [one for _, times in spent for one in times])]}
    return {"policy": policy, "waiting": world.core.pending_count, "kinds": found}


def summary(times: list[float]) -> tuple[float, float, float, int]:
    """Return the median, the 99th percentile, the largest and the number of some times."""
    in_order = sorted(times)
    return statistics.median(times), in_order[(99 * len(times) - 1) // 100], in_order[-1], len(times)


def peak_megabytes() -> float:
    """Return the largest resident memory of the process until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def loop_seconds() -> float:
    """Return the processor seconds of a loop of the interpreter."""
    began = time.thread_time()
    for _ in range(LOOP):
        pass
    return time.thread_time() - began


def main() -> None:
    """Measure and print."""
    parser = machine.parser(__doc__)
    parser.add_argument("--racks", type=int, default=1000, help="number of racks (default: 1000)")
    parser.add_argument("--switches", type=int, default=1, help="number of optical switches (default: 1)")
    parser.add_argument("--pending", type=int, default=10_000, help="number of pending parts (default: 10000)")
    parser.add_argument("--events", type=int, default=1000, help="number of random events (default: 1000)")
    parser.add_argument("--policies", default=",".join(POLICIES), help="policies (default: %(default)s)")
    options = parser.parse_args()
    # As in the controller: the garbage collector does not scan long-lived objects repeatedly.
    GarbageCollection().start()
    print(machine.describe(), f"a loop of {LOOP:,}: {loop_seconds() * 1e3:.1f} ms", sep="\n", flush=True)
    for policy in options.policies.split(","):
        for budget in (False, True):
            fabric = fabric_of(options.racks, options.switches, budget)
            found = measure(fabric, policy, options.pending, options.events)
            if options.json:
                print(json.dumps(found | {"budget": budget}), flush=True)
                continue
            setting = f"{policy}, power budget {'on' if budget else 'off'}"
            print(f"{setting}, {found['waiting']} pending, peak memory {peak_megabytes():.0f} MB")
            for kind, (median, p99, worst, number) in found["kinds"].items():
                times = f"median {median * 1e3:7.2f} ms  p99 {p99 * 1e3:7.2f} ms  largest {worst * 1e3:7.2f} ms"
                print(f"  {kind:14} {number:6} {times}", flush=True)


if __name__ == "__main__":
    main()

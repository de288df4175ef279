"""Claim: with 10,000 pending parts, each event of a client or device occupies the deciding thread for at most 50 ms.

A fabric of 1,000 racks has 10,000 pending parts, for every policy, with and without a power budget, and handles 1,000
random events: submissions, finishes, withdrawals, progress reports, extensions, a client that disappears, ends of
leases, answers of devices, a ToR that disconnects and returns. The output has the processor time of each kind, median
and largest, and that of a loop in the same run as a measure of the speed of the machine.

    .venv/bin/python benchmarks/largest_event.py
    .venv/bin/python benchmarks/largest_event.py --racks 100 --pending 500 --events 100 --policies paper
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import machine

sys.path.append(str(Path(__file__).resolve().parents[1]))

from algorithms.scheduling import POLICIES
from blast_controller.core.model.commands import Command
from blast_controller.core.model.errors import RequestError
from blast_controller.core.model.events import (
    ClientsVanished,
    Event,
    ExtensionAsked,
    FinishAsked,
    ProgressReported,
    RequestSubmitted,
    Tick,
    WithdrawAsked,
)
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import DatapathId, Device, SwitchId
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension, MulticastRequest, RequestKey
from blast_controller.core.model.settings import CoreSettings
from blast_controller.garbage import GarbageCollection
from tests.support.core import World, make_fabric
from tests.support.core_power import with_optics

CLIENTS = 50
SWITCH = SwitchId("ocs1")
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

    def __init__(self, world: Measured, racks: int) -> None:
        self._world, self._racks = world, racks
        self._chance = random.Random(7)
        self._numbers = count()
        self._live: list[RequestKey] = []
        self._kinds: dict[str, Callable[[], Event | None]] = {
            "submit": self._ask,
            "finish": lambda: FinishAsked(self._one(), 0),
            "withdraw": lambda: WithdrawAsked(self._chance.choice(self._live)),
            "progress": lambda: ProgressReported(self._one(), 0, 10**6),
            "change": lambda: ExtensionAsked(self._chance.choice(self._live), Extension(add_seconds=1.0)),
            "lease ends": Tick,
            "client leaves": self._leave,
            "switch goes": lambda: self._lose(SWITCH),
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
        sender, *receivers = (f"r{number}h1" for number in chance.sample(range(1, self._racks + 1), size))
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


def measure(policy: str, budget: bool, racks: int, pending: int, events: int) -> dict[str, Any]:
    """Return the seconds of one configuration by kind of event: median, largest and number."""
    fabric = make_fabric(racks, [4] * (racks // 8) + [8] * (racks // 16))
    if budget:
        fabric = with_optics(fabric, {f"r{number}": 2.5 for number in range(1, racks, 5)})
    world = Measured(
        fabric, CoreSettings(policy=policy, max_pending_per_tenant=2 * pending, keep_warm=5.0, warm_reserve=0.1)
    )
    world.connect_all()
    crowd = Crowd(world, racks)
    crowd.fill(pending)
    world.timing = True
    for _ in range(events):
        crowd.step()
    spent = sorted(world.spent.items())
    found = {kind: (statistics.median(times), max(times), len(times)) for kind, times in spent}
    return {"policy": policy, "budget": budget, "waiting": world.core.pending_count, "kinds": found}


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
    parser.add_argument("--pending", type=int, default=10_000, help="number of pending parts (default: 10000)")
    parser.add_argument("--events", type=int, default=1000, help="number of random events (default: 1000)")
    parser.add_argument("--policies", default=",".join(POLICIES), help="policies (default: %(default)s)")
    options = parser.parse_args()
    # As in the controller: the garbage collector does not scan long-lived objects repeatedly.
    GarbageCollection().start()
    print(machine.describe(), f"a loop of {LOOP:,}: {loop_seconds() * 1e3:.1f} ms", sep="\n", flush=True)
    for policy in options.policies.split(","):
        for budget in (False, True):
            found = measure(policy, budget, options.racks, options.pending, options.events)
            if options.json:
                print(json.dumps(found), flush=True)
                continue
            largest = max(worst for _, worst, _ in found["kinds"].values())
            print(
                f"{policy}, power budget {'on' if budget else 'off'}, {found['waiting']} pending: largest "
                f"{largest * 1e3:.1f} ms"
            )
            for kind, (median, worst, number) in found["kinds"].items():
                print(
                    f"  {kind:14} {number:6} median {median * 1e3:7.2f} ms  largest {worst * 1e3:7.2f} ms", flush=True
                )


if __name__ == "__main__":
    main()

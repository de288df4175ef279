"""How long the deciding thread is busy with any one event of a client or a device, with thousands of parts that wait.

`python -m benchmarks.largest_event` makes a fabric of 1,000 racks in which 10,000 parts wait, for every policy and with
and without a power budget, and gives the core 1,000 events such as clients and devices cause: submissions, finishes,
withdrawals, progress, changes, a client that vanishes, ends of leases, answers of devices, a ToR that goes and comes
back. Told is the processor time of each kind: median and largest, beside a loop of the same run that says how fast the
machine is. Claim: the largest takes 50 ms at most on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections import defaultdict
from contextlib import suppress

from algorithms.scheduling import POLICIES
from benchmarks.machine import describe
from blast_controller.core.model.errors import RequestError
from blast_controller.core.model.events import (
    ClientsVanished,
    Event,
    ExtensionAsked,
    FinishAsked,
    ProgressTold,
    RequestSubmitted,
    Tick,
    WithdrawAsked,
)
from blast_controller.core.model.identifiers import Device, SwitchId
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
    """A world that times each event in the core; `kind` says of which sort what comes next is."""

    kind = "?"
    timing = False

    def handle(self, event: Event) -> list:
        """Give the core an event, timed."""
        began = time.process_time()
        try:
            self.core.take(event, self.now)
            commands = self.core.conclude(self.now)
        finally:
            if self.timing:
                spent[self.kind].append(time.process_time() - began)
        return self._carry_out(commands)


spent: defaultdict[str, list[float]] = defaultdict(list)


def measure(policy: str, budget: bool, racks: int, pending: int, events: int) -> dict[str, object]:
    """Seconds of one configuration, by kind."""
    chance = random.Random(7)
    fabric = make_fabric(racks, [4] * (racks // 8) + [8] * (racks // 16))
    weak = {f"r{number}": 2.5 for number in range(1, racks, 5)}
    fabric = with_optics(fabric, weak) if budget else fabric
    world = Measured(fabric, CoreSettings(policy=policy, most_pending=2 * pending, keep_warm=5.0, warm_reserve=0.1))
    world.connect_all()
    live: list[RequestKey] = []
    numbers = iter(range(10**9))

    def ask() -> Event:
        client = chance.randrange(CLIENTS)
        count = chance.choice([2, 2, 3, 4, 7])
        sender, *receivers = (f"r{number}h1" for number in chance.sample(range(1, racks + 1), count))
        wanted = MulticastRequest(
            f"{client}-{next(numbers)}", f"t{client}", sender, tuple(receivers), 10 ** chance.randint(7, 10)
        )
        live.append(wanted.id)
        return RequestSubmitted(wanted, attached=True)

    def lose(device: Device) -> None:
        if world.device(device).up:
            world.lose(device)

    def come_back() -> None:
        for device in world.devices:
            if not world.device(device).up:
                world.come_back(device)

    def leave() -> Event:
        gone = f"t{chance.randrange(CLIENTS)}"
        return ClientsVanished(tuple(key for key in live if key[0] == gone))

    while world.core.pending_count < pending:
        with suppress(RequestError):
            world.handle(ask())
        if world.core.pending_count % 100 == 0:
            world.settle()
    world.settle()
    spent.clear()
    world.timing = True
    for step in range(events):
        world.now += 0.02
        known = world.core.requests
        live[:] = [key for key in live if key in known and known[key].state in LIVE]
        active = [key for key in live if known[key].state is PartState.ACTIVE]
        one = chance.choice(active or live)
        kind, event = chance.choice(
            [
                ("submit", ask),
                ("finish", lambda one=one: FinishAsked(one, 0)),
                ("withdraw", lambda: WithdrawAsked(chance.choice(live))),
                ("progress", lambda one=one: ProgressTold(one, 0, 10**6)),
                ("change", lambda: ExtensionAsked(chance.choice(live), Extension(add_seconds=1.0))),
                ("lease ends", Tick),
                ("client leaves", leave),
                ("switch goes", lambda: lose(SWITCH)),
                ("devices come", come_back),
                ("ToR goes", lambda tor=1 + step % racks: lose(tor)),
            ]
        )
        world.kind = kind
        try:
            asked = event()
            if asked is not None:
                world.handle(asked)
            world.deliver()
        except RequestError:
            continue
        world.kind = "answer"
        world.settle()
    found = {kind: (statistics.median(times), max(times), len(times)) for kind, times in sorted(spent.items())}
    waiting = world.core.pending_count
    return {"policy": policy, "budget": budget, "waiting": waiting, "kinds": found}


def loop_seconds() -> float:
    """Processor seconds of a loop of the interpreter."""
    began = time.process_time()
    for _ in range(LOOP):
        pass
    return time.process_time() - began


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--racks", type=int, default=1000)
    parser.add_argument("--pending", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    # As in the daemon: what lives is not looked through again and again.
    GarbageCollection().start()
    print(describe(), f"a loop of {LOOP:,}: {loop_seconds() * 1e3:.1f} ms", sep="\n", flush=True)
    for policy in options.policies.split(","):
        for budget in (False, True):
            found = measure(policy, budget, options.racks, options.pending, options.events)
            if options.json:
                print(json.dumps(found), flush=True)
                continue
            largest = max(worst for _, worst, _ in found["kinds"].values())  # type: ignore[attr-defined]
            print(
                f"{policy}, power budget {'on' if budget else 'off'}, {found['waiting']} wait: largest "
                f"{largest * 1e3:.1f} ms"
            )
            for kind, (median, worst, count) in found["kinds"].items():  # type: ignore[attr-defined]
                print(f"  {kind:14} {count:6} median {median * 1e3:7.2f} ms  largest {worst * 1e3:7.2f} ms", flush=True)


if __name__ == "__main__":
    main()

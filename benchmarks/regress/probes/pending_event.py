"""CPU time of one event of the controller's core while 10,000 requests are pending, in milliseconds.

Run by the interpreter of the commit under test, in its worktree: no script of the older commits measures this.
On 1,000 racks with 190 splitters, one active request at a time is finished, and a new one is submitted. Both are timed
in the core alone, decision included; the emulated devices answer outside the measured time.

    {python} pending_event.py --model blast_controller.core.model --finish FinishAsked
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

RACKS, SPLITTERS = 1000, [4] * 127 + [8] * 63
TENANTS = 50
GROUP_SIZES = (2, 2, 3, 4, 7)


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, metavar="PACKAGE", help="package of the core's events and requests")
    parser.add_argument("--finish", required=True, metavar="CLASS", help="event that finishes a request")
    parser.add_argument("--pending", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=200, help="of each of the two kinds")
    options = parser.parse_args()
    sys.path.insert(0, str(Path.cwd()))
    events = import_module(f"{options.model}.events")
    moved = Path("tests/support/controller").is_dir()
    core = import_module("tests.support.controller.core" if moved else "tests.support.core")
    world = core.ready_world(core.make_fabric(RACKS, SPLITTERS))
    requests = _Requests(import_module(f"{options.model}.requests").MulticastRequest)
    while world.core.pending_count < options.pending:
        # One scheduling pass for many submissions: filling the queue is not measured.
        for _ in range(250):
            world.core.take(events.RequestSubmitted(requests.draw()), world.now)
        world.conclude()
        world.settle()
    gc.collect()
    gc.freeze()
    seconds = 0.0
    for _ in range(options.events):
        known = world.core.requests.items()
        active = next(key for key, request in known if request.parts[0].state.name == "ACTIVE")
        for event in (getattr(events, options.finish)(active, 0), events.RequestSubmitted(requests.draw())):
            seconds += _timed(world, event)
            world.settle()
    print(json.dumps({"milliseconds": seconds * 1000 / (2 * options.events), "pending": world.core.pending_count}))


class _Requests:
    """Requests of random groups from 50 tenants, identical in every run."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._random = random.Random(7)
        self._count = 0

    def draw(self) -> Any:
        """Return a new request."""
        self._count += 1
        racks = self._random.sample(range(1, RACKS + 1), self._random.choice(GROUP_SIZES))
        sender, *receivers = (f"r{rack}h1" for rack in racks)
        size: int = 10 ** self._random.randint(7, 10)
        return self._request(
            f"request-{self._count}", f"tenant-{self._count % TENANTS}", sender, tuple(receivers), size
        )


def _timed(world: Any, event: object) -> float:
    """Pass an event to the core, carry out its commands, and return the core's CPU seconds."""
    began = time.thread_time()
    world.core.take(event, world.now)
    commands = world.core.conclude(world.now)
    seconds = time.thread_time() - began
    world._carry_out(commands)
    return seconds


if __name__ == "__main__":
    main()

"""Claim: 2,500 waits that end in one millisecond keep nobody else waiting for longer than 50 ms of the core's work.

One controller's core, handler and journal (a file), devices that confirm at once; no network. All light is taken, and
2,500 calls of `request` wait. They end because their client has gone (after the grace), by the time-out of the calls,
or by the patience of the requests, while somebody else has a call done again and again: the longest pause between two
of those is the longest turn of the core's thread. Beside it stand what of that turn was spent waiting for the disk, its
CPU time, and a loop in pure Python that was timed in the same run: where that takes longer, turns do, too.

    .venv/bin/python benchmarks/starving_clients.py --waits 2500 --policy srpt-lease
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path

from algorithms.scheduling import DEFAULT, POLICIES
from blast_api import ttypes
from blast_controller.core.controller import Core
from blast_controller.core.model.commands import SetCircuits, SetForwarding
from blast_controller.core.model.events import DeviceUp, StepConfirmed
from blast_controller.core.model.fabric import Fabric, Host, OpticalPort, Rack, Splitter
from blast_controller.core.model.settings import CoreSettings
from blast_controller.garbage import COLLECT_AFTER
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.rates import Rate
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.methods import ROLES
from blast_controller.runtime.runtime import Runtime, Turn
from blast_controller.store.sqlite import SqliteStore

BAR_MS = 50.0
RACKS, HOSTS, SPLITTERS, WAYS = 64, 20, 8, 8
LOOP = 1_000_000
GRACE = 1.0
SECONDS_TO_ASK = 60.0
PATIENCE = 300.0
FIRST = Connection(1, "192.0.2.1:1")


@dataclass(frozen=True)
class Ending:
    """How it went when all waits ended together: the turn with most work, and how long all of it took."""

    how: str
    longest_ms: float
    of_that_disk_ms: float
    of_that_cpu_ms: float
    all_s: float

    @property
    def work_ms(self) -> float:
        """What of the longest turn was not waiting for the disk."""
        return self.longest_ms - self.of_that_disk_ms


class Devices:
    """Both drivers: every step is confirmed at once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def apply(self, command: SetCircuits | SetForwarding) -> None:
        """Confirm."""
        device = command.switch if isinstance(command, SetCircuits) else command.datapath
        for change in command.changes:
            self._runtime.post(StepConfirmed(device, change.reservation, change.step, 0.001))

    def read(self, device: str | int) -> None:
        """Nobody asks here."""

    def look(self, datapath: int) -> None:
        """Nobody asks here."""

    def probe(self, datapath: int, port: int, payload: bytes) -> None:
        """Nobody asks here."""


def main() -> None:
    """Measure and print, beside the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waits", type=int, default=2500)
    parser.add_argument("--policy", choices=sorted(POLICIES), default=DEFAULT)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    endings = [measure(how, args.waits, args.policy) for how in ("left", "timed out", "out of patience")]
    loop = timed_loop()
    if args.json:
        print(json.dumps({"loop_ms": loop, "endings": [asdict(ending) for ending in endings]}))
    else:
        print(f"{args.waits} waits that end together, policy {args.policy}; a loop of {LOOP:,} steps: {loop:.1f} ms")
        for ending in endings:
            print(
                f"{ending.how:16s} longest turn {ending.work_ms:5.1f} ms "
                f"(bar {BAR_MS:.0f}: {'kept' if ending.work_ms <= BAR_MS else 'MISSED'}), "
                f"CPU {ending.of_that_cpu_ms:.1f} ms, disk {ending.of_that_disk_ms:.1f} ms; "
                f"all over in {ending.all_s:.2f} s"
            )


def measure(how: str, waits: int, policy: str) -> Ending:
    """Let `waits` calls end in one of the three ways."""
    fabric = build_fabric()
    failures: list[BaseException] = []
    settings = CoreSettings(policy=policy, orphan_grace=GRACE, most_pending=waits + SPLITTERS + RACKS)
    with tempfile.TemporaryDirectory(prefix="blast-benchmark-") as folder:
        commits: list[float] = []
        store = SqliteStore(Path(folder) / "journal.sqlite", on_commit=commits.append)
        loaded = store.open()
        runtime = Runtime(Core(fabric, settings), store, failures.append)
        devices = Devices(runtime)
        runtime.start(devices, devices, loaded)
        for switch in fabric.switches:
            runtime.post(DeviceUp(switch))
        for rack in fabric.racks.values():
            runtime.post(DeviceUp(rack.datapath))
        gate = Gate(OPEN_POLICY, ROLES, Rate(per_second=1e9, burst=10**9))
        handler = BlastHandler(runtime, "none", lambda after, limit: (), gate)
        try:
            return _end_together(how, Stage(runtime, handler, fabric, commits), waits)
        finally:
            runtime.stop()
            store.close()
            if failures:
                raise failures[0]


@dataclass(frozen=True)
class Stage:
    """A controller, its fabric, and how long each of its latest commits waited for the disk."""

    runtime: Runtime
    handler: BlastHandler
    fabric: Fabric
    commits: list[float]


def _end_together(how: str, stage: Stage, waits: int) -> Ending:
    runtime, handler = stage.runtime, stage.handler
    draw, hosts = random.Random(1), sorted(stage.fabric.hosts)
    for number in range(RACKS):
        # Whatever has any light has it for long.
        handler.submit(FIRST, _request(f"first {number}", draw.sample(hosts, 6), 10**14)).result(PATIENCE)
    asked = time.monotonic()
    end = asked + SECONDS_TO_ASK * waits / 2500 / 6
    client = Connection(2, "192.0.2.2:1")
    futures = []
    for number in range(waits):
        left = int((end - time.monotonic()) * 1000)
        wanted = _request(f"k{number}", draw.sample(hosts, 6), 10**14)
        if how == "out of patience":
            wanted.patienceMs = left
        futures.append(handler.request(client, wanted, left if how == "timed out" else 10**7))
    runtime.call(lambda turn: None).result(PATIENCE)
    waiting = [future for future in futures if not future.done()]
    probe = Probe(stage, lambda: runtime.core.pending_count <= RACKS if how == "left" else _all_done(waiting))
    if how == "left":
        for future in futures:
            future.cancel()
        handler.disconnected(client)
    else:
        time.sleep(max(0.0, end - time.monotonic() - 0.1))
    # As the daemon does: looking through everything for garbage is no part of a turn.
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    started = time.monotonic()
    probe.start()
    longest, disk, cpu = probe.over.result(PATIENCE)
    return Ending(how, 1000 * longest, 1000 * disk, 1000 * cpu, time.monotonic() - started)


def _all_done(futures: list[Future[ttypes.Grant]]) -> bool:
    while futures and futures[-1].done():
        futures.pop()
    return not futures


class Probe:
    """Somebody else, who has a call done again and again until all is over."""

    def __init__(self, stage: Stage, is_over: Callable[[], bool]) -> None:
        self.over: Future[tuple[float, float, float]] = Future()
        self._runtime = stage.runtime
        self._commits = stage.commits
        self._is_over = is_over
        self._longest = (0.0, 0.0, 0.0)
        self._last = (0.0, 0.0)

    def start(self) -> None:
        """Begin."""
        self._runtime.call(self._begin)

    def _begin(self, turn: Turn) -> None:
        self._last = (time.monotonic(), time.thread_time())
        self._commits.clear()
        self._runtime.call(self._again)

    def _again(self, turn: Turn) -> None:
        now = (time.monotonic(), time.thread_time())
        found = (now[0] - self._last[0], sum(self._commits), now[1] - self._last[1])
        self._longest = max(self._longest, found, key=lambda pause: pause[0] - pause[1])
        self._last = now
        self._commits.clear()
        if self._is_over():
            self.over.set_result(self._longest)
        else:
            # From another turn than this one: as a client would, after its answer.
            self._runtime.call(lambda turn: None).add_done_callback(lambda done: self._runtime.call(self._again))


def timed_loop() -> float:
    """Milliseconds that a loop in pure Python takes, the least of five."""
    times = []
    for _ in range(5):
        started = time.perf_counter()
        total = 0
        for number in range(LOOP):
            total += number & 7
        times.append(1000 * (time.perf_counter() - started))
    return min(times)


def build_fabric() -> Fabric:
    """One optical switch; each rack has one port, and there are splitters for a few groups."""
    racks = {f"r{n}": Rack(f"r{n}", n, (OpticalPort(f"r{n}", 50, "ocs", n, n),)) for n in range(1, RACKS + 1)}
    hosts = {
        f"r{n}h{m}": Host(f"r{n}h{m}", f"r{n}", m, f"10.{n}.0.{m}")
        for n in range(1, RACKS + 1)
        for m in range(1, HOSTS + 1)
    }
    splitters = {
        f"s{n}": Splitter(f"s{n}", "ocs", RACKS + 1 + n, tuple(range(RACKS + 1 + n * WAYS, RACKS + 1 + (n + 1) * WAYS)))
        for n in range(SPLITTERS)
    }
    return Fabric(racks, hosts, splitters, ("ocs",), 10e9)


def _request(key: str, hosts: list[str], size: int) -> ttypes.MulticastRequest:
    return ttypes.MulticastRequest(key, hosts[0], hosts[1:], size)


if __name__ == "__main__":
    main()

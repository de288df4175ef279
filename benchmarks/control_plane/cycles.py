"""Claims about the control plane: requests per second, time to a grant, and restart.

On one machine run the real controller with its SQLite journal, Thrift clients in other processes, and devices emulated
over real sockets (one optical switch, one OpenFlow connection per rack). Groups have 3 to 5 racks.

    cycles    request, grant, finish: >= 300 per second with an OCS without latency on 100 racks
    switch    the same with the paper's OCS (14.172 ms): >= 100 per second
    many      as cycles, on 1000 racks
    overhead  software time of a grant, one outstanding request: p50 <= 3 ms, p99 <= 10 ms; fsync is separate
    parked    with 500 pending requests: ping p99 < 2 ms
    restart   kill -9 with 300 lit trees on 1000 racks: ready < 2 s after the devices connect, no tree is changed

    .venv/bin/python benchmarks/control_plane/cycles.py
    .venv/bin/python benchmarks/control_plane/cycles.py --only cycles --seconds 10
    .venv/bin/python benchmarks/control_plane/cycles.py --only overhead --driver netconf

`--quick` takes less than a minute, with fewer racks and requests and shorter loads.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.control_plane.child import Child
from benchmarks.control_plane.drivers.switch_endpoints import DRIVERS
from benchmarks.control_plane.load import Groups, figures
from benchmarks.control_plane.rig import HERE, Rig, Size
from blast_client import Client
from blast_controller.core.model.records import Record
from blast_controller.store.sqlite import SqliteStore

PAPER_SWITCH_MS = 14.172
MEMORY = Path("/dev/shm")
LOAD_SECONDS = 300.0
Figures = dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """Seconds of each load, and the sizes that take longest."""

    seconds: float
    requests: int
    many_racks: int
    live_trees: int
    parked: int
    driver: str = "tl1"


FULL = Scale(10.0, 500, 1000, 300, 500)
QUICK = Scale(2.0, 60, 200, 40, 100)


def load(rig: Rig, mode: str, **options: float) -> Figures:
    """Return the figures of a load that runs in a separate process."""
    with ExitStack() as undo:
        return rig.child(undo, f"load {mode}", load_command(rig, mode, **options)).next(LOAD_SECONDS)


def load_command(rig: Rig, mode: str, **options: float) -> list[str]:
    """Return the command of a load."""
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    return [sys.executable, str(HERE / "load.py"), mode, "--controller", rig.thrift, *flags]


def _cycles_on(size: Size, racks_per_job: int, seconds: float) -> Figures:
    jobs = 20
    with Rig(size) as rig:
        before = rig.controller.cpu_seconds()
        figures = load(rig, "cycles", racks=size.racks, racks_per_job=racks_per_job, jobs=jobs, seconds=seconds)
        cpu = rig.controller.cpu_seconds() - before
        commands = rig.switch.ask()["commands"]
    figures |= {"controller_cpu_ms_per_cycle": round(cpu / figures["cycles"] * 1000, 2)}
    figures |= {"switch_commands_per_cycle": round(commands / figures["cycles"], 2)}
    where = f"{racks_per_job} racks of its own" if racks_per_job else "all racks"
    return {"input": f"{size.words}; {jobs} jobs on {where}, one request outstanding each, {seconds:g} s", **figures}


def cycles(scale: Scale) -> Figures:
    """Measure cycles per second with an OCS without latency."""
    return _cycles_on(Size(100, 50, driver=scale.driver), 5, scale.seconds)


def switch(scale: Scale) -> Figures:
    """Measure cycles per second with the paper's OCS."""
    return _cycles_on(Size(100, 50, PAPER_SWITCH_MS, driver=scale.driver), 5, scale.seconds)


def many(scale: Scale) -> Figures:
    """Measure cycles per second on many racks."""
    return _cycles_on(Size(scale.many_racks, 50, driver=scale.driver), 0, scale.seconds)


def overhead(scale: Scale) -> Figures:
    """Measure the software time of a grant, which is its total time with an OCS without latency."""
    size = Size(8, 8, keep_warm_ms=0, driver=scale.driver)
    cases = {
        "journal_on_disk": (size, None),
        "journal_in_memory": (size, MEMORY),
        "and_pieces_change_hands": (replace(size, keep_warm_ms=60_000, warm_reserve=0.0), None),
        "with_the_papers_switch": (replace(size, connect_ms=PAPER_SWITCH_MS), None),
    }
    figures = {}
    for name, (case, directory) in cases.items():
        with Rig(case, directory) as rig:
            figures[name] = load(rig, "one", racks=8, jobs=1, requests=scale.requests)["grant_ms"]
    words = f"{size.words}; one request outstanding, {scale.requests} requests 10 ms apart, two commits a grant"
    return {"input": words, "grant_ms": figures, "commit_ms": commits(scale.requests)}


def commits(count: int) -> Figures:
    """Measure the time of a commit to the journal on an idle controller."""
    with tempfile.TemporaryDirectory() as directory:
        store = SqliteStore(Path(directory) / "journal.sqlite")
        store.open()
        times = []
        for number in range(count):
            store.commit([Record("element", str(number), {"reason": "x" * 400})], time.time())
            times.append(store.last_commit_seconds)
            time.sleep(0.002)
        store.close()
    return figures(times)


def parked(scale: Scale) -> Figures:
    """Measure pings while many requests wait for a splitter that one request holds."""
    size = Size(100, 1, driver=scale.driver)
    with Rig(size) as rig, ExitStack() as undo:
        idle = load(rig, "pings", seconds=scale.seconds, pause=0.005)["ping_ms"]
        waiting = rig.child(undo, "waiting requests", load_command(rig, "held", racks=100, jobs=scale.parked))
        _until(waiting, "submitted", scale.parked)
        figures = load(rig, "pings", seconds=scale.seconds, pause=0.005)["ping_ms"]
        counts = waiting.ask()
    words = f"{size.words}; {scale.parked} requests outstanding, {counts['granted']} lit; pings 5 ms apart"
    return {"input": words, "ping_ms": figures, "ping_without_them_ms": idle}


def _until(child: Child, name: str, count: int) -> Figures:
    deadline = time.monotonic() + LOAD_SECONDS
    while (counts := child.ask())[name] < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} did not reach {count} within {LOAD_SECONDS:g} s: {counts}")
        time.sleep(0.1)
    return counts


def restart(scale: Scale) -> Figures:
    """Kill the controller while many trees are lit, restart it, and count its commands to the devices."""
    size = Size(scale.many_racks, scale.live_trees, 0.0, 2, driver=scale.driver)
    with Rig(size) as rig, ExitStack() as undo:
        # Every rack is in at most two groups, and those of the second half in at most one.
        command = load_command(rig, "held", racks=size.racks, racks_per_job=5, jobs=scale.live_trees)
        keys = _until(rig.child(undo, "live trees", command), "granted", scale.live_trees)["keys"]
        before = {"switch": rig.switch.ask(), "tors": rig.tors.ask()}
        rig.controller.kill()
        started = time.monotonic()
        rig.start_controller()
        listening, cpu_listening = time.monotonic(), rig.controller.cpu_seconds()
        ready, cpu_ready = rig.wait_devices(), rig.controller.cpu_seconds()
        with Client(rig.thrift) as client:
            live = sum(client.status(key).parts[0].grant is not None for key in keys)
            trees = len(client.fabric().lightTrees)
            asked = time.monotonic()
            request = Groups(range(size.racks // 2 + 1, size.racks + 1), os.getpid()).next()
            request.receivers = request.receivers[:1]
            client.request(request, timeout=60.0)
            first_grant = time.monotonic() - asked
            client.withdraw(request.key)
        time.sleep(1.0)
        tors, switch_counts = rig.tors.ask(), rig.switch.ask()
    connected = tors["last_connected_at"]
    # The new request sets and removes one circuit and two rules.
    extra = {"commands": 2, "flow_mods": 4}
    return {
        "input": f"{size.words}; {scale.live_trees} live trees, kill -9",
        "thrift_listens_after_s": round(listening - started, 3),
        "last_tor_connected_after_s": round(connected - started, 3),
        "ready_after_s": round(ready - started, 3),
        "ready_after_last_tcp_connection_s": round(ready - connected, 3),
        "controller_cpu_s": {"to_listen": round(cpu_listening, 2), "to_ready": round(cpu_ready, 2)},
        "first_new_grant_s": round(first_grant, 3),
        "trees_still_granted": live,
        "trees_in_the_fabric": trees,
        "switch_commands": switch_counts["commands"] - before["switch"]["commands"] - extra["commands"],
        "flow_mods": tors["flow_mods"] - before["tors"]["flow_mods"] - extra["flow_mods"],
    }


ROWS: dict[str, Callable[[Scale], Figures]] = {
    row.__name__: row for row in (cycles, switch, many, overhead, parked, restart)
}


def main() -> None:
    """Measure and print."""
    parser = machine.parser(__doc__)
    parser.add_argument("--only", action="append", choices=ROWS, help="row, may be repeated (default: all)")
    parser.add_argument("--seconds", type=float, help="duration of each load in s (default: 10, with --quick 2)")
    parser.add_argument("--quick", action="store_true", help="fewer racks and requests, shorter loads")
    parser.add_argument("--driver", choices=DRIVERS, default="tl1", help="driver of the OCS (default: tl1)")
    args = parser.parse_args()
    scale = replace(QUICK if args.quick else FULL, driver=args.driver)
    if args.seconds is not None:
        scale = replace(scale, seconds=args.seconds)
    rows = {}
    if not args.json:
        print(machine.describe())
    for name in args.only or ROWS:
        load_before = os.getloadavg()[0]
        rows[name] = {**ROWS[name](scale), "machine_load_before": round(load_before, 1)}
        if not args.json:
            print(f"{name}: {rows[name].pop('input')}")
            print(*(f"    {key} {json.dumps(value)}" for key, value in rows[name].items()), sep="\n", flush=True)
    if args.json:
        print(json.dumps({"machine": machine.describe(), "rows": rows}, indent=2))


if __name__ == "__main__":
    main()

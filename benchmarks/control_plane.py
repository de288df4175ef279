"""Claims about the control plane, on one machine: the real daemon with its SQLite journal, Thrift clients in other
processes, devices emulated over real sockets (one TL1 agent, one OpenFlow connection per rack), groups of 3 to 5 racks.

    cycles       request, grant, finish: >= 300 per second with a switch that needs no time, 100 racks; 1000 racks told
    switch       the same with the paper's switch (14.172 ms): >= 100 per second
    many         the first on 1000 racks
    overhead     the software's own time in a grant, one request outstanding: p50 <= 3 ms, p99 <= 10 ms; fsync apart
    parked       500 requests wait: ping p99 < 2 ms
    connections  1000 clients connect: no ping waits long
    watched      50 times a second somebody asks for the fabric of 1000 racks: p99 of a grant < 1.05 times that without
    restart      kill -9 with 300 live trees on 1000 racks: ready < 2 s after the devices are connected, none touched

Section V-B's hundreds of jobs are in `concurrent_jobs.py`.

    .venv/bin/python benchmarks/control_plane.py --only cycles --seconds 10

`--quick` takes less than a minute, with fewer racks, requests and seconds, and proves little.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import machine
from child import Child
from control_plane_load import Groups, figures
from control_plane_rig import HERE, Rig, Size

from blast_client import Client
from blast_controller.core.model.records import Record
from blast_controller.store.sqlite import SqliteStore

PAPER_SWITCH_MS = 14.172
MEMORY = Path("/dev/shm")
LOAD_SECONDS = 300.0


@dataclass(frozen=True)
class Scale:
    """How much is done: seconds of each load, and the sizes that take longest."""

    seconds: float
    requests: int
    many_racks: int
    live_trees: int
    parked: int
    connections: int


FULL = Scale(10.0, 500, 1000, 300, 500, 1000)
QUICK = Scale(2.0, 60, 200, 40, 100, 200)


def load(rig: Rig, mode: str, **options: float) -> dict[str, Any]:
    """The figures of a load from a process of its own."""
    with ExitStack() as undo:
        return rig.child(undo, f"load {mode}", load_command(rig, mode, **options)).next(LOAD_SECONDS)


def load_command(rig: Rig, mode: str, **options: float) -> list[str]:
    """How to start a load."""
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    return [sys.executable, str(HERE / "control_plane_load.py"), mode, "--controller", rig.thrift, *flags]


def _cycles_on(size: Size, jobs: int, racks_per_job: int, seconds: float) -> dict[str, Any]:
    with Rig(size) as rig:
        before = rig.controller.cpu_seconds()
        figures = load(rig, "cycles", racks=size.racks, racks_per_job=racks_per_job, jobs=jobs, seconds=seconds)
        cpu = rig.controller.cpu_seconds() - before
        commands = rig.switch.ask()["commands"]
    cycles = figures["cycles"]
    figures |= {"controller_cpu_ms_per_cycle": round(cpu / cycles * 1000, 2)}
    figures |= {"switch_commands_per_cycle": round(commands / cycles, 2)}
    where = f"{racks_per_job} racks of its own" if racks_per_job else "all racks"
    return {"input": f"{size.words}; {jobs} jobs on {where}, one request outstanding each, {seconds:g} s", **figures}


def cycles(scale: Scale) -> dict[str, Any]:
    """Cycles per second with a switch that needs no time."""
    return _cycles_on(Size(100, 50), 20, 5, scale.seconds)


def switch(scale: Scale) -> dict[str, Any]:
    """Cycles per second with the paper's switch."""
    return _cycles_on(Size(100, 50, PAPER_SWITCH_MS), 20, 5, scale.seconds)


def many(scale: Scale) -> dict[str, Any]:
    """Cycles per second on many racks."""
    return _cycles_on(Size(scale.many_racks, 50), 20, 0, scale.seconds)


def overhead(scale: Scale) -> dict[str, Any]:
    """The software's own time in a grant: with a switch that needs no time, all of it is software's."""
    size, figures = Size(8, 8, keep_warm_ms=0), {}
    for name, directory in (("journal_on_disk", None), ("journal_in_memory", MEMORY)):
        with Rig(size, directory) as rig:
            figures[name] = load(rig, "one", racks=8, jobs=1, requests=scale.requests)["grant_ms"]
    with Rig(replace(size, keep_warm_ms=60_000, warm_reserve=0.0)) as rig:
        figures["and_pieces_change_hands"] = load(rig, "one", racks=8, jobs=1, requests=scale.requests)["grant_ms"]
    with Rig(replace(size, connect_ms=PAPER_SWITCH_MS)) as rig:
        figures["with_the_papers_switch"] = load(rig, "one", racks=8, jobs=1, requests=scale.requests)["grant_ms"]
    words = f"{size.words}; one request outstanding, {scale.requests} requests 10 ms apart, two commits a grant"
    return {"input": words, "grant_ms": figures, "commit_ms": commits(scale.requests)}


def commits(count: int) -> dict[str, float]:
    """What one commit of the journal waits for the disk (where temporary files lie), beside nothing else."""
    with tempfile.TemporaryDirectory() as directory:
        store = SqliteStore(Path(directory) / "journal.sqlite")
        store.open()
        times = []
        for number in range(count):
            store.commit([Record("element", str(number), {"reason": "x" * 400})], time.time())
            times.append(store.last_commit_seconds * 1000)
            time.sleep(0.002)
        store.close()
    ordered = sorted(times)
    return {
        "n": count,
        "p50": round(statistics.median(ordered), 3),
        "p99": round(ordered[min(count - 1, round(0.99 * count))], 3),
    }


def parked(scale: Scale) -> dict[str, Any]:
    """Pings while many requests wait for splitters that one request holds, and while new ones come."""
    size = Size(100, 1)
    with Rig(size) as rig, ExitStack() as undo:
        idle = load(rig, "pings", seconds=scale.seconds, pause=0.005)["ping_ms"]
        waiting = rig.child(undo, "waiting requests", load_command(rig, "held", racks=100, jobs=scale.parked))
        _until(waiting, "submitted", scale.parked)
        figures = load(rig, "pings", seconds=scale.seconds, pause=0.005)["ping_ms"]
        counts = waiting.ask()
    words = f"{size.words}; {scale.parked} requests outstanding, {counts['granted']} lit; pings 5 ms apart"
    return {"input": words, "ping_ms": figures, "ping_without_them_ms": idle}


def watched(scale: Scale) -> dict[str, Any]:
    """Grants while somebody watches and while nobody does, in turns."""
    size, rounds = Size(scale.many_racks, 50), 5
    alone: list[float] = []
    beside: list[float] = []
    with Rig(size) as rig:
        for _ in range(rounds):
            alone += _grants(rig, scale.requests // rounds)
            with ExitStack() as undo:
                watching = load_command(rig, "watch", seconds=LOAD_SECONDS, pause=0.02)
                rig.child(undo, "who watches", watching)
                beside += _grants(rig, scale.requests // rounds)
    found = {"alone": figures(alone), "watched": figures(beside)}
    ratio = {name: round(found["watched"][name] / found["alone"][name], 3) for name in ("p50", "p99")}
    return {"input": f"{size.words}; {rounds} rounds of each", "grant_ms": found, "watched_to_alone": ratio}


def _grants(rig: Rig, count: int) -> list[float]:
    return load(rig, "one", racks=rig.size.racks, requests=count)["grants"]


def _until(child: Child, name: str, wanted: int) -> dict[str, Any]:
    deadline = time.monotonic() + LOAD_SECONDS
    while (counts := child.ask())[name] < wanted:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{counts} where {wanted} were wanted")
        time.sleep(0.1)
    return counts


def connections(scale: Scale) -> dict[str, Any]:
    """Many connections at once, and somebody else's pings meanwhile."""
    size = Size(8, 8)
    with Rig(size) as rig, ExitStack() as undo:
        many_clients = load_command(rig, "connections", jobs=scale.connections, seconds=scale.seconds)
        crowd = rig.child(undo, "many clients", many_clients)
        bystander = load(rig, "pings", seconds=scale.seconds, pause=0.005)["ping_ms"]
        figures = crowd.next(LOAD_SECONDS)
    words = f"{size.words}; {scale.connections} connections made at once, then each pings in turn"
    return {"input": words, **figures, "bystander_ping_ms": bystander}


def restart(scale: Scale) -> dict[str, Any]:
    """Kill the controller while much is lit, start it again, and count what it does to the devices."""
    size = Size(scale.many_racks, scale.live_trees, 0.0, 2)
    with Rig(size) as rig, ExitStack() as undo:
        # Every rack is in at most two groups, and those of the second half in at most one.
        held = rig.child(
            undo, "live trees", load_command(rig, "held", racks=size.racks, racks_per_job=5, jobs=scale.live_trees)
        )
        keys = _until(held, "granted", scale.live_trees)["keys"]
        before = {"switch": rig.switch.ask(), "tors": rig.tors.ask()}
        rig.controller.kill()
        started = time.monotonic()
        rig.start_controller()
        listening = time.monotonic()
        cpu_listening = rig.controller.cpu_seconds()
        ready = rig.wait_devices()
        cpu_ready = rig.controller.cpu_seconds()
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
    connected, greeted = tors["last_connected_at"], tors["last_greeted_at"]
    # The new request, which shows that the controller is at work, is one circuit and two rules, made and undone.
    extra = {"commands": 2, "flow_mods": 4}
    return {
        "input": f"{size.words}; {scale.live_trees} live trees, kill -9",
        "thrift_listens_after_s": round(listening - started, 3),
        "last_tor_connected_after_s": round(connected - started, 3),
        "last_tor_greeted_after_s": round(greeted - started, 3),
        "ready_after_s": round(ready - started, 3),
        "ready_after_last_tcp_connection_s": round(ready - connected, 3),
        "ready_after_last_openflow_handshake_s": round(ready - greeted, 3),
        "controller_cpu_s": {"to_listen": round(cpu_listening, 2), "to_ready": round(cpu_ready, 2)},
        "first_new_grant_s": round(first_grant, 3),
        "trees_still_granted": live,
        "trees_in_the_fabric": trees,
        "switch_commands": switch_counts["commands"] - before["switch"]["commands"] - extra["commands"],
        "flow_mods": tors["flow_mods"] - before["tors"]["flow_mods"] - extra["flow_mods"],
    }


ROWS: dict[str, Callable[[Scale], dict[str, Any]]] = {
    "cycles": cycles,
    "switch": switch,
    "many": many,
    "overhead": overhead,
    "parked": parked,
    "connections": connections,
    "watched": watched,
    "restart": restart,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=ROWS, help="this row (may be given several times)")
    parser.add_argument("--seconds", type=float, help="of each load, instead of 10")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    scale = QUICK if args.quick else FULL
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

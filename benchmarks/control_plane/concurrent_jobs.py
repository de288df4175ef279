"""Claims: hundreds of iterative jobs share 50 optical splitters (Blast, section V-B).

On one machine run the real controller with its SQLite journal, 400 jobs in another process, and devices emulated over
real sockets; the optical switch takes the paper's 14.172 ms.

    rate      40 requests per second in total, one every 10 s from each job, for 60 s: all are granted
    waiting   the queue does not grow up to 36 requests per second with transfers of 1.25 s: waits p50 <= 0.1 s,
              p99 <= 2 s
    starving  no job waits longer than 30 s for a grant, at any of these rates
    leaks     no splitter, rack port, circuit or rule stays reserved at the end

The paper divides 50 splitters by 40 requests per second; this yields transfers of 1.25 s and leaves no time for setup
and teardown: at that rate the queue must grow. Therefore lower rates are measured, too, and 40 per second with 1.2 s.
In the open loop the rate does not depend on waits; in the closed loop a job computes after its transfer.

A job has 3 to 5 racks, which one 1:4 splitter serves. With 250 racks of 4 optical ports (40 servers each, 10,000 in
total) jobs share racks; with `--racks 1300 --ports-per-rack 1 --jobs 300` each job has racks of its own.

    .venv/bin/python benchmarks/control_plane/concurrent_jobs.py
    .venv/bin/python benchmarks/control_plane/concurrent_jobs.py --seconds 60 --case 40x1.25 --case closed

Exit status 1 if a job starves or a resource stays reserved; times do not change the exit status.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks import machine
from benchmarks.control_plane.concurrent_jobs_load import CLOSED, OPEN
from benchmarks.control_plane.cycles import PAPER_SWITCH_MS, commits
from benchmarks.control_plane.rig import HERE, Rig, Size
from blast_client import Client

SPLITTERS = 50
DRAIN_SECONDS = 90.0
"""The maximum time of a load beyond its duration."""
DARK_SECONDS = 90.0
"""The maximum time until the last warm tree is torn down, after a minute by default."""


@dataclass(frozen=True)
class Case:
    """Requests per second, seconds of each transfer, the loop, and bars of the wait in ms."""

    rate: float
    lit: float
    loop: str = OPEN
    bars: Mapping[str, float] = field(default_factory=dict)


BARS = {"p50": 100.0, "p99": 2000.0}
CASES = {
    "32x1.25": Case(32.0, 1.25, bars=BARS),
    "36x1.25": Case(36.0, 1.25, bars=BARS),
    "38x1.25": Case(38.0, 1.25),
    "40x1.25": Case(40.0, 1.25),
    "40x1.2": Case(40.0, 1.2),
    "closed": Case(40.0, 1.25, CLOSED),
}


def measure(case: Case, size: Size, jobs: int, seconds: float) -> dict[str, Any]:
    """Return the figures of a case, measured on a separate controller and fabric."""
    options = {"racks": size.racks, "splitters": size.splitters, "jobs": jobs, "rate": case.rate, "lit": case.lit}
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    with Rig(size) as rig, ExitStack() as undo:
        before = rig.tors.ask()["rules"], rig.switch.ask()["circuits"]
        cpu = rig.controller.cpu_seconds()
        command = [sys.executable, str(HERE / "concurrent_jobs_load.py"), "--controller", rig.thrift, *flags]
        command += ["--loop", case.loop, "--seconds", str(seconds)]
        figures = rig.child(undo, "jobs", command).next(seconds + DRAIN_SECONDS)
        figures["controller_cpu_share"] = round((rig.controller.cpu_seconds() - cpu) / figures["served_all_after_s"], 3)
        with Client(rig.thrift) as client:
            figures["left_behind"] = _held_when_dark(client)
        after = rig.tors.ask()["rules"], rig.switch.ask()["circuits"]
        figures["left_behind"] |= {"rules": after[0] - before[0], "circuits": after[1] - before[1]}
    return figures


def _held_when_dark(client: Client) -> dict[str, int]:
    """Wait until the warm trees are torn down, and return what the controller still holds."""
    deadline = time.monotonic() + DARK_SECONDS
    while (fabric := client.fabric()).lightTrees and time.monotonic() < deadline:
        time.sleep(0.5)
    ports = [port for rack in fabric.racks for port in rack.opticalPorts]
    return {
        "trees": len(fabric.lightTrees),
        "splitters": sum(one.reservation is not None or one.unusable is not None for one in fabric.splitters),
        "rack_ports": sum(one.reservation is not None or one.unusable is not None for one in ports),
        "waiting": fabric.pendingParts,
    }


def main() -> int:
    """Measure and print; return the exit status."""
    parser = machine.parser(__doc__)
    parser.add_argument("--case", action="append", choices=CASES, help="case, may be repeated (default: all)")
    parser.add_argument("--jobs", type=int, default=400, help="number of jobs (default: 400)")
    parser.add_argument("--racks", type=int, default=250, help="number of racks (default: 250)")
    parser.add_argument("--ports-per-rack", type=int, default=4, help="optical ports of each rack (default: 4)")
    connect = "connect time of the OCS in ms (default: the paper's, 14.172)"
    parser.add_argument("--switch-ms", type=float, default=PAPER_SWITCH_MS, help=connect)
    warm = "time that unused trees stay warm in ms (default: 60000)"
    parser.add_argument("--keep-warm-ms", type=int, default=60_000, help=warm)
    parser.add_argument("--seconds", type=float, default=60.0, help="duration of each case in s (default: 60)")
    args = parser.parse_args()
    size = Size(args.racks, SPLITTERS, args.switch_ms, args.ports_per_rack, args.keep_warm_ms)
    words = f"{size.words}; {args.jobs} jobs of 3 to 5 racks, {args.seconds:g} s"
    if not args.json:
        print(machine.describe(), words, sep="\n")
    rows: dict[str, dict[str, Any]] = {}
    for name in args.case or CASES:
        load_before = os.getloadavg()[0]
        row = measure(CASES[name], size, args.jobs, args.seconds)
        if bars := CASES[name].bars:
            met = all(row["wait_ms"].get(which, math.inf) <= bar for which, bar in bars.items())
            row |= {"bars_ms": bars, "met": met}
        rows[name] = {**row, "commit_ms": commits(100), "machine_load_before": round(load_before, 1)}
        if not args.json:
            print(name, *(f"    {key} {json.dumps(value)}" for key, value in rows[name].items()), sep="\n", flush=True)
    if args.json:
        print(json.dumps({"machine": machine.describe(), "input": words, "rows": rows}, indent=2))
    return int(any(row["jobs_starved"] or any(row["left_behind"].values()) for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())

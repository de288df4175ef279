"""Max-min fair sharing against SimGrid 3.32 on the same flows in one run, and its size.

static  the paper's fabric (120 racks of 40 servers, 10:1), naive unicast of 300 MB by 36 senders to 119 receivers each,
        with no, light (6 flows a server) and heavy (80) background that never ends
random  flows between random servers, all from time 0: every end is an event
churn   one foreground flow ends or starts beside 384,000 flows of background: solved again, and from nothing
big     10,000 racks of 40 servers, heavy: one solve, with the memory of the process

CPU seconds: ours from the arrays to the last end, index and all (compiled code is there; what compiling takes the first
time is printed), SimGrid's from the start of the first flow to the last end, without what building its platform takes.

.venv/bin/python benchmarks/fair_solver.py --only random
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import machine
import numpy as np
from simgrid_peer import FlowFile, Peer, PeerMissing, compiled_peer

from blast_sim.base.text import table
from blast_sim.fair import FairShares, Paths, Solver, fair_rates, finish_times

RACKS, SERVERS = 120, 40
SERVER_RATE, UPLINK_RATE = 10e9, 40e9
FILE = 300e6 * 8
BACKGROUND = {"none": 0, "light": 6, "heavy": 80}
EVENTS = 200
Floats = np.ndarray[Any, np.dtype[np.float64]]
Whole = np.ndarray[Any, np.dtype[np.int64]]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--without-peer", action="store_true", help="SimGrid is not installed")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one-big-solve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one_big_solve:
        print(json.dumps(one_big_solve()))
        return 0
    parts = [args.only] if args.only else list(PARTS)
    figures: dict[str, Any] = {"machine": machine.describe(), "compile_seconds": compile_seconds()}
    try:
        with nullcontext() if args.without_peer else compiled_peer() as peer:
            for part in parts:
                figures[part] = PARTS[part](peer)
    except PeerMissing as error:
        sys.stderr.write(f"{error}\n")
        return 2
    print(json.dumps(figures, indent=1) if args.json else shown(figures))
    return 0


# ---------------------------------------------------------------------------------------------------- the cases


def links_of(racks: int) -> Floats:
    """Servers up, servers down, racks up, racks down."""
    servers = racks * SERVERS
    return np.repeat([SERVER_RATE, UPLINK_RATE], [2 * servers, 2 * racks])


def routes(sources: Whole, targets: Whole, racks: int) -> Paths:
    """Two links within a rack, four between racks."""
    servers = racks * SERVERS
    here, there = sources // SERVERS, targets // SERVERS
    rows = np.empty((len(sources), 4), np.int32)
    rows[:, 0], rows[:, 1] = sources, servers + targets
    rows[:, 2], rows[:, 3] = 2 * servers + here, 2 * servers + racks + there
    if (here != there).all():
        return Paths.rows(rows)
    lengths = np.where(here == there, 2, 4)
    used = np.arange(4) < lengths[:, None]
    return Paths(np.concatenate([[0], np.cumsum(lengths)]), rows[used])


def background(racks: int, flows_per_server: int) -> tuple[Whole, Whole]:
    """Every server to as many others, in racks on both sides of its own."""
    servers, half = np.arange(racks * SERVERS), flows_per_server // 2
    offsets = np.concatenate([np.arange(1, half + 1), racks - np.arange(1, half + 1)])
    sources = np.repeat(servers, len(offsets))
    return sources, (sources + SERVERS * np.tile(offsets, len(servers))) % len(servers)


def naive(load: str) -> FlowFile:
    """36 senders with a flow to each of their 119 receivers, and the background."""
    firsts = np.arange(36) * 3 * SERVERS
    sources = np.repeat(firsts, 119)
    targets = sources + np.tile(np.arange(1, 120), 36)
    others = background(RACKS, BACKGROUND[load])
    bits = np.repeat([FILE, np.inf], [len(sources), len(others[0])])
    sources, targets = np.concatenate([sources, others[0]]), np.concatenate([targets, others[1]])
    return FlowFile(links_of(RACKS), routes(sources, targets, RACKS), bits, sources, targets)


def random_pairs(flows: int) -> FlowFile:
    """Servers at random, 1 to 300 MB; a pair that comes twice is left out."""
    rng = np.random.default_rng(5)
    servers = RACKS * SERVERS
    sources, targets = rng.integers(0, servers, flows), rng.integers(0, servers, flows)
    targets = np.where(sources == targets, (targets + 1) % servers, targets)
    sources, targets = np.divmod(np.unique(sources * servers + targets), servers)
    bits = rng.integers(10**6, 3 * 10**8, len(sources)) * 8.0
    return FlowFile(links_of(RACKS), routes(sources, targets, RACKS), bits, sources, targets)


# ------------------------------------------------------------------------------------------------ the measurements


def static(peer: Peer | None) -> list[dict[str, Any]]:
    """Every load, with both solvers and the peer."""
    return [compared(f"naive, {load}", naive(load), peer) for load in BACKGROUND]


def events(peer: Peer | None) -> list[dict[str, Any]]:
    """Rising numbers of random flows."""
    return [compared("random pairs", random_pairs(flows), peer) for flows in (1_000, 5_000)]


def compared(name: str, flows: FlowFile, peer: Peer | None) -> dict[str, Any]:
    """Ends of the same flows, by both solvers and the peer."""
    row: dict[str, Any] = {"case": name, "flows": len(flows.paths)}
    ends = {}
    for solver in ("numba", "numpy"):
        row[solver], ends[solver] = ours(flows, solver)
    measured = flows.measured
    row["makespan"] = float(ends["numba"][measured].max())
    row["numpy_differs"] = differ(ends["numpy"][measured], ends["numba"][measured])
    if peer is not None:
        answer = peer.run(flows)
        row["simgrid"] = answer.seconds
        row["simgrid_differs"] = differ(answer.ends, ends["numba"][measured])
        row["times_faster"] = {solver: answer.seconds / row[solver] for solver in ("numba", "numpy")}
    return row


def ours(flows: FlowFile, solver: Solver) -> tuple[float, Floats]:
    """CPU seconds, best of three, and the ends."""
    seconds = []
    for _ in range(3 if solver == "numba" else 1):
        begun = time.process_time()
        ends = finish_times(flows.capacities, flows.paths, flows.bits, solver=solver)
        seconds.append(time.process_time() - begun)
    return min(seconds), ends


def churn(_: Peer | None) -> list[dict[str, Any]]:
    """Ends and starts of single foreground flows under heavy load."""
    flows = naive("heavy")
    rows = []
    for solver, count in (("numba", EVENTS), ("numpy", EVENTS // 10)):
        shares = FairShares(flows.capacities, solver=solver)
        ids = shares.add(flows.paths)
        shares.rates(ids[:1])
        begun = time.process_time()
        for flow in range(count):
            shares.remove(ids[flow : flow + 1])
            shares.rates(ids[-1:])
            ids[flow : flow + 1] = shares.add(flows.paths.take([flow]))
            shares.rates(ids[-1:])
        again = (time.process_time() - begun) / (2 * count)
        begun = time.process_time()
        whole = fair_rates(flows.capacities, flows.paths, solver=solver)
        once = time.process_time() - begun
        rows.append({"solver": solver, "change": again, "whole": once, "differs": differ(shares.rates(ids), whole)})
    return rows


def big(_: Peer | None) -> dict[str, Any]:
    """In a process of its own, whose memory is asked for."""
    command = [sys.executable, __file__, "--one-big-solve"]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


def one_big_solve() -> dict[str, Any]:
    """10,000 racks; the compiled code has been used before."""
    compile_seconds()
    begun = time.process_time()
    racks = 10_000
    paths = routes(*background(racks, 80), racks)
    built = time.process_time()
    rates = fair_rates(links_of(racks), paths)
    solved = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert rates.min() > 0
    return {"flows": len(paths), "build": built - begun, "solve": solved - built, "bytes": memory}


def compile_seconds() -> float:
    """What the first solve of a process takes: compiling, or loading what was compiled before."""
    begun = time.process_time()
    small = random_pairs(10)
    for _ in range(2):
        finish_times(small.capacities, small.paths, small.bits, solver="numba")
    shares = FairShares(small.capacities, solver="numba")
    shares.rates(shares.add(small.paths))
    shares.remove([0])
    shares.rates([1])
    fair_rates(small.capacities, small.paths, solver="numba")
    return time.process_time() - begun


def differ(one: Floats, other: Floats) -> float:
    """The largest relative difference."""
    return float(np.abs(one / other - 1).max())


PARTS: dict[str, Callable[[Peer | None], Any]] = {"static": static, "random": events, "churn": churn, "big": big}


# ------------------------------------------------------------------------------------------------------- printing


def shown(figures: dict[str, Any]) -> str:
    """The figures as tables."""
    blocks = [figures["machine"], f"compiling or loading compiled code: {figures['compile_seconds']:.2f} s"]
    compared_rows = [*figures.get("static", []), *figures.get("random", [])]
    if compared_rows:
        header = ("case", "flows", "makespan s", "SimGrid s", "numba s", "numpy s", "times faster", "ends differ by")
        blocks.append(table(header, [_row(row) for row in compared_rows]))
    if "churn" in figures:
        header = ("heavy, one flow changes", "ms a change", "ms from nothing", "rates differ by")
        rows = [
            (row["solver"], f"{row['change'] * 1e3:.2f}", f"{row['whole'] * 1e3:.1f}", f"{row['differs']:.1e}")
            for row in figures["churn"]
        ]
        blocks.append(table(header, rows))
    if "big" in figures:
        row = figures["big"]
        blocks.append(
            f"10,000 racks, {row['flows']} flows: arrays {row['build']:.1f} s, solve {row['solve']:.2f} s, "
            f"{row['bytes'] / 1e9:.2f} GB"
        )
    return "\n\n".join(blocks)


def _row(row: dict[str, Any]) -> Sequence[str]:
    faster, simgrid = "-", "-"
    differs = f"{row['numpy_differs']:.0e} (numpy)"
    if "simgrid" in row:
        simgrid = f"{row['simgrid']:.3f}"
        faster = " / ".join(f"{row['times_faster'][solver]:.1f}" for solver in ("numba", "numpy"))
        differs = f"{row['simgrid_differs']:.0e}, {differs}"
    seconds = (simgrid, f"{row['numba']:.4f}", f"{row['numpy']:.3f}")
    return (row["case"], str(row["flows"]), f"{row['makespan']:.6f}", *seconds, faster, differs)


if __name__ == "__main__":
    sys.exit(main())

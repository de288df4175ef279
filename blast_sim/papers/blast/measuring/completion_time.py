"""Mean completion time of multicasts under the default policy and the paper's.

Claim: the default policy shortens the mean completion time of multicasts several times compared with the paper's
policy, on the same racks and splitters, with a bounded wait for every request.

Workloads of 1500 multicasts on 120 racks (`completion_model`), each with the paper's policy and the default, with one
count of ports per rack and with a port each way; means over the seeds. Then all policies side by side; a closed loop
of 100 iterative jobs; and what one decision costs with thousands of jobs waiting on 1000 racks.

    python -m blast_sim.papers.blast.measuring.completion_time [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterable

from algorithms.scheduling import DEFAULT, POLICIES
from blast_sim.base.percentiles import percentile
from blast_sim.base.report import Row
from blast_sim.papers.blast.measuring import machine
from blast_sim.papers.blast.measuring.completion_model import (
    SET_UP,
    Arrival,
    CompletionModel,
    CompletionOutcome,
    play,
    play_closed,
    workload,
)
from blast_sim.papers.blast.measuring.completion_model import SPLITTERS as SPLITTERS_OF

JOBS = 1500
CELLS = [("S3-LN", 0.55), ("ML", 0.3), ("FB", 0.3)]
BARS = {"S3-LN": (1 / 1.8, 1 / 3), "ML": (1 / 2.5, 1 / 10), "FB": (1 / 1.9, 1 / 5)}
"""The largest share of the paper's mean completion time: with one count of ports, with a port each way."""
WAITING = (1000, 10_000)
DECISION_RACKS = 1000
DECISIONS = 3000


def progress(text: str) -> None:
    """Print a line to standard error that overwrites the previous one."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def cell(kind: str, load: float, policy: str, directional: bool, seeds: int) -> Row:
    """Return the row of one workload under one policy."""
    outcomes: list[CompletionOutcome] = []
    service = []
    started = time.process_time()
    for seed in range(seeds):
        progress(f"{kind} {load} {policy} {'directional' if directional else 'one count'} seed {seed}")
        arrivals = workload(kind, JOBS, load, seed)
        service.append(mean_service(arrivals))
        outcomes.append(play(POLICIES[policy], arrivals, SPLITTERS_OF[kind], directional))
    times = [list(outcome.completion.values()) for outcome in outcomes]
    return {
        "workload": kind,
        "load": load,
        "policy": policy,
        "directional": directional,
        "seeds": seeds,
        "mean_s": statistics.mean(statistics.mean(of_seed) for of_seed in times),
        "p99_s": statistics.mean(percentile(of_seed, 99) for of_seed in times),
        "longest_s": max(max(of_seed) for of_seed in times),
        "longest_wait_s": max(max(outcome.first_wait.values()) for outcome in outcomes),
        "mean_service_s": statistics.mean(service),
        "starts_per_job": statistics.mean(outcome.starts / JOBS for outcome in outcomes),
        "cpu_s": time.process_time() - started,
    }


def mean_service(arrivals: list[Arrival]) -> float:
    """Return the mean seconds that a multicast takes alone, with set-up: the lower bound."""
    return statistics.mean(arrival.seconds + SET_UP for arrival in arrivals)


def completion_rows(seeds: int, policies: Iterable[str] = ("paper", DEFAULT)) -> list[Row]:
    """Return a row for every workload, policy and kind of ports, with its ratio to the paper's policy."""
    rows = []
    for kind, load in CELLS:
        paper = cell(kind, load, "paper", False, seeds)
        for policy in policies:
            for directional in (False, True):
                same = policy == "paper" and not directional
                row = paper if same else cell(kind, load, policy, directional, seeds)
                bar = BARS[kind][directional] if policy == DEFAULT else None
                ratio = row["mean_s"] / paper["mean_s"]
                kept = bar is None or (ratio <= bar and row["p99_s"] <= paper["p99_s"])
                rows.append({**row, "share_of_paper": ratio, "bar": bar, "kept": kept})
    return rows


def closed_rows(seeds: int) -> list[Row]:
    """Return the mean completion time of the closed loop, and its iterations in 300 s."""
    rows = []
    for policy in ("paper", DEFAULT):
        for directional in (False, True):
            progress(f"closed loop {policy}")
            outcomes = [play_closed(POLICIES[policy], seed, directional) for seed in range(seeds)]
            means = [statistics.mean(outcome.completion.values()) for outcome in outcomes]
            iterations = statistics.mean(len(outcome.completion) for outcome in outcomes)
            rows.append(
                {
                    "policy": policy,
                    "directional": directional,
                    "mean_s": statistics.mean(means),
                    "iterations": iterations,
                }
            )
    return rows


def decision_rows(kinds: Iterable[str], waiting_counts: Iterable[int]) -> list[Row]:
    """Return the CPU time of one event for each kind and number of waiting jobs, on 1000 racks with directional ports.

    Events are ends, and an arrival after each end that leaves fewer jobs waiting.
    """
    return [decision_row(kind, waiting) for kind in kinds for waiting in waiting_counts]


def decision_row(kind: str, waiting: int) -> Row:
    """Fill up to `waiting` jobs, then time ends, each followed by an arrival if fewer jobs wait."""
    progress(f"decisions {kind} {waiting}")
    rack_fabric = CompletionModel(POLICIES[DEFAULT], DECISION_RACKS // 3, True, DECISION_RACKS)
    arrivals = iter(enumerate(workload(kind, waiting + DECISIONS + DECISION_RACKS, 0.5, 0, DECISION_RACKS)))
    scheduler = rack_fabric.scheduler
    spent: dict[str, list[float]] = {"arrival": [], "end": []}
    count = 0

    def arrive() -> float:
        request, arrival = next(arrivals)
        before = time.process_time_ns()
        rack_fabric.submit(request, arrival.seconds, arrival.racks, rack_fabric.now)
        return (time.process_time_ns() - before) / 1e3

    while count < waiting:
        arrive()
        count = scheduler.waiting_count
    for _ in range(DECISIONS):
        before = time.process_time_ns()
        rack_fabric.step()
        spent["end"].append((time.process_time_ns() - before) / 1e3)
        if scheduler.waiting_count < waiting:
            spent["arrival"].append(arrive())
    return {
        "workload": kind,
        "waiting": waiting,
        "events_per_s": len(spent["end"]) / rack_fabric.now,
        **{
            f"{event}_{name}_us": measure(spent[event])
            for event in spent
            for name, measure in (
                ("mean", statistics.mean),
                ("p50", statistics.median),
                ("p99", lambda values: percentile(values, 99)),
                ("max", max),
            )
        },
    }


def print_completion(rows: list[Row]) -> None:
    """Print the table of completion times."""
    print(
        f"{'workload':10} {'policy':12} {'ports':12} {'mean s':>8} {'of paper':>9} {'bar':>7} {'p99 s':>8} "
        f"{'longest s':>10} {'wait s':>8} {'service s':>10} {'starts':>7}"
    )
    for row in rows:
        bar = "" if row["bar"] is None else f"1/{1 / row['bar']:.1f}"
        print(
            f"{row['workload']:6} {row['load']:.2f} {row['policy']:12} "
            f"{'each way' if row['directional'] else 'one count':12} {row['mean_s']:8.2f} "
            f"{'1/' + format(1 / row['share_of_paper'], '.1f'):>9} {bar:>7} {row['p99_s']:8.1f} "
            f"{row['longest_s']:10.1f} {row['longest_wait_s']:8.1f} {row['mean_service_s']:10.3f} "
            f"{row['starts_per_job']:7.2f}{'' if row['kept'] else '  MISSED'}"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer seeds: less than a minute")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    seeds = 1 if args.quick else 6
    claims = completion_rows(seeds)
    others = completion_rows(1 if args.quick else 3, POLICIES)
    closed = closed_rows(1 if args.quick else 3)
    decisions = decision_rows(("S3-LN", "FB") if args.quick else ("S3-LN", "ML", "FB"), WAITING)
    progress("")
    if args.json:
        figures = {"completion": claims, "policies": others, "closed_loop": closed, "decisions": decisions}
        print(json.dumps({"machine": machine.describe(), **figures}, indent=2))
        return
    print(machine.describe())
    print_completion(claims)
    print("\nAll policies:")
    print_completion(others)
    print("\nClosed loop, 100 jobs, 300 s:")
    for row in closed:
        ports = "each way" if row["directional"] else "one count"
        print(f"{row['policy']:12} {ports:12} mean {row['mean_s']:.2f} s, {row['iterations']:.0f} iterations")
    print(f"\nCPU per event, {DECISION_RACKS} racks, port each way, {DEFAULT}:")
    for row in decisions:
        print(
            f"{row['workload']:6} {row['waiting']:6} waiting: arrival p50 {row['arrival_p50_us']:.0f}, p99 "
            f"{row['arrival_p99_us']:.0f} us; end mean {row['end_mean_us']:.0f}, p50 {row['end_p50_us']:.0f}, p99 "
            f"{row['end_p99_us']:.0f}, max {row['end_max_us']:.0f} us ({row['events_per_s']:.0f} ends per second)"
        )


if __name__ == "__main__":
    main()

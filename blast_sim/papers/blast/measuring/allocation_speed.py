"""Claims about the time of the controller's decisions.

The controller's decision on a batch of as many multicasts as racks and four unicast requests per rack takes at most
0.1 ms of CPU per request: ranks, splitters, trees, rules, and journal records. This compares with the paper's 166 ms
(Blast, Table I) and 8.553 ms (one request, Table II). The greedy algorithm alone, a part of it, takes at most 0.5 ms at
1000 racks with 1000 pending multicasts, and at most 5 ms with the unicast requests in addition. With incremental
decisions, as in the controller, a further request or completion takes at most 2 ms (p99) with 1000 pending, 10 ms with
10,000.

`blast plan` makes the decisions named "the greedy alone"; the rest is the controller's own core and policy, without its
devices and its disk. A request with one receiver rack is an edge of two racks, which needs no splitter.

Workloads by name and seed from `workloads.py`. All times are CPU time of this process, input in memory as the algorithm
takes it. A core shared with other load is slower even in CPU time; the time of a loop of 10,000 additions in the
same seconds shows by how much (`loop_ms`).

    python -m blast_sim.papers.blast.measuring.allocation_speed [--quick] [--json]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence

from algorithms.b_matching import greedy
from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import CompetingGroup
from blast_sim.allocation import workloads
from blast_sim.allocation.workloads import WorkloadEdge, WorkloadInstance
from blast_sim.base.percentiles import percentile
from blast_sim.base.report import Row
from blast_sim.papers.blast.measuring import machine
from blast_sim.papers.blast.measuring.controller_decisions import PolicyAtWork, ServedCount, core_that_waits

PAPERS_TABLE_I: list[Row] = [
    {"method": "Blast", "racks": 1000, "milliseconds": 166.0, "traffic": "real unicast and multicast"},
    {"method": "c-Through", "racks": 1000, "milliseconds": 640.0, "traffic": "random unicast"},
    {"method": "Helios", "racks": 128, "milliseconds": 118.0, "traffic": "synthetic unicast"},
    {"method": "OSA", "racks": 80, "milliseconds": 48.0, "traffic": "unicast, average of synthetic and real"},
    {
        "method": "Blast, one request",
        "racks": 4,
        "milliseconds": 8.553,
        "traffic": "one multicast",
        "from": "the Blast paper, Table II",
    },
]
"""Table I as printed in the paper, each on its own machine, and the computation of Table II, on 4 racks."""

GREEDY_ALONE, CONTROLLERS_DECISION = "the greedy alone", "the controller's decision"
MULTICASTS, MIXED, ONE_REQUEST = "multicasts", "multicasts and unicast", "one multicast"
TESTBED_RACKS, TESTBED_SPLITTERS = 4, 2
ARRIVAL = "the controller's policy: one more comes (99th percentile)"
COMPLETION = "the controller's policy: one has ended (99th percentile)"

RACKS = (100, 200, 500, 1000, 2000, 5000, 10_000)
FAMILIES = ("P-contig", "P-random", "FB", "FB-K/4", "R3-5")


def progress(text: str) -> None:
    """Print a line to standard error that overwrites the previous one."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _greedy_milliseconds(groups: Sequence[CompetingGroup], feasibility: Feasibility) -> float:
    started = time.process_time_ns()
    greedy.select(groups, feasibility)
    return (time.process_time_ns() - started) / 1e6


def _loop_milliseconds() -> float:
    """Return the time of 10,000 additions: the speed of this core at this time."""
    started = time.process_time_ns()
    total = 0
    for number in range(10_000):
        total += number & 255
    return (time.process_time_ns() - started) / 1e6


def greedy_and_controller(kind: str, instance: WorkloadInstance, runs: int) -> Iterator[Row]:
    """Yield the greedy alone, and the controller's decision on the same requests, submitted before."""
    groups = instance.groups()
    edges = {"edges": len(groups)}
    greedy_ms = [_greedy_milliseconds(groups, instance.feasibility()) for _ in range(runs)]
    yield _row(f"{kind}, {GREEDY_ALONE}", instance.racks, greedy_ms) | edges
    decided_ms, served = _in_controller(instance, runs)
    yield (
        _row(f"{kind}, {CONTROLLERS_DECISION}", instance.racks, decided_ms)
        | edges
        | {
            "multicasts_served": served.multicasts,
            "unicasts_served": served.unicasts,
        }
    )


def _in_controller(instance: WorkloadInstance, runs: int) -> tuple[list[float], ServedCount]:
    times, served = [], ServedCount(0, 0)
    for _ in range(runs):
        core = core_that_waits(instance)
        gc.collect()
        started = time.process_time_ns()
        core.conclude(0.0)
        times.append((time.process_time_ns() - started) / 1e6)
        served = ServedCount.of(core)
    return times, served


def testbed() -> WorkloadInstance:
    """Return the paper's testbed (section V-A): four racks, two splitters 1:4, one request to all."""
    edge = WorkloadEdge(tuple(range(TESTBED_RACKS)), 300.0 * (TESTBED_RACKS - 1))
    return WorkloadInstance("testbed", 0, (1,) * TESTBED_RACKS, {workloads.FAN_OUT: TESTBED_SPLITTERS}, (edge,))


def one_shot(family: str, racks: int, pending: int, runs: int) -> list[float]:
    """Return the milliseconds of single decisions over all pending multicasts on an idle fabric, over five seeds."""
    found = []
    for seed in range(5):
        instance = workloads.instance(family, seed, racks, pending)
        groups = instance.groups()
        found += [_greedy_milliseconds(groups, instance.feasibility()) for _ in range(runs)]
    return found


def events(family: str, racks: int, pending: int, number: int) -> tuple[list[float], list[float]]:
    """Return the microseconds of each arrival and each completion, with `pending` groups waiting all the time.

    Completions end a random running group; arrivals keep the number of groups.
    """
    rng = random.Random(f"events/{family}/{racks}/{pending}/{number}")
    # Requests that arrive before the first completion may all be served.
    policy = PolicyAtWork(workloads.instance(family, 0, racks, 2 * pending + number))
    while policy.pending < pending:
        policy.arrive()
    gc.collect()
    arrivals: list[float] = []
    completions: list[float] = []
    missing = 0
    while len(arrivals) + len(completions) < number:
        if missing:
            taken, served = policy.arrive()
            arrivals.append(taken)
            missing += served - 1
        else:
            taken, served = policy.complete(rng.choice(policy.running()))
            completions.append(taken)
            missing += served
    return arrivals, completions


def table_one(racks: Sequence[int], runs: int, number: int) -> Iterator[Row]:
    """Yield the time of a decision in milliseconds, by method and racks, for the plot beside the paper's points.

    As many multicasts as racks (P-contig); `runs` for each row of whole decisions, `number` events for the others.
    """
    yield from greedy_and_controller(ONE_REQUEST, testbed(), 5 * runs)
    for count in racks:
        progress(f"{count} racks")
        for kind, family in ((MULTICASTS, "P-contig"), (MIXED, "P-contig+uni")):
            yield from greedy_and_controller(kind, workloads.instance(family, 0, count, count), min(runs, 5))
        for method, found in zip((ARRIVAL, COMPLETION), events("P-contig", count, count, number), strict=True):
            yield {"method": method, "racks": count, "milliseconds": percentile(found, 99) / 1e3, "edges": count}


def one_shot_rows(runs: int) -> Iterator[Row]:
    """Yield the time of the greedy algorithm alone for each family, at 1000 racks with 1000 pending multicasts."""
    for family in FAMILIES:
        progress(f"one shot, {family}")
        before = [_loop_milliseconds() for _ in range(runs)]
        times = one_shot(family, 1000, 1000, runs)
        loop = statistics.median(before + [_loop_milliseconds() for _ in range(runs)])
        yield {
            "family": family,
            "p50_ms": statistics.median(times),
            "p99_ms": percentile(times, 99),
            "loop_ms": loop,
            "p50_in_loops": statistics.median(times) / loop,
            "bar_ms": 0.5,
            "met": statistics.median(times) <= 0.5,
        }


def event_rows(number: int) -> Iterator[Row]:
    """Yield the time of incremental decisions for each family, with 1000 and with 10,000 pending multicasts."""
    for pending, bar in ((1000, 2000), (10_000, 10_000)):
        for family in FAMILIES:
            progress(f"events, {family}, {pending} pending")
            arrivals, completions = events(family, 1000, pending, number)
            p99 = percentile(arrivals, 99), percentile(completions, 99)
            yield {
                "family": family,
                "pending": pending,
                "events": len(arrivals) + len(completions),
                "arrival_p50_us": statistics.median(arrivals),
                "arrival_p99_us": p99[0],
                "completion_p50_us": statistics.median(completions),
                "completion_p99_us": p99[1],
                "completion_max_us": max(completions),
                "bar_us": bar,
                "met": max(p99) <= bar,
            }


def _row(method: str, racks: int, times: Sequence[float]) -> Row:
    return {"method": method, "racks": racks, "milliseconds": statistics.median(times), "slowest_ms": max(times)}


def show(title: str, rows: Sequence[Row]) -> None:
    """Print a table of these rows; a column that a row lacks stays empty there."""
    print(f"\n{title}")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns, *([_cell(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer runs and at most 1000 racks: under a minute")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    racks, runs, number = ((100, 300, 1000), 5, 2000) if args.quick else (RACKS, 7, 6000)
    results: Row = {
        "machine": machine.describe(),
        "one_shot": list(one_shot_rows(4 * runs)),
        "events": list(event_rows(number)),
        "table_one": list(table_one(racks, runs, number)),
        "papers_table_one": PAPERS_TABLE_I,
    }
    progress("")
    if args.json:
        print(json.dumps(results, indent=2))
        return
    print(results["machine"])
    show("One decision over 1000 pending multicasts, 1000 racks (CPU)", results["one_shot"])
    show("Decisions one event at a time, 1000 racks (CPU)", results["events"])
    show(
        "Decisions against racks (CPU; with unicast at 1000 racks: the controller 500 ms, the greedy alone 5 ms)",
        results["table_one"],
    )
    show(
        "The paper's Table I, and the computation of its Table II: compare with the controller's decisions",
        results["papers_table_one"],
    )


if __name__ == "__main__":
    main()

"""Claim: when 2, 5 or 10 % of 100 nodes of a pipeline fail, every other node receives the whole file.

The claim is that of section IV-G of the Kascade paper. The nodes fail during a transfer, at once or one after the
other, and the report names exactly the failed nodes. Simultaneous failures cost one timeout together, sequential
failures one timeout each.

n1 sends along a pipeline to n2 … n100. The nodes of the paper fail, in each of three modes: killed (the kernel resets
connections at once), frozen (SIGSTOP: the kernel still acknowledges) and vanished (the link is cut). The paper sends
5 GB at 80 MB/s in 62.5 s, with failures from 10 s on, 2 to 10 s apart, and a timeout of 1 s; ours is 1 s of silence.
Here 80 MB are sent at 2 MB/s in 42 s, with failures at the same times. In transfers shorter than 40 s, failures are
earlier and closer in proportion; failures closer than the timeout overlap and cost less. On slower links the control
messages would take a greater part of the sender's link. With more than 100 nodes, the same nodes of every hundred fail.
As root:

    .venv/bin/python benchmarks/transfers/pipeline_failures.py --keep failures.jsonl   # can be interrupted and resumed
    .venv/bin/python benchmarks/transfers/pipeline_failures.py --nodes 200 --rate 8 --megabytes 40 --repeats 1
    .venv/bin/python benchmarks/transfers/pipeline_failures.py --quick                 # 30 nodes, 20 MB, once

Receivers stay up between transfers; failed receivers are restarted. `idle` is the minimum idle share of the processors
during a transfer: if it is zero, the machine is too slow for these nodes, and starved nodes look dead. Exit status 1 if
a node that did not fail lacks the whole file, or if the report is wrong.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks import machine
from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.bed import Plan
from benchmarks.transfers.bed.failures import PrerequisiteError, RunFailedError
from benchmarks.transfers.bed.kascade_failures import NO_FAILURE, SCENARIOS, Scenario, time_scale
from benchmarks.transfers.bed.kept_rounds import KeptRounds, Result
from benchmarks.transfers.bed.measured import AVAILABLE, ProcessorTimes
from benchmarks.transfers.bed.shape import Shape
from benchmarks.transfers.bed.struck import MODES, FailureMode, Standing
from benchmarks.transfers.bed.tools.blast import BlastPipeline
from blast_sim.base.confidence import half_width
from blast_sim.base.options import positive
from mininet_topos.kernel.termination import end_in_order

NODES, QUICK_NODES, MIN_NODES = 100, 30, 10
MEGABYTES, QUICK_MEGABYTES = 80, 20
RATE_MBPS, REPEATS = 16.0, 20


@dataclass(frozen=True)
class Case:
    """A scenario with one failure mode; None: no node fails."""

    scenario: Scenario
    mode: FailureMode | None = None

    @property
    def name(self) -> str:
        """The key of kept results."""
        return self.scenario.name if self.mode is None else f"{self.mode.name}, {self.scenario.name}"


def main() -> bool:
    """Measure and print; return whether all survivors have the file and all reports are correct."""
    end_in_order(script.ENDED, signal.SIGINT)
    args = _arguments()
    size, links = args.megabytes * 1_000_000, Shape(args.rate)
    assert links.tcp_limit is not None
    undisturbed = size * 8 / links.tcp_limit
    all_cases = [Case(NO_FAILURE), *(Case(scenario, MODES[mode]) for mode in args.ways for scenario in SCENARIOS)]
    cases = {case.name: case for case in all_cases}
    kept = KeptRounds(args.keep, {"nodes": args.nodes, "bytes": size, "rate_mbps": args.rate})
    if missing := kept.missing(cases, args.repeats):
        with _standing(Plan(args.nodes - 1, links, light=False), size) as standing:
            # The first transfer warms up the receivers and does not count.
            _measure(cases[NO_FAILURE.name], standing, args.nodes, undisturbed)
            for number, name in script.runs(cases, args.repeats, args.repeats * len(cases) - missing):
                if not kept.has(number, name):
                    kept.add(number, name, _measure(cases[name], standing, args.nodes, undisturbed))
    rows = _rows(cases, args, kept)
    head = f"{args.nodes} nodes, {args.megabytes} MB, {links.name} each: {undisturbed:.1f} s at least, failures at "
    head += f"{time_scale(undisturbed):.2g} of the paper's times"
    machine.show(args.json, {"failures": rows}, [head, _HEAD, *map(_line, rows)])
    return not any(row["wrong"] for row in rows)


@contextmanager
def _standing(plan: Plan, size: int) -> Iterator[Standing]:
    with script.bed_and_file(plan, size) as (bed, source):
        tool = BlastPipeline()
        # The sender is n1, so host h is n<h + 1>.
        tool.names = {receiver: f"n{receiver + 1}" for receiver in plan.hosts[1:]}
        try:
            with Standing(tool, bed, source) as standing:
                yield standing
        except RunFailedError as failure:
            raise PrerequisiteError(f"receivers cannot be started: {failure}") from None


def _measure(case: Case, standing: Standing, nodes: int, undisturbed: float) -> Result:
    moments = [(at, [node - 1 for node in some]) for at, some in case.scenario.moments(nodes, undisturbed)]
    times = ProcessorTimes()
    struck = standing.carry(60 + 4 * undisturbed, case.mode, moments)
    idle = times.share(AVAILABLE)
    # A transfer without a report did not end: its time does not count.
    seconds = (struck.others_seconds, struck.sender_seconds) if struck.report else (None, None)
    return {"seconds": seconds[0], "sender_seconds": seconds[1], "idle": idle, "wrong": list(struck.wrong)}


def _rows(cases: Mapping[str, Case], args: argparse.Namespace, kept: KeptRounds) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, case in cases.items():
        results = kept.of(name, args.repeats)
        seconds = [result["seconds"] for result in results if result["seconds"] is not None]
        wrong = {f"{words} (processors {one['idle']:.0%} idle)" for one in results for words in one["wrong"]}
        row = {
            "way": case.mode.name if case.mode else "none",
            "scenario": case.scenario.name,
            "nodes": args.nodes,
            "rate_mbps": args.rate,
            "bytes": args.megabytes * 1_000_000,
            "seconds": seconds,
            "sender_seconds": [one["sender_seconds"] for one in results if one["sender_seconds"] is not None],
            "idle": round(min(result["idle"] for result in results), 3),
            "right": sum(not one["wrong"] for one in results),
            "wrong": sorted(wrong),
        }
        undisturbed: Sequence[float] = (rows or [row])[0]["seconds"]
        row["lost_seconds"] = median(seconds) - median(undisturbed) if seconds and undisturbed else None
        rows.append(row)
    return rows


_HEAD = f"{'':<38}{'MB/s, 95 %':>14}{'others complete, s':>25}{'lost, s':>9}{'sender, s':>11}{'idle':>6}"


def _line(row: dict[str, Any]) -> str:
    name, times = f"{row['way']:<10}{row['scenario']}", row["seconds"]
    verdict = "; ".join(row["wrong"]) or f"{len(times)}×, all others complete, exactly the failed ones named"
    if not times:
        return f"{name:<38}{verdict}"
    rates = [row["bytes"] / 1e6 / seconds for seconds in times]
    rate = f"{mean(rates):.3f}±{half_width(rates):.3f}"
    spread = f"{median(times):.2f} ({min(times):.2f}-{max(times):.2f})"
    sender, lost = median(row["sender_seconds"]), row["lost_seconds"] or 0.0
    return f"{name:<38}{rate:>14}{spread:>25}{lost:>9.2f}{sender:>11.2f}{row['idle']:>6.0%}   {verdict}"


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument(
        "--nodes", type=script.count, default=NODES, help=f"number of nodes with the sender (default: {NODES})"
    )
    rate = f"rate of each link in Mbit/s (default: {RATE_MBPS:g})"
    parser.add_argument("--rate", type=positive, default=RATE_MBPS, help=rate)
    modes = f"failure modes, separated by commas: {','.join(MODES)} (default: all)"
    parser.add_argument("--ways", type=script.some_of(MODES), default=list(MODES), help=modes)
    keep = "file that keeps every result, so that the script can resume"
    parser.add_argument("--keep", type=Path, metavar="FILE", help=keep)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_NODES} nodes, {QUICK_MEGABYTES} MB, one repeat")
    args = parser.parse_args()
    if args.quick:
        args.nodes, args.megabytes, args.repeats = QUICK_NODES, QUICK_MEGABYTES, 1
    if args.nodes < MIN_NODES:
        parser.error(f"with --nodes {args.nodes} no node fails: give at least {MIN_NODES}")
    return args


if __name__ == "__main__":
    script.run(main)

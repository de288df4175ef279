"""Claim (section IV-G of the Kascade paper): 2, 5 or 10 % of 100 nodes fail in mid-transfer, at once or one after the
other; every other node gets the whole file, and the report names exactly those that failed. What fails at once costs
one time-out, what fails one after the other costs one for each.

n1 sends along a pipeline to n2 … n100, of which those fail that the paper names, in each of three ways: killed (the
kernel resets connections at once, so that nobody waits for a time-out), frozen (SIGSTOP: the kernel goes on
acknowledging) and vanished (the link is cut: no packet and no reset passes). The paper sends 5 GB at 80 MB/s and lets
nodes fail from 10 s on, 2 to 10 s apart, in 62.5 s; its time-out is 1 s, ours is 1 s of silence. Here it is 80 MB at
2 MB/s: 42 s, with the failures at the same seconds and less of quiet after the last one. Transfers shorter than 40 s
have them earlier and nearer to each other in proportion; nearer than the time-out they overlap, and cost less than one
by one. Slower links are no way to more nodes: what the sender has to say to each receiver takes a greater part of its
own link, and what that leaves free behind it makes up for time-outs. With more than 100 nodes the same ones fail in
every hundred. As root:

    .venv/bin/python benchmarks/pipeline_failures.py --keep failures.jsonl   # goes on where it was ended
    .venv/bin/python benchmarks/pipeline_failures.py --nodes 200 --rate 8 --megabytes 40 --repeats 1
    .venv/bin/python benchmarks/pipeline_failures.py --quick                 # 30 nodes, 20 MB, once

Receivers stand from one transfer to the next; those that failed are started anew. `idle` is the least that the
processors had left during a transfer, at most for who gives way (nice -n 19): where that is nothing, the machine does
not carry so many nodes, and those that are starved are taken for dead. Exit status 1 if a node that did not fail has no
whole file, or the report is wrong.
"""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import machine
from tqdm import tqdm
from transport_bed import script
from transport_bed.bed import Plan
from transport_bed.failures import CannotRun, RunFailed
from transport_bed.idle import Idle
from transport_bed.kascade_failures import LEAST_GAP, NO_FAILURE, SCENARIOS, Scenario, time_scale
from transport_bed.kept_rounds import KeptRounds, Result, in_turn, missing
from transport_bed.shape import Shape, shape
from transport_bed.standing import Standing
from transport_bed.tools.blast import BlastPipeline
from transport_bed.ways import WAYS, Way

from blast_sim.base.confidence import half_width
from blast_transport.carriers.pipeline.protocol.leg import PipelineTimings
from mininet_topos.ending import end_in_order

NODES, QUICK_NODES, LEAST_NODES = 100, 30, 10
MEGABYTES, QUICK_MEGABYTES = 80, 20
RATE_MBPS = 16.0
REPEATS = 20
NO_WAY = "none"
"""The way in which nothing fails."""


@dataclass(frozen=True)
class Case:
    """A scenario with one way of failing; None: nothing fails."""

    scenario: Scenario
    way: Way | None = None

    @property
    def name(self) -> str:
        """For results that are kept."""
        return self.scenario.name if self.way is None else f"{self.way.name}, {self.scenario.name}"


def main() -> bool:
    """Measure and print; whether all survivors had the file and the reports were right."""
    end_in_order(script.ENDED, signal.SIGINT)
    args = _arguments()
    size, links = args.megabytes * 1_000_000, Shape(args.rate)
    assert links.tcp_limit is not None
    undisturbed = size * 8 / links.tcp_limit
    cases = {case.name: case for case in _cases(args.ways)}
    kept = KeptRounds(args.keep, {"nodes": args.nodes, "bytes": size, "rate_mbps": args.rate})
    if todo := missing(cases, args.repeats, kept):
        with (
            _standing(Plan(args.nodes - 1, links, light=False), size) as standing,
            tqdm(total=args.repeats * len(cases), initial=args.repeats * len(cases) - todo, disable=None) as bar,
        ):
            measures = {
                name: partial(_measure, case, standing, args.nodes, undisturbed) for name, case in cases.items()
            }
            # The first transfer finds cold receivers.
            measures[NO_FAILURE.name]()
            in_turn(measures, args.repeats, kept, bar)
    rows = _rows(cases, args, kept)
    if args.json:
        print(json.dumps({"machine": machine.describe(), "failures": rows}, indent=2))
    else:
        print("\n".join([machine.describe(), _setting(args, undisturbed), _HEAD, *map(_line, rows)]))
    return not any(row["wrong"] for row in rows)


def _cases(ways: Sequence[str]) -> list[Case]:
    return [Case(NO_FAILURE), *(Case(scenario, WAYS[way]) for way in ways for scenario in SCENARIOS)]


@contextmanager
def _standing(plan: Plan, size: int) -> Iterator[Standing]:
    with script.bed_and_file(plan, size) as (bed, source):
        tool = BlastPipeline()
        # The source is n1, so host h is n<h + 1>.
        tool.names = {receiver: f"n{receiver + 1}" for receiver in plan.hosts[1:]}
        try:
            with Standing(tool, bed, source) as standing:
                yield standing
        except RunFailed as failure:
            raise CannotRun(f"receivers cannot be started: {failure}") from None


def _measure(case: Case, standing: Standing, nodes: int, undisturbed: float) -> Result:
    moments = [(at, [node - 1 for node in some]) for at, some in case.scenario.moments(nodes, undisturbed)]
    idle = Idle()
    struck = standing.carry(60 + 4 * undisturbed, case.way, moments)
    # What came to no end has taken no time that counts.
    seconds = (struck.others_seconds, struck.sender_seconds) if struck.report else (None, None)
    return {"seconds": seconds[0], "sender_seconds": seconds[1], "idle": idle.to_be_had, "wrong": list(struck.wrong)}


def _rows(cases: Mapping[str, Case], args: argparse.Namespace, kept: KeptRounds) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, case in cases.items():
        results = kept.of(name, args.repeats)
        seconds = [result["seconds"] for result in results if result["seconds"] is not None]
        row = {
            "way": case.way.name if case.way else NO_WAY,
            "scenario": case.scenario.name,
            "nodes": args.nodes,
            "rate_mbps": args.rate,
            "bytes": args.megabytes * 1_000_000,
            "seconds": seconds,
            "sender_seconds": [one["sender_seconds"] for one in results if one["sender_seconds"] is not None],
            "idle": round(min(result["idle"] for result in results), 3),
            "wrong": sorted({_with_idle(sentence, result) for result in results for sentence in result["wrong"]}),
        }
        undisturbed = (rows or [row])[0]["seconds"]
        row["lost_seconds"] = median(seconds) - median(undisturbed) if seconds and undisturbed else None
        rows.append(row)
    return rows


def _with_idle(sentence: str, result: Result) -> str:
    return f"{sentence} (processors {result['idle']:.0%} idle)"


def _setting(args: argparse.Namespace, undisturbed: float) -> str:
    gap, silence = LEAST_GAP * time_scale(undisturbed), PipelineTimings().silence
    apart = "each has its effect before the next" if gap > silence else "those overlap, and cost less for that"
    return (
        f"{args.nodes} nodes, {args.megabytes} MB, {Shape(args.rate).name} each: {undisturbed:.1f} s at least. "
        f"Silence of {silence:g} s is death; of failures one after the other the nearest are {gap:.2g} s apart: {apart}"
    )


_HEAD = f"{'':<38}{'MB/s, 95 %':>14}{'others have it, s':>25}{'lost, s':>9}{'sender, s':>11}{'idle':>6}"


def _line(row: dict[str, Any]) -> str:
    name, times = f"{row['way']:<10}{row['scenario']}", row["seconds"]
    right = f"{len(times)}×, all others complete, exactly the dead named"
    verdict = "; ".join(row["wrong"]) or right
    if not times:
        return f"{name:<38}{verdict}"
    rates = [row["bytes"] / 1e6 / seconds for seconds in times]
    rate = f"{mean(rates):.3f}±{half_width(rates):.3f}"
    spread = f"{median(times):.2f} ({min(times):.2f}-{max(times):.2f})"
    sender, lost = median(row["sender_seconds"]), row["lost_seconds"] or 0.0
    return f"{name:<38}{rate:>14}{spread:>25}{lost:>9.2f}{sender:>11.2f}{row['idle']:>6.0%}   {verdict}"


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument("--nodes", type=script.count, default=NODES, help=f"with the sender (default: {NODES})")
    parser.add_argument("--rate", type=_rate, default=RATE_MBPS, help=f"of each link, Mbit/s (default: {RATE_MBPS:g})")
    parser.add_argument(
        "--ways", type=script.some_of(WAYS), default=list(WAYS), help=f"of failing, of {','.join(WAYS)} (default: all)"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="keep every result here; those it has are not measured again"
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_NODES} nodes, {QUICK_MEGABYTES} MB, one repeat")
    args = parser.parse_args()
    if args.quick:
        args.nodes, args.megabytes, args.repeats = QUICK_NODES, QUICK_MEGABYTES, 1
    if args.nodes < LEAST_NODES:
        parser.error(f"with --nodes {args.nodes} nobody fails: give {LEAST_NODES} at least")
    return args


def _rate(text: str) -> float:
    try:
        rate = shape(text).rate_mbps
    except ValueError:
        rate = None
    if rate is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no rate in Mbit/s")
    return rate


if __name__ == "__main__":
    script.run(main)

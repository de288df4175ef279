"""Claim: whatever is wrong with Blast, a Spark job with its plugin is at most 5 % slower than without, and correct.

A standalone cluster as in benchmarks/spark_broadcast.py, with two jobs that both run all the time, one with the plugin
and one without. They take turns: one broadcasts, all its executors read that and add it up, the other does nothing.
Every second round goes backwards, and the first does not count; ratios are of the pairs of a round, with an interval
of 95 % by ranks. A fault that comes in the middle comes in both jobs, after a third of the time that one copy takes on
a link. Seconds are those from the call of `broadcast` until all tasks have ended. Small broadcasts (twenty in a turn)
stay below the plugin's threshold. Also told: by what the broadcasts of the plugin's job went, the first round's too.
As root, with nothing else running:

    scripts/setup spark && mvn -q -f clients/java/pom.xml package -pl spark -am -DskipTests
    .venv/bin/python benchmarks/spark_faults.py
    .venv/bin/python benchmarks/spark_faults.py --faults lost,killed --megabytes 20

Exit status 1 if a task read other bytes; bars of time decide nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import machine
from median_interval import median_interval
from spark_bed.asking import Answer, AskedJob
from spark_bed.faults import FAULTS, Fault
from transport_bed import script

from mininet_topos.spark.installation import find_plugin, find_spark
from mininet_topos.spark.plan import spark_plan
from mininet_topos.spark.room import SparkRoom, spark_room

MEGABYTES, REPEATS, EXECUTORS, RATE_MBPS = 10, 15, 3, 40
SMALL_BYTES, SMALL_TIMES = 100_000, 20
BAR, CONFIDENCE = 1.05, 0.95
WITH, WITHOUT = "with", "without"


@dataclass(frozen=True)
class Case:
    """What came of one fault: a pair of answers for each round, and by what the plugin's broadcasts went."""

    fault: Fault
    ours: list[Answer]
    own: list[Answer]
    ways: Counter[str]

    @property
    def equal(self) -> bool:
        """Every task read what was sent."""
        return all(answer.equal for answer in (*self.ours, *self.own))


def main() -> bool:
    """Measure and print; whether every task read what was sent."""
    args = _arguments()
    jar, spark = find_plugin(), find_spark()
    report: dict[str, Any] = {
        "machine": machine.describe(),
        "megabytes": args.megabytes,
        "executors": args.executors,
        "rate_mbps": args.rate_mbps,
        "rows": {},
    }
    equal = True
    with spark_room(spark_plan(args.executors + 1, args.rate_mbps), spark, jobs=2) as room:
        if not args.json:
            print("\n".join(_head(report)), flush=True)
        for name in args.faults:
            case = _case(room, jar, name, args)
            equal = equal and case.equal
            report["rows"][name] = _row(case)
            if not args.json:
                print(_line(report["rows"][name]), flush=True)
    if args.json:
        print(json.dumps(report, indent=2))
    return equal


def _case(room: SparkRoom, jar: Path, name: str, args: argparse.Namespace) -> Case:
    fault = FAULTS[name]
    memory = f"{1024 + 6 * args.megabytes}m"
    conf = {"spark.driver.memory": memory, "spark.executor.memory": memory}
    plugin = {**conf, **room.plugin_conf(jar), **fault.conf}
    with (
        fault.lasting(room),
        AskedJob(room, f"{name}-{WITHOUT}", conf) as own,
        AskedJob(room, f"{name}-{WITH}", plugin) as ours,
    ):
        turns = {WITHOUT: partial(_turn, room, own, fault, args), WITH: partial(_turn, room, ours, fault, args)}
        answers = script.in_turn(turns, args.repeats)
    return Case(fault, answers[WITH], answers[WITHOUT], Counter(ours.ways))


def _turn(room: SparkRoom, job: AskedJob, fault: Fault, args: argparse.Namespace) -> Answer:
    size = args.megabytes * 1_000_000
    if fault.small:
        return job.ask(SMALL_TIMES, SMALL_BYTES)

    def sudden(asked: AskedJob) -> None:
        time.sleep(size * 8 / (args.rate_mbps * 1e6) / 3)
        fault.sudden(room, asked)

    try:
        return job.ask(1, size, sudden)
    finally:
        fault.mended(room)


def _row(case: Case) -> dict[str, Any]:
    pairs = [one.seconds / other.seconds for one, other in zip(case.ours, case.own, strict=True)]
    low, middle, high = median_interval(pairs, CONFIDENCE)
    return {
        "fault": case.fault.title,
        "small": case.fault.small,
        "seconds": statistics.median(answer.seconds for answer in case.ours),
        "own_seconds": statistics.median(answer.seconds for answer in case.own),
        "ratio": middle,
        "interval": [low, high],
        "pairs": pairs,
        "equal": case.equal,
        "ways": dict(case.ways),
    }


def _head(report: Mapping[str, Any]) -> list[str]:
    copy = report["megabytes"] * 8 / report["rate_mbps"]
    return [
        report["machine"],
        f"{report['megabytes']} MB to {report['executors']} executors, every link {report['rate_mbps']:g} Mbit/s: one "
        f"copy on a link takes {copy:.2f} s",
        f"{'':<48}{'without':>10}{'with':>10}{'ratio':>8}{'95 %':>16}   bar",
    ]


def _line(row: Mapping[str, Any]) -> str:
    low, high = row["interval"]
    held = low <= 1 <= high if row["small"] else row["ratio"] <= BAR
    bar = "interval has 1" if row["small"] else f"{BAR}"
    ways = ", ".join(f"{way or 'Spark'} {count}" for way, count in row["ways"].items()) or "Spark"
    return (
        f"{row['fault']:<48}{row['own_seconds']:>8.2f} s{row['seconds']:>8.2f} s{row['ratio']:>8.3f}"
        f"{f'{low:.3f}-{high:.3f}':>16}   {bar}{'' if held else '  MISSED'}"
        f"{'' if row['equal'] else '  OTHER BYTES'}; went by: {ways}"
    )


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument("--executors", type=script.count, default=EXECUTORS, help=f"(default: {EXECUTORS})")
    parser.add_argument("--rate-mbps", type=script.count, default=RATE_MBPS, help=f"of every link ({RATE_MBPS})")
    parser.add_argument(
        "--faults", type=script.some_of(FAULTS), default=list(FAULTS), help=f"of {','.join(FAULTS)} (default: all)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    script.run(main)

"""Claim (section IV-G of the Kascade paper): 2, 5 or 10 % of 100 nodes die in mid-transfer, at once or one after the
other; every other node gets the whole file, and the report names exactly the dead.

n1 sends along a pipeline to n2 … n100; killed (-9) are the nodes that the paper names. It sends 5 GB at 80 MB/s and
kills from 10 s on; here it is 50 MB at 2 MB/s, and the moments are in the same proportion to the whole. As root:

    .venv/bin/python benchmarks/pipeline_failures.py                       # about 20 minutes, 8 GB of memory
    .venv/bin/python benchmarks/pipeline_failures.py --quick               # 30 nodes, 10 MB, once

Exit status 1 if a node has no whole file or the report is wrong.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import machine
from transport_bed import script
from transport_bed.bed import Bed, Plan
from transport_bed.shape import Shape
from transport_bed.struck import Struck, at_times, struck_transfer
from transport_bed.tools.blast import BlastPipeline

NODES, QUICK_NODES = 100, 30
SHAPE = Shape(16.0)
MEGABYTES, QUICK_MEGABYTES = 50, 10
PAPER_SECONDS = 5e9 / 80e6
"""How long the paper's transfer took without failures."""


@dataclass(frozen=True)
class Scenario:
    """As in the paper: which nodes (from 1) die how many seconds after the start."""

    name: str
    deaths: tuple[tuple[float, tuple[int, ...]], ...]


TWO, FIVE, TEN = (29, 69), (9, 29, 49, 69, 89), (9, 19, 29, 39, 49, 59, 69, 79, 89, 99)
SCENARIOS = (
    Scenario("no failure", ()),
    *(Scenario(f"{len(nodes)} % at once", ((10.0, nodes),)) for nodes in (TWO, FIVE, TEN)),
    *(
        Scenario(
            f"{len(nodes)} % one after the other",
            tuple((10.0 + step * number, (node,)) for number, node in enumerate(nodes)),
        )
        for nodes, step in ((TWO, 10.0), (FIVE, 4.0), (TEN, 2.0))
    ),
)


def main() -> bool:
    """Measure and print; whether all survivors had the file and the reports were right."""
    parser = script.parser(__doc__, MEGABYTES, repeats=3)
    parser.add_argument(
        "--nodes", type=script.count, default=NODES, help="those of the paper beyond this number do not exist"
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_NODES} nodes, {QUICK_MEGABYTES} MB, one repeat")
    args = parser.parse_args()
    if args.quick:
        args.nodes, args.megabytes, args.repeats = QUICK_NODES, QUICK_MEGABYTES, 1
    with script.bed_and_file(Plan(args.nodes - 1, SHAPE, light=False), args.megabytes * 1_000_000) as (bed, source):
        measures: dict[str, Callable[[], Struck]] = {
            scenario.name: partial(_measure, scenario, bed, source) for scenario in SCENARIOS
        }
        results = script.in_turn(measures, args.repeats)
    rows = [_row(name, args, runs) for name, runs in results.items()]
    if args.json:
        print(json.dumps({"machine": machine.describe(), "failures": rows}, indent=2))
    else:
        print(machine.describe())
        print(f"{args.nodes} nodes, {args.megabytes} MB, {SHAPE.name} each, {args.repeats} repeats, medians (min-max)")
        print("\n".join(map(_line, rows)))
    return not any(row["wrong"] for row in rows)


def _measure(scenario: Scenario, bed: Bed, source: Path) -> Struck:
    tool = BlastPipeline()
    # The source is n1, so host h is n<h + 1>.
    tool.names = {receiver: f"n{receiver + 1}" for receiver in bed.plan.hosts[1:]}
    assert SHAPE.tcp_limit is not None
    undisturbed = source.stat().st_size * 8 / SHAPE.tcp_limit
    moments = [
        (undisturbed * seconds / PAPER_SECONDS, [node - 1 for node in nodes if node <= bed.plan.receivers + 1])
        for seconds, nodes in scenario.deaths
    ]
    dying = [host for _, hosts in moments for host in hosts]
    strike = at_times(moments, signal.SIGKILL)
    return struck_transfer(tool, bed, source, limit_seconds=60 + 4 * undisturbed, victims=dying, strike=strike)


def _row(name: str, args: argparse.Namespace, runs: Sequence[Struck]) -> dict[str, Any]:
    times = [run.others_seconds for run in runs]
    return {
        "scenario": name,
        "nodes": args.nodes,
        "rate_mbps": SHAPE.rate_mbps,
        "bytes": args.megabytes * 1_000_000,
        "seconds": times,
        "megabytes_per_second": args.megabytes / statistics.median(times),
        "sender_seconds": [run.sender_seconds for run in runs],
        "wrong": sorted({sentence for run in runs for sentence in run.wrong}),
    }


def _line(row: dict[str, Any]) -> str:
    times = row["seconds"]
    spread = f"{statistics.median(times):.2f} s ({min(times):.2f}-{max(times):.2f})"
    right = "all others complete, exactly the dead named" if not row["wrong"] else "; ".join(row["wrong"])
    return f"{row['scenario']:<28}{row['megabytes_per_second']:>6.2f} MB/s{spread:>26}   {right}"


if __name__ == "__main__":
    script.run(main)

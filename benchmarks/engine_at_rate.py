"""Claim: by light at 400 Mbit/s, which any machine bears, the compiled engine brings a file at the rate that Python's
brings it at, within a hundredth, and its processes use at most 0.6 of the processor time of Python's.

Links of 400 Mbit/s, a file in memory; both engines in turn, at both ends. Processor seconds, user and system, are the
operating system's for whole processes; what a file of one block takes is the start, and is taken off. What counts is
the median of the ratios of rounds, with an interval of 90 % that assumes nothing of how they spread. As root:

    .venv/bin/python benchmarks/engine_at_rate.py                                 # N = 3, 7, 15: ten minutes
    .venv/bin/python benchmarks/engine_at_rate.py --receivers 3 --megabytes 100 --repeats 3

A bar that is missed is told; no time decides the exit status.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import machine
from engine_transfers import Taken, by_both_engines, small_beside, transfer
from ratios import Ratio, ratio_words
from transport_bed import script
from transport_bed.bed import Plan
from transport_bed.shape import Shape

from blast_transport.base.engines import COMPILED, PYTHON, check_engine

RATE_MBPS = 400.0
RECEIVERS, MEGABYTES, REPEATS = (3, 7, 15), 200, 7
OF_RATE, OF_PROCESSOR = 0.99, 0.6
_CONGESTION_CONTROL = "reno"


def main() -> bool:
    """Measure and print."""
    args = _arguments()
    rows = [_row(receivers, args) for receivers in args.receivers]
    if args.json:
        print(json.dumps({"machine": machine.describe(), "repeats": args.repeats, "rows": rows}, indent=2))
    else:
        print(
            f"{machine.describe()}\n{RATE_MBPS:g} Mbit/s, {args.megabytes} MB, {args.repeats} rounds: medians, ratios"
        )
        print("\n".join(line for row in rows for line in _lines(row)))
    return True


def _row(receivers: int, args: argparse.Namespace) -> dict[str, Any]:
    size = args.megabytes * 1_000_000
    plan = Plan(receivers, Shape(RATE_MBPS), congestion_control=_CONGESTION_CONTROL)
    with script.bed_and_file(plan, size) as (bed, source):
        small, measure, tools = small_beside(source), partial(transfer, bed, source.parent), by_both_engines("optical")
        starts = {engine: measure(small, tool) for engine, tool in tools.items()}
        measures: dict[str, Callable[[], Taken]] = {
            engine: partial(measure, source, tool) for engine, tool in tools.items()
        }
        rounds = script.in_turn(measures, args.repeats)
    costs = {engine: [taken - starts[engine] for taken in rounds[engine]] for engine in tools}
    pairs = list(zip(costs[COMPILED], costs[PYTHON], strict=True))
    rate = Ratio("rate, of python's", [theirs.seconds / ours.seconds for ours, theirs in pairs], OF_RATE)
    busy = Ratio("processor time, of python's", [ours.both / theirs.both for ours, theirs in pairs], most=OF_PROCESSOR)
    return {
        "receivers": receivers,
        "engines": {engine: _told(costs[engine], size) for engine in tools},
        "ratios": [rate.told(), busy.told()],
    }


def _told(costs: list[Taken], size: int) -> dict[str, float]:
    gigabytes = size / 1e9
    return {
        "mbps": statistics.median(size * 8e-6 / one.seconds for one in costs),
        "sender": statistics.median(one.sender.both / gigabytes for one in costs),
        "receivers": statistics.median(one.receivers.both / gigabytes for one in costs),
    }


def _lines(row: dict[str, Any]) -> list[str]:
    lines = [
        f"{row['receivers']} receivers, {engine}: {told['mbps']:.0f} Mbit/s, processor s per GB: sender "
        f"{told['sender']:.2f}, receivers {told['receivers']:.2f}"
        for engine, told in row["engines"].items()
    ]
    return lines + [f"  {ratio_words(one)}" for one in row["ratios"]]


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    numbers = f"N,… (default: {','.join(map(str, RECEIVERS))})"
    parser.add_argument("--receivers", type=script.counts, default=list(RECEIVERS), help=numbers)
    args = parser.parse_args()
    check_engine(COMPILED)
    return args


if __name__ == "__main__":
    script.run(main)

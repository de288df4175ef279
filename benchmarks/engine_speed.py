"""Claims: beside a program in C or Rust that verifies what it receives and does nothing else, the compiled engine
brings a file to one receiver at >= 1.1 of its rate by light, and along a pipeline at >= 0.95 of it; to more by light at
>= 0.7 of the verifying floor. Its processes use at most a third of the user time of Python's, digests left out, and its
receivers at most 1.25 times the processor time of that program's.

All carry the same file in memory in turn, unshaped: naive TCP, with and without a digest at the receivers (BLAKE3,
taken while it is hot); the floor, which is N processes that digest and write as much, and one more that digests; ours,
by both engines. With one receiver each end has a processor of its own. The clock runs from the first byte at a
receiver to the last copy that is whole and verified (plain naive TCP, which says nothing of that: from its sender's
start). Processor seconds, user and system, are the operating system's for whole processes. What a file of one block
takes, its seconds and those of processors, is the start: it is told apart and taken off. TCP is Reno, which every
machine has, and which does not pace: timers of those that do would take time from whoever runs. What counts is the
median of the ratios of rounds, with an interval of 90 % that assumes nothing of how they spread (by ranks). As root,
with nothing else running:

    .venv/bin/python benchmarks/engine_speed.py                                # N = 1, 7, 15; an hour, 18 GB of memory
    .venv/bin/python benchmarks/engine_speed.py --cells pipeline:1 --megabytes 1000 --repeats 5

A bar that is missed is told; no time decides the exit status.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import machine
from engine_transfers import Taken, by_both_engines, small_beside, transfer
from processor_cost import used_by
from ratios import Ratio, ratio_words
from transport_bed import script
from transport_bed.bed import Plan
from transport_bed.comparison import compiled
from transport_bed.tools.naive_tcp import NaiveTcp
from transport_bed.tools.tool import Tool
from transport_bed.tools.verifying import VerifyingFloor, VerifyingTcp

from blast_transport.base.engines import COMPILED, PYTHON, check_engine
from blast_transport.blocks.digests import suite_named

CELLS = ("pipeline:1", "optical:1", "pipeline:7", "optical:7", "pipeline:15", "optical:15")
ALONE_MEGABYTES, MEGABYTES, REPEATS = 4000, 1000, 15
OF_VERIFYING = {"pipeline": 0.95, "optical": 1.1}
"""At least so much of the rate of naive TCP that verifies; by light with one receiver only."""
OF_FLOOR = 0.7
OF_PYTHONS_USER = 1 / 3
OF_PROCESSOR = 1.25
"""Of what the receivers of naive TCP that verify use, at most."""
_CONGESTION_CONTROL = "reno"
_DIGEST_PIECE = 1 << 16


def main() -> bool:
    """Measure and print."""
    args = _arguments()
    rows = [_row(cell, args) for cell in args.cells]
    if args.json:
        print(json.dumps({"machine": machine.describe(), "repeats": args.repeats, "rows": rows}, indent=2))
    else:
        print(f"{machine.describe()}\nunshaped, {args.repeats} rounds: medians, ratios with a 90 % interval")
        print("\n".join(line for row in rows for line in _lines(row)))
    return True


def _row(cell: str, args: argparse.Namespace) -> dict[str, Any]:
    carrier, _, number = cell.partition(":")
    receivers = int(number)
    megabytes = args.megabytes or (ALONE_MEGABYTES if receivers == 1 else MEGABYTES)
    size = megabytes * 1_000_000
    tools = _tools(carrier)
    with script.bed_and_file(Plan(receivers, pinned=receivers == 1, congestion_control=_CONGESTION_CONTROL), size) as (
        bed,
        source,
    ):
        programs = compiled(tools.values(), source.parent)
        small = small_beside(source)
        measure = partial(transfer, bed, programs)
        starts = {name: measure(small, tool) for name, tool in tools.items()}
        measures: dict[str, Callable[[], Taken]] = {
            name: partial(measure, source, tool) for name, tool in tools.items()
        }
        rounds = script.in_turn(measures, args.repeats)
    costs = {name: [cost - starts[name] for cost in rounds[name]] for name in tools}
    digests = _digest_seconds(size) * (receivers + 1)
    return {
        "cell": cell,
        "megabytes": megabytes,
        "tools": {name: _told(costs[name], starts[name], size) for name in tools},
        "ratios": [ratio.told() for ratio in _ratios(cell, costs, digests)],
    }


def _tools(carrier: str) -> dict[str, Tool]:
    return {"naive": NaiveTcp(), "verifying": VerifyingTcp(), "floor": VerifyingFloor(), **by_both_engines(carrier)}


def _digest_seconds(size: int) -> float:
    """What the digests of so many bytes take, hot and in pieces as large as a block."""
    piece, suite, before = bytes(_DIGEST_PIECE), suite_named("blake3"), used_by(resource.RUSAGE_THREAD)
    for _ in range(size // _DIGEST_PIECE):
        suite.block(piece)
    return (used_by(resource.RUSAGE_THREAD) - before).user


def _told(costs: Sequence[Taken], start: Taken, size: int) -> dict[str, Any]:
    def per_gigabyte(values: Iterable[float]) -> float:
        return statistics.median(values) / (size / 1e9)

    return {
        "gbps": statistics.median(size * 8 / cost.seconds / 1e9 for cost in costs),
        "sender_user": per_gigabyte(cost.sender.user for cost in costs),
        "sender_system": per_gigabyte(cost.sender.system for cost in costs),
        "receivers_user": per_gigabyte(cost.receivers.user for cost in costs),
        "receivers_system": per_gigabyte(cost.receivers.system for cost in costs),
        "start_seconds": start.seconds,
        "start_processor": start.sender.both + start.receivers.both,
    }


def _ratios(cell: str, costs: dict[str, list[Taken]], digests: float) -> list[Ratio]:
    carrier, _, receivers = cell.partition(":")
    alone = receivers == "1"

    def rate(other: str, least: float | None = None) -> Ratio:
        pairs = zip(costs[COMPILED], costs[other], strict=True)
        return Ratio(f"rate, of {other}'s", [theirs.seconds / ours.seconds for ours, theirs in pairs], least)

    by_python = zip(costs[COMPILED], costs[PYTHON], strict=True)
    by_loop = zip(costs[COMPILED], costs["verifying"], strict=True)
    user = [(ours.user - digests) / (theirs.user - digests) for ours, theirs in by_python]
    loop = [ours.receivers.both / theirs.receivers.both for ours, theirs in by_loop]
    return [
        rate("verifying", OF_VERIFYING[carrier] if alone or carrier == "pipeline" else None),
        rate("naive"),
        rate("floor", OF_FLOOR if carrier == "optical" and not alone else None),
        rate(PYTHON),
        Ratio("user time beside digests, of python's", user, most=OF_PYTHONS_USER),
        Ratio("receivers' processor time, of verifying's", loop, most=OF_PROCESSOR),
    ]


def _lines(row: dict[str, Any]) -> list[str]:
    lines = [f"{row['cell']}, {row['megabytes']} MB"]
    for name, told in row["tools"].items():
        lines.append(
            f"  {name:<10}{told['gbps']:7.2f} Gbit/s, processor s per GB, user + system: sender "
            f"{told['sender_user']:.2f} + {told['sender_system']:.2f}, receivers {told['receivers_user']:.2f} + "
            f"{told['receivers_system']:.2f}; start "
            f"{told['start_seconds']:.2f} s, {told['start_processor']:.2f} of processors"
        )
    return lines + [f"  {ratio_words(one)}" for one in row["ratios"]]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--cells", type=script.some_of(CELLS), default=list(CELLS), help=f"CARRIER:N,… (default: {','.join(CELLS)})"
    )
    sizes = f"of the file (default: {ALONE_MEGABYTES}, {MEGABYTES} for more than one receiver)"
    parser.add_argument("--megabytes", type=script.count, help=sizes)
    parser.add_argument("--repeats", type=script.count, default=REPEATS, help=f"after one (default: {REPEATS})")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    check_engine(COMPILED)
    return args


if __name__ == "__main__":
    script.run(main)

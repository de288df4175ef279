"""Claims: that every block is proven by BLAKE3 at the sender and at each receiver costs <= 12 % of the rate by light to
one receiver unshaped, <= 2 % to seven at 400 Mbit/s, and <= 30 % to seven unshaped, where all of them share the
processors of this machine.

The same transfer by this checkout and by another one, in turn; what counts is the median of the ratios of the pairs,
by the sender's own clock, which starts with the first block. Beside it stands the processor time that the digests of
all hosts take, of which a machine for each host would see its own. As root, with nothing else running:

    git worktree add ../before COMMIT && (cd ../before && make setup)
    .venv/bin/python benchmarks/digest_cost.py --before ../before              # ten pairs each, about 20 minutes
    .venv/bin/python benchmarks/digest_cost.py --before ../before --cells unshaped:1 --repeats 3

A bar that is missed is told; no time decides the exit status.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import machine
from transport_bed import script
from transport_bed.bed import Bed, Plan
from transport_bed.failures import CannotRun
from transport_bed.run import transfer
from transport_bed.shape import shape
from transport_bed.tools.blast import BlastOptical
from transport_bed.tools.of_checkout import OfCheckout, python_of
from transport_bed.warm_memory import WarmMemory

from blast_transport.blocks.digests import BEST, suite_named
from blast_transport.blocks.layout import Layout
from blast_transport.wire.datagram import segment_size_for

BARS = {("unshaped", 1): 0.12, ("400", 7): 0.02, ("unshaped", 7): 0.30}
"""(shape, receivers): the most that it may cost of the rate."""
MEGABYTES, REPEATS = 1000, 10
_LIMIT_SECONDS = 180.0
_MTU = 1500


def main() -> bool:
    """Measure and print."""
    args = _arguments()
    digest = _digest_seconds(args.megabytes * 1_000_000)
    rows = [_row(name, receivers, _pairs(args, name, receivers), digest) for name, receivers in args.cells]
    if args.json:
        print(json.dumps({"machine": machine.describe(), "megabytes": args.megabytes, "rows": rows}, indent=2))
    else:
        print(machine.describe())
        print(f"by light, {args.megabytes} MB, {args.repeats} pairs, medians (min-max)")
        print("\n".join(map(_line, rows)))
    return True


def _pairs(args: argparse.Namespace, name: str, receivers: int) -> list[tuple[float, float]]:
    """Seconds of (the commit before, this one), measured one after the other."""
    with (
        script.bed_and_file(Plan(receivers, shape(name)), args.megabytes * 1_000_000) as (bed, source),
        ExitStack() as stack,
    ):
        # Where the machine sets the pace, giving memory up would take its time.
        warm = stack.enter_context(WarmMemory(source.parent)) if bed.plan.shape.rate_mbps else None
        seconds = partial(_seconds, bed, source, warm)
        measures: dict[str, Callable[[], float]] = {
            f"{name}, {receivers} receivers, before": partial(seconds, python_of(args.before)),
            f"{name}, {receivers} receivers, now": partial(seconds, Path(sys.executable)),
        }
        before, now = script.in_turn(measures, args.repeats).values()
    return list(zip(before, now, strict=True))


def _seconds(bed: Bed, source: Path, warm: WarmMemory | None, python: Path) -> float:
    tool = OfCheckout(python, BlastOptical())
    if warm is not None:
        warm.fill()
    outcome = transfer(tool, bed, source, source.parent, _LIMIT_SECONDS)
    if outcome.failure:
        raise CannotRun(f"a transfer by {python} failed: {outcome.failure}")
    return float(outcome.notes["seconds"])


def _digest_seconds(size: int) -> float:
    """Processor seconds for the digests of a file of this size, once, while each block is hot."""
    segment = segment_size_for(_MTU)
    block = memoryview(bytearray(os.urandom(Layout(None, segment).block_size)))
    suite, count = suite_named(BEST), max(1, min(size, 200_000_000) // len(block))
    began = time.thread_time()
    for _ in range(count):
        suite.block(block)
    return (time.thread_time() - began) * size / (count * len(block))


def _row(name: str, receivers: int, pairs: list[tuple[float, float]], digest: float) -> dict[str, Any]:
    costs = [1 - before / now for before, now in pairs]
    cost, bar = statistics.median(costs), BARS[name, receivers]
    return {
        "shape": name,
        "receivers": receivers,
        "before_seconds": statistics.median(before for before, _ in pairs),
        "now_seconds": statistics.median(now for _, now in pairs),
        "pairs": pairs,
        "cost": cost,
        "spread": [min(costs), max(costs)],
        "bar": bar,
        "digests_cpu_seconds": (receivers + 1) * digest,
        "kept": cost <= bar,
    }


def _line(row: dict[str, Any]) -> str:
    low, high = row["spread"]
    return (
        f"{row['shape']:>8} {row['receivers']} receivers: {row['before_seconds']:.2f} s -> {row['now_seconds']:.2f} s, "
        f"cost {row['cost']:.1%} of the rate ({low:.1%} to {high:.1%}), bar {row['bar']:.0%}"
        f"{'' if row['kept'] else '  MISSED'}; {row['receivers'] + 1} digests take "
        f"{row['digests_cpu_seconds']:.2f} s of {os.cpu_count()} processors"
    )


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument(
        "--before", type=Path, required=True, metavar="CHECKOUT", help="another commit, set up, to compare with"
    )
    parser.add_argument(
        "--cells", type=_cells, default=list(BARS), help="SHAPE:N,SHAPE:N… (default: unshaped:1,400:7,unshaped:7)"
    )
    args = parser.parse_args()
    if not python_of(args.before).exists():
        parser.error(f"{args.before} has no .venv: run `make setup` there")
    return args


def _cells(text: str) -> list[tuple[str, int]]:
    known = {f"{name}:{receivers}": (name, receivers) for name, receivers in BARS}
    try:
        return [known[part] for part in text.split(",")]
    except KeyError as unknown:
        raise argparse.ArgumentTypeError(f"there is no cell {unknown}: choose of {','.join(known)}") from None


if __name__ == "__main__":
    script.run(main)

"""Claim: this checkout carries a file by each carrier as fast as another one does, and for as little processor time.

The same transfer by both, each first in every second pair, unshaped: to one receiver and to seven, by light, along a
pipeline, and by light of which each receiver loses a thousandth for itself. What counts is the median of the ratios of
the pairs, with an interval of 90 % that assumes nothing of how they spread (by ranks). Processor seconds are the
operating system's, user and system, of the sender's process and of all receivers', their start included. As root, with
nothing else running:

    git worktree add ../before COMMIT && (cd ../before && make setup)
    .venv/bin/python benchmarks/carrier_speed.py --before ../before                  # 15 pairs each, half an hour
    .venv/bin/python benchmarks/carrier_speed.py --before ../before --cells optical:1 --repeats 3

A bar that is missed is told; no time decides the exit status.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import machine
from median_interval import median_interval
from transport_bed import script
from transport_bed.bed import Bed, Plan
from transport_bed.failures import CannotRun
from transport_bed.loss import losing
from transport_bed.programs import compile_into
from transport_bed.run import opened
from transport_bed.tools.blast import Blast, BlastOptical, BlastPipeline
from transport_bed.tools.of_checkout import OfCheckout, python_of

BAR = 1.03
"""As much as the other at most, in time and in processor time."""
CELLS = ("optical:1", "optical:7", "pipeline:1", "pipeline:7", "loss:7")
MEGABYTES, REPEATS = 1000, 15
LOST = 1e-3
_LIMIT_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one transfer, in seconds: by the sender's clock from the first block, and of processors."""

    seconds: float
    sender_cpu: float
    receivers_cpu: float


def main() -> bool:
    """Measure and print."""
    args = _arguments()
    rows = [_row(cell, _pairs(args, cell), args.megabytes) for cell in args.cells]
    if args.json:
        print(json.dumps({"machine": machine.describe(), "megabytes": args.megabytes, "rows": rows}, indent=2))
    else:
        print(machine.describe())
        print(f"unshaped, {args.megabytes} MB, {args.repeats} pairs; now / before: median (90 % interval)")
        print("\n".join(map(_line, rows)))
    return True


def _pairs(args: argparse.Namespace, cell: str) -> list[tuple[Cost, Cost]]:
    """Of (the other checkout, this one), measured one after the other."""
    carrier, _, receivers = cell.partition(":")
    with script.bed_and_file(Plan(int(receivers)), args.megabytes * 1_000_000) as (bed, source):
        lossy = compile_into(source.parent, "lossy") if carrier == "loss" else None
        measure = partial(_measure, bed, source, partial(_tool, carrier, bed, lossy))
        measures: dict[str, Callable[[], Cost]] = {
            f"{cell}, before": partial(measure, python_of(args.before)),
            f"{cell}, now": partial(measure, Path(sys.executable)),
        }
        before, now = script.in_turn(measures, args.repeats).values()
    return list(zip(before, now, strict=True))


def _tool(carrier: str, bed: Bed, lossy: Path | None) -> Blast:
    tool = BlastPipeline() if carrier == "pipeline" else BlastOptical()
    if lossy is not None:
        counts = {host: lossy.parent / f"lost-{host}" for host in bed.plan.hosts[1:]}
        tool.environments = {host: losing(LOST, lossy, host, count) for host, count in counts.items()}
    return tool


def _measure(bed: Bed, source: Path, tool: Callable[[], Blast], python: Path) -> Cost:
    began = _ended_cpu()
    with opened(bed, source) as run:
        one = OfCheckout(python, tool())
        one.prepare(run)
        run.begin(_LIMIT_SECONDS)
        _, notes = one.send(run)
        if set(run.intact(run.receivers)) != set(run.receivers):
            raise CannotRun(f"a transfer by {python} left another file than was sent")
        sent = _ended_cpu()
    return Cost(float(notes["seconds"]), sent - began, _ended_cpu() - sent)


def _ended_cpu() -> float:
    """Processor seconds of the processes that have ended: the sender, and after the run the receivers."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _row(cell: str, pairs: Sequence[tuple[Cost, Cost]], megabytes: int) -> dict[str, Any]:
    row: dict[str, Any] = {"cell": cell, "kept": True}
    for what in ("seconds", "sender_cpu", "receivers_cpu"):
        values = [(getattr(before, what), getattr(now, what)) for before, now in pairs]
        low, ratio, high = median_interval([now / before for before, now in values])
        unit = 1.0 if what == "seconds" else megabytes / 1000
        row[what] = {
            "before": statistics.median(before for before, _ in values) / unit,
            "now": statistics.median(now for _, now in values) / unit,
            "ratio": ratio,
            "interval": [low, high],
        }
        row["kept"] = row["kept"] and low <= BAR
    return row


def _line(row: dict[str, Any]) -> str:
    parts = []
    for what, name in (("seconds", "s"), ("sender_cpu", "CPU s/GB sender"), ("receivers_cpu", "CPU s/GB receivers")):
        value = row[what]
        low, high = value["interval"]
        parts.append(
            f"{value['before']:.2f} -> {value['now']:.2f} {name} x {value['ratio']:.3f} ({low:.3f}-{high:.3f})"
        )
    return f"{row['cell']:<11}{'; '.join(parts)}{'' if row['kept'] else '  MISSED'}"


def _arguments() -> argparse.Namespace:
    parser = script.parser(__doc__, MEGABYTES, REPEATS)
    parser.add_argument(
        "--before", type=Path, required=True, metavar="CHECKOUT", help="another commit, set up, to compare with"
    )
    cells = script.some_of(CELLS)
    parser.add_argument("--cells", type=cells, default=list(CELLS), help=f"CARRIER:N,… (default: {','.join(CELLS)})")
    args = parser.parse_args()
    if not python_of(args.before).exists():
        parser.error(f"{args.before} has no .venv: run `make setup` there")
    return args


if __name__ == "__main__":
    script.run(main)

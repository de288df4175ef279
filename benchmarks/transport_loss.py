"""Claims: by light, seven receivers that lose datagrams each for itself get the file at >= 0.97 of the rate without
loss when a thousandth is lost, and at >= 0.85 when a hundredth is.

Unshaped. The loss is made in the receivers (`transport_bed/programs/lossy.c`, preloaded, for the row without loss too),
because the kernel here has no netem and filters see 44 datagrams as one packet. What counts is the median of the ratios
of rounds, with an interval of 90 % that assumes nothing of how they spread (by ranks). As root:

    .venv/bin/python benchmarks/transport_loss.py                              # about ten minutes, 8 GB of memory
    .venv/bin/python benchmarks/transport_loss.py --megabytes 100 --repeats 1

Exit status 1 if a receiver has no whole file, or if not as much was lost as was to be, to a tenth: such a row says
nothing. The bars are of rates, which are told and decide nothing.
"""

from __future__ import annotations

import json
import statistics
import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import machine
from median_interval import median_interval
from transport_bed import script
from transport_bed.bed import Bed, Plan
from transport_bed.failures import CannotRun, RunFailed
from transport_bed.loss import losing
from transport_bed.programs import compile_into
from transport_bed.run import opened
from transport_bed.struck import Struck, nothing, watched
from transport_bed.tools.blast import BlastOptical
from transport_bed.warm_memory import used_until_now

RECEIVERS = 7
BARS = {0.0: 1.0, 1e-3: 0.97, 1e-2: 0.85}
"""Share of datagrams lost: the least share of the rate without loss."""
MEGABYTES, REPEATS = 400, 15
_OFF = 0.1
"""So much of what was to be lost may be lost more or less."""
_LIMIT_SECONDS = 180.0
_COUNTS = struct.Struct("=QQ")


def main() -> bool:
    """Measure and print; whether every receiver has the file."""
    args = script.parser(__doc__, MEGABYTES, REPEATS).parse_args()
    with script.bed_and_file(Plan(RECEIVERS), args.megabytes * 1_000_000) as (bed, source):
        library = compile_into(source.parent, "lossy")
        measures: dict[str, Callable[[], tuple[Struck, float]]] = {
            f"loss {share:g}": partial(_measure, share, bed, source, library) for share in BARS
        }
        results = script.in_turn(measures, args.repeats)
    rows = _rows(args.megabytes, [results[f"loss {share:g}"] for share in BARS])
    if args.json:
        print(json.dumps({"machine": machine.describe(), "megabytes": args.megabytes, "rows": rows}, indent=2))
    else:
        print(machine.describe())
        print(f"{RECEIVERS} receivers, unshaped, {args.megabytes} MB, {args.repeats} rounds: medians, 90 % intervals")
        print("\n".join(map(_line, rows)))
    return not any(row["wrong"] or row["void"] for row in rows)


def _measure(share: float, bed: Bed, source: Path, library: Path) -> tuple[Struck, float]:
    """A transfer, and the share of datagrams that was really lost."""
    tool = BlastOptical()
    counts = {receiver: source.parent / f"lost-{receiver}" for receiver in bed.plan.hosts[1:]}
    for receiver, count in counts.items():
        count.unlink(missing_ok=True)
        tool.environments[receiver] = losing(share, library, receiver, count)
    with opened(bed, source) as run:
        try:
            with used_until_now(source.parent, source.stat().st_size * RECEIVERS):
                tool.prepare(run)
            struck = watched(tool, run, _LIMIT_SECONDS, nothing, victims=set(), failing=set())
        except RunFailed as failure:
            raise CannotRun(f"by light, with a loss of {share:g}: {failure}") from failure
    lost, seen = map(sum, zip(*(_COUNTS.unpack(count.read_bytes()) for count in counts.values()), strict=True))
    return struck, lost / max(seen, 1)


def _rows(megabytes: int, results: Sequence[Sequence[tuple[Struck, float]]]) -> list[dict[str, Any]]:
    lossless = [run.others_seconds for run, _ in results[0]]
    return [_row(megabytes, share, runs, lossless) for share, runs in zip(BARS, results, strict=True)]


def _row(
    megabytes: int, share: float, runs: Sequence[tuple[Struck, float]], lossless: Sequence[float]
) -> dict[str, Any]:
    times = [run.others_seconds for run, _ in runs]
    low, ratio, high = median_interval([without / seconds for without, seconds in zip(lossless, times, strict=True)])
    lost = statistics.mean(lost for _, lost in runs)
    return {
        "loss": share,
        "lost": lost,
        "void": abs(lost - share) > _OFF * share,
        "seconds": statistics.median(times),
        "gbps": megabytes * 8e-3 / statistics.median(times),
        "share": ratio,
        "interval": [low, high],
        "bar": BARS[share],
        "repaired_bytes": [run.report.get("repaired_bytes") for run, _ in runs],
        "wrong": sorted({sentence for run, _ in runs for sentence in run.wrong}),
        "kept": high >= BARS[share],
    }


def _line(row: dict[str, Any]) -> str:
    (low, high), void = row["interval"], "  VOID" if row["void"] else ""
    return (
        f"loss {row['loss']:<7g} (measured {row['lost']:.2e}{void}) {row['gbps']:7.3f} Gbit/s {row['seconds']:7.2f} s  "
        f"x {row['share']:.3f} ({low:.3f}-{high:.3f}) of no loss, bar {row['bar']:g}"
        + ("" if row["kept"] else "  MISSED")
        + "".join(f"\n    wrong: {sentence}" for sentence in row["wrong"])
    )


if __name__ == "__main__":
    script.run(main)

"""Claims about the rate of the optical transport to seven receivers with independent loss.

The receivers get the file at >= 0.97 of the rate without loss if 0.1 % of the datagrams are lost, and at >= 0.85 if 1 %
are lost.

Links are unshaped. A preloaded library (`bed/programs/lossy.c`, also for the row without loss) drops
datagrams in the receivers, because the kernel here has no netem and filters see 44 datagrams as one packet. The result
is the median of the ratios of rounds, with a 90 % interval by ranks. As root:

    .venv/bin/python benchmarks/transfers/loss.py                              # about ten minutes, 8 GB of memory
    .venv/bin/python benchmarks/transfers/loss.py --megabytes 100 --repeats 1

Exit status 1 if a receiver lacks the whole file, or if the measured loss differs from the set loss by more than a
tenth; rates do not change the exit status.
"""

from __future__ import annotations

import statistics
import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.median_interval import median_interval
from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.bed import Bed, Plan
from benchmarks.transfers.bed.contents import used_until_now
from benchmarks.transfers.bed.failures import PrerequisiteError, RunFailedError
from benchmarks.transfers.bed.programs import compile_into
from benchmarks.transfers.bed.run import opened
from benchmarks.transfers.bed.shape import MTU
from benchmarks.transfers.bed.struck import Struck, watched
from benchmarks.transfers.bed.tools.blast import BlastOptical

RECEIVERS = 7
BARS = {0.0: 1.0, 1e-3: 0.97, 1e-2: 0.85}
"""The share of lost datagrams, and the minimum ratio to the rate without loss."""
MEGABYTES, REPEATS = 400, 15
_MAX_OFF = 0.1
_LIMIT_SECONDS = 180.0
_UDP_HEADERS = 28
_COUNTS = struct.Struct("=QQ")


def main() -> bool:
    """Measure and print; return whether every receiver has the file."""
    args = script.parser(__doc__, MEGABYTES, REPEATS).parse_args()
    with script.bed_and_file(Plan(RECEIVERS), args.megabytes * 1_000_000) as (bed, source):
        library = compile_into(source.parent, "lossy")
        measures: dict[str, Callable[[], tuple[Struck, float]]] = {
            f"loss {share:g}": partial(_measure, share, bed, source, library) for share in BARS
        }
        results = script.alternate(measures, args.repeats)
    lossless = [run.others_seconds for run, _ in results["loss 0"]]
    rows = [_row(args.megabytes, share, results[f"loss {share:g}"], lossless) for share in BARS]
    head = f"{RECEIVERS} receivers, unshaped, {args.megabytes} MB, {args.repeats} rounds: medians, 90 % intervals"
    machine.show(args.json, {"megabytes": args.megabytes, "rows": rows}, [head, *map(_line, rows)])
    return not any(row["wrong"] or row["void"] for row in rows)


def _measure(share: float, bed: Bed, source: Path, library: Path) -> tuple[Struck, float]:
    """Return a transfer and the measured share of lost datagrams."""
    tool = BlastOptical()
    counts = {receiver: source.parent / f"lost-{receiver}" for receiver in bed.plan.hosts[1:]}
    for receiver, count in counts.items():
        count.unlink(missing_ok=True)
        settings = {"SHARE": repr(share), "SEED": receiver, "COUNT": count, "DATAGRAM": MTU - _UDP_HEADERS}
        lossy = {f"LOSSY_{name}": str(value) for name, value in settings.items()}
        tool.environments[receiver] = {"LD_PRELOAD": str(library), **lossy}
    with opened(bed, source) as run:
        try:
            with used_until_now(source.parent, source.stat().st_size * RECEIVERS):
                tool.prepare(run)
            struck = watched(tool, run, _LIMIT_SECONDS, None, victims=set(), failing=set())
        except RunFailedError as failure:
            raise PrerequisiteError(f"the optical transfer with a loss of {share:g} failed: {failure}") from failure
    lost, seen = map(sum, zip(*(_COUNTS.unpack(count.read_bytes()) for count in counts.values()), strict=True))
    return struck, lost / max(seen, 1)


def _row(
    megabytes: int, share: float, runs: Sequence[tuple[Struck, float]], lossless: Sequence[float]
) -> dict[str, Any]:
    times = [run.others_seconds for run, _ in runs]
    low, ratio, high = median_interval([without / seconds for without, seconds in zip(lossless, times, strict=True)])
    lost = statistics.mean(lost for _, lost in runs)
    return {
        "loss": share,
        "lost": lost,
        "void": abs(lost - share) > _MAX_OFF * share,
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
    return "\n    wrong: ".join(
        [
            f"loss {row['loss']:<7g} (measured {row['lost']:.2e}{void}) {row['gbps']:7.3f} Gbit/s "
            f"{row['seconds']:7.2f} s  x {row['share']:.3f} ({low:.3f}-{high:.3f}) of no loss, bar {row['bar']:g}"
            f"{'' if row['kept'] else '  MISSED'}",
            *row["wrong"],
        ]
    )


if __name__ == "__main__":
    script.run(main)

"""Claims: by light, seven receivers that lose datagrams each for itself get the file at >= 0.95 of the rate without
loss when a thousandth is lost, and at >= 0.7 when a hundredth is.

Unshaped. The loss is made in the receivers (`transport_bed/programs/lossy.c`, preloaded, for the row without loss too),
because the kernel here has no netem and filters see 44 datagrams as one packet. As root:

    .venv/bin/python benchmarks/transport_loss.py                              # about five minutes, 9 GB of memory
    .venv/bin/python benchmarks/transport_loss.py --megabytes 100 --repeats 1

Exit status 1 if a receiver has no whole file; the bars are of rates, which are told and decide nothing.
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
from transport_bed import script
from transport_bed.bed import Bed, Plan
from transport_bed.loss import losing
from transport_bed.programs import compile_into
from transport_bed.struck import Struck, struck_transfer
from transport_bed.tools.blast import BlastOptical

RECEIVERS = 7
BARS = {0.0: 1.0, 1e-3: 0.95, 1e-2: 0.7}
"""Share of datagrams lost: the least share of the rate without loss."""
_LIMIT_SECONDS = 180.0
_COUNTS = struct.Struct("=QQ")


def main() -> bool:
    """Measure and print; whether every receiver has the file."""
    args = script.parser(__doc__, megabytes=1000, repeats=3).parse_args()
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
        print(f"{RECEIVERS} receivers, unshaped, {args.megabytes} MB, {args.repeats} repeats, medians (min-max)")
        print("\n".join(map(_line, rows)))
    return not any(row["wrong"] for row in rows)


def _measure(share: float, bed: Bed, source: Path, library: Path) -> tuple[Struck, float]:
    """A transfer, and the share of datagrams that was really lost."""
    tool = BlastOptical()
    counts = {receiver: source.parent / f"lost-{receiver}" for receiver in bed.plan.hosts[1:]}
    for receiver, count in counts.items():
        count.unlink(missing_ok=True)
        tool.environments[receiver] = losing(share, library, receiver, count)
    struck = struck_transfer(tool, bed, source, limit_seconds=_LIMIT_SECONDS)
    lost, seen = map(sum, zip(*(_COUNTS.unpack(count.read_bytes()) for count in counts.values()), strict=True))
    return struck, lost / max(seen, 1)


def _rows(megabytes: int, results: Sequence[Sequence[tuple[Struck, float]]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for (share, bar), runs in zip(BARS.items(), results, strict=True):
        times = [run.others_seconds for run, _ in runs]
        seconds = statistics.median(times)
        wrong = sorted({sentence for run, _ in runs for sentence in run.wrong})
        of_lossless = rows[0]["seconds"] / seconds if rows else 1.0
        rows.append(
            {
                "loss": share,
                "lost": statistics.mean(lost for _, lost in runs),
                "seconds": seconds,
                "spread": [min(times), max(times)],
                "gbps": megabytes * 8e-3 / seconds,
                "share": of_lossless,
                "bar": bar,
                "repaired_bytes": [run.report.get("repaired_bytes") for run, _ in runs],
                "wrong": wrong,
                "kept": of_lossless >= bar and not wrong,
            }
        )
    return rows


def _line(row: dict[str, Any]) -> str:
    low, high = row["spread"]
    return (
        f"loss {row['loss']:<7g} (measured {row['lost']:.2e}) {row['gbps']:7.3f} Gbit/s {row['seconds']:8.2f} s "
        f"({low:.2f}-{high:.2f})  {row['share']:.2f} of no loss, bar {row['bar']:g}{'' if row['kept'] else '  MISSED'}"
        + "".join(f"\n    wrong: {sentence}" for sentence in row["wrong"])
    )


if __name__ == "__main__":
    script.run(main)

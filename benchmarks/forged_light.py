"""Claims: forged datagrams on the light never make a wrong file; those from another address than the sender's cost no
repairs. What those cost that carry the sender's address and port, and lie within its window, is told.

Three receivers at 400 Mbit/s; the forger is on the sender's host, knows the session, and is root there, without which
nobody has another's address. As root:

    .venv/bin/python benchmarks/forged_light.py                              # about five minutes, 3 GB of memory
    .venv/bin/python benchmarks/forged_light.py --megabytes 50 --repeats 1

Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import machine
from transport_bed import script
from transport_bed.bed import LIGHT, SENDER, Bed, Plan
from transport_bed.programs import HERE
from transport_bed.shape import Shape
from transport_bed.struck import Struck, struck_transfer
from transport_bed.tools.blast import GROUP, GROUP_PORT, BlastOptical

if TYPE_CHECKING:
    from transport_bed.run import Run

RECEIVERS = 3
SHAPE = Shape(400.0)
STRANGER, IMPOSTOR = "stranger", "sender"
FORGERS = ((STRANGER, 0), (STRANGER, 1000), (IMPOSTOR, 1), (IMPOSTOR, 10), (IMPOSTOR, 100), (IMPOSTOR, 1000))
"""(who, datagrams a second)."""
_LIMIT_SECONDS = 180.0


class Forged(BlastOptical):
    """With somebody beside the sender who forges its light."""

    def __init__(self, who: str, per_second: int) -> None:
        super().__init__()
        self._who, self._per_second = who, per_second

    def prepare(self, run: Run) -> None:
        """The forger listens too."""
        super().prepare(run)
        if self._per_second:
            words = [LIGHT, run.bed.light_address(SENDER), f"{GROUP}:{GROUP_PORT}", str(self._per_second), self._who]
            forger = run.start(SENDER, "forger", [sys.executable, str(HERE / "forger.py"), *words])
            forger.await_line("ready", run.deadline)


def main() -> bool:
    """Measure and print; whether every bar was kept."""
    args = script.parser(__doc__, megabytes=200, repeats=5).parse_args()
    with script.bed_and_file(Plan(RECEIVERS, SHAPE), args.megabytes * 1_000_000) as (bed, source):
        measures: dict[str, Callable[[], Struck]] = {
            _name(*forger): partial(_measure, bed, source, *forger) for forger in FORGERS
        }
        results = script.in_turn(measures, args.repeats)
    rows = _rows(args.megabytes, [results[_name(*forger)] for forger in FORGERS])
    if args.json:
        print(json.dumps({"machine": machine.describe(), "megabytes": args.megabytes, "rows": rows}, indent=2))
    else:
        print(machine.describe())
        print(f"{RECEIVERS} receivers, {SHAPE.name}, {args.megabytes} MB, {args.repeats} repeats, medians (min-max)")
        print("\n".join(map(_line, rows)))
    return all(row["kept"] for row in rows)


def _name(who: str, per_second: int) -> str:
    return f"{per_second} a second by a {who}" if per_second else "nobody forges"


def _measure(bed: Bed, source: Path, who: str, per_second: int) -> Struck:
    return struck_transfer(Forged(who, per_second), bed, source, limit_seconds=_LIMIT_SECONDS)


def _rows(megabytes: int, results: Sequence[Sequence[Struck]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for (who, per_second), runs in zip(FORGERS, results, strict=True):
        times = [run.report.get("seconds", run.others_seconds) for run in runs]
        repaired = [run.report.get("repaired_bytes", 0) for run in runs]
        wrong = sorted({sentence for run in runs for sentence in run.wrong})
        seconds = statistics.median(times)
        rows.append(
            {
                "forger": _name(who, per_second),
                "seconds": seconds,
                "spread": [min(times), max(times)],
                "of_none": seconds / rows[0]["seconds"] if rows else 1.0,
                "repaired_share": statistics.median(repaired) / (megabytes * 1e6),
                "again_by_light": statistics.median(run.report.get("shared_repairs", 0) for run in runs),
                "refused": statistics.median(
                    sum(one["refused"] for one in run.report.get("receivers", ())) for run in runs
                ),
                "wrong": wrong,
                "kept": not wrong and (who == IMPOSTOR or not any(repaired)),
            }
        )
    return rows


def _line(row: dict[str, Any]) -> str:
    low, high = row["spread"]
    return (
        f"{row['forger']:<30}{row['seconds']:7.2f} s ({low:.2f}-{high:.2f}), {row['of_none']:.2f} times nobody's; "
        f"repaired to single ones {row['repaired_share']:.1%} of the file, by light {row['again_by_light']:g} "
        f"datagrams; "
        f"refused {row['refused']:g}{'' if row['kept'] else '  MISSED'}"
        + "".join(f"\n    wrong: {sentence}" for sentence in row["wrong"])
    )


if __name__ == "__main__":
    script.run(main)

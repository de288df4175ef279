"""What it costs the controller to be watched: processor time per cycle (request, grant, finish) with metrics that are
scraped and live pages that are open, each beside a controller of which nobody asks anything by HTTP, in one run.

Wanted: metrics and one open page cost at most 2 % more per cycle, 20 open pages at most 10 %. The controllers are
started one after the other, in turns; each figure is the median of its rounds.

    .venv/bin/python benchmarks/open_pages.py
    .venv/bin/python benchmarks/open_pages.py --rounds 1 --seconds 3
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from contextlib import ExitStack
from typing import Any

import machine
from control_plane import load
from control_plane_rig import HERE, Rig, Size

ROOM = Size(100, 50)
PAGES = {"nobody": None, "metrics and 1 page": 1, "metrics and 20 pages": 20}


def cpu_per_cycle(pages: int | None, seconds: float) -> dict[str, Any]:
    """Milliseconds of the controller's processor time for each cycle, and what the pages have been sent."""
    also = [] if pages is None else ["http"]
    with Rig(ROOM, also=also) as rig, ExitStack() as undo:
        watching = None
        if pages is not None:
            script = [sys.executable, str(HERE / "open_pages_load.py"), rig.addresses["http"], str(pages)]
            watching = rig.child(undo, "open pages", script)
            watching.next(30.0)
        before = rig.controller.cpu_seconds()
        figures = load(rig, "cycles", racks=ROOM.racks, racks_per_job=5, jobs=20, seconds=seconds)
        cpu = rig.controller.cpu_seconds() - before
        sent = watching.ask() if watching is not None else {}
    return {"ms": 1000 * cpu / figures["cycles"], "cycles_per_second": figures["cycles_per_second"], **sent}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each load (default: 8)")
    args = parser.parse_args()
    print(machine.describe())
    print(
        f"input: {ROOM.words}; 20 jobs, one request outstanding each, {args.seconds:g} s; {args.rounds} rounds of each"
    )
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for number in range(args.rounds):
        # In turns, and in the other order every second time: the machine's pace drifts.
        for name in list(PAGES)[:: -1 if number % 2 else 1]:
            found[name].append(cpu_per_cycle(PAGES[name], args.seconds))
    alone = [row["ms"] for row in found["nobody"]]
    for name, rows in found.items():
        ratios = [row["ms"] / one for row, one in zip(rows, alone, strict=True)]
        told = {
            "cpu_ms_per_cycle": round(statistics.median(row["ms"] for row in rows), 3),
            "to_nobody": round(statistics.median(ratios), 3),
            "to_nobody_range": [round(min(ratios), 3), round(max(ratios), 3)],
            "cycles_per_second": round(statistics.median(row["cycles_per_second"] for row in rows), 1),
        }
        if "events" in rows[0]:
            told |= {key: rows[-1][key] for key in ("events", "megabytes", "scrapes")}
        print(f"{name}: {json.dumps(told)}", flush=True)


if __name__ == "__main__":
    main()

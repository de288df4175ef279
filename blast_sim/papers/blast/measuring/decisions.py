"""CPU time of controller decisions by number of concurrent requests, the data of `--compute recorded`.

    python -m blast_sim.papers.blast.measuring.decisions            # prints
    python -m blast_sim.papers.blast.measuring.decisions --record   # and keeps them in recorded_compute.toml

Stored values must come from an idle machine, because other load evicts the caches and increases CPU time. The script
refuses a load above 0.5; --busy overrides that, and the file records the load.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import blast_sim.controller
from blast_controller.process.garbage import GarbageCollection
from blast_sim.base.report import Row
from blast_sim.experiments.cell import Effort, cells_of
from blast_sim.experiments.run import run_cell
from blast_sim.flow.optics import switches_for
from blast_sim.papers.blast.measuring import machine
from blast_sim.scenarios.loading import find, load

DECISIONS = ((120, 36), (1000, 300), (10_000, 3000))
"""Racks and concurrent requests: three per ten racks, as in Figure 4."""
REPEATS = 3
"""The fastest of them counts: other processes only add time."""
MAX_LOAD = 0.5
RECORD = Path(blast_sim.controller.__path__[0]) / "recorded_compute.toml"


def decision_row(racks: int, requests: int) -> Row:
    """Return the best of several decisions, in milliseconds, on optical switches that exist."""
    switches, ports = switches_for(racks)
    settings: dict[str, object] = {
        "network.racks": racks,
        "network.servers_per_rack": 4,
        "multicasts.groups": requests,
        "multicasts.pods": switches,
        "light.splitters": racks // 3,
        "light.switches": switches,
        "light.switch_ports": ports,
    }
    cells = cells_of(load(find("fig4"), settings), (0,), Effort("measured"))
    cell = next(cell for cell in cells if cell.method == "blast" and cell.background == "none")
    times = [run_cell(cell)[0]["compute_seconds"] for _ in range(REPEATS)]
    return {"racks": racks, "requests": requests, "milliseconds": 1000 * min(times)}


def recorded(rows: Sequence[Row], taken_on: str) -> str:
    """Return the text of the file for `--compute recorded`."""
    source = "`decisions.py --record` of blast_sim/papers/blast/measuring"
    head = f"# CPU time of one decision by number of requests: {source}\n"
    tables = "".join(
        f"\n[[decision]]\nracks = {row['racks']}\nrequests = {row['requests']}\n"
        f"milliseconds = {row['milliseconds']:.3f}\n"
        for row in rows
    )
    return f'{head}machine = "{taken_on}"\n{tables}'


def refusal(load: float) -> str:
    """Return why this machine cannot be measured; empty if it can."""
    if load <= MAX_LOAD:
        return ""
    return f"the load is {load:.1f}, stored values need an idle machine: wait until it is below {MAX_LOAD:g}"


def main() -> int:
    """Measure, print, and store with --record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help=f"store the values in {RECORD.name}")
    parser.add_argument("--busy", action="store_true", help="measure in spite of other load")
    arguments = parser.parse_args()
    # Read before this process adds to the load.
    taken_on, reason = machine.describe(), refusal(os.getloadavg()[0])
    if arguments.record and reason and not arguments.busy:
        sys.stderr.write(f"decisions: {reason}, or use --busy\n")
        return 1
    # As in the controller: otherwise Python's collections of all objects take longer than the decisions.
    garbage = GarbageCollection()
    garbage.start()
    rows = [decision_row(racks, requests) for racks, requests in DECISIONS]
    garbage.stop()
    text = recorded(rows, taken_on)
    print(text, end="")
    if arguments.record:
        RECORD.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A coflow trace at full size under every policy, with the project's own core: CPU seconds, and whether it repeats.

alone     its multicasts (a 300 MB broadcast of every job, rule R1)
shuffles  the same with the coflows' shuffles on the packet network
measured  multicasts as large as the largest reducer's share, so that light is scarce

.venv/bin/python benchmarks/trace_replay.py FB2010-1Hr-150-0.txt
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import Any

import machine

from algorithms.scheduling import POLICIES
from blast_sim.base.report import as_table
from blast_sim.base.wrong_input import WrongInput
from blast_sim.replay.runs import Run, play
from blast_sim.replay.setting import Setting
from blast_sim.scenarios.schema import LightSection
from blast_sim.traces.deriving import Volume
from blast_sim.traces.loading import Derivation, load_workload


def main() -> int:
    """Measure and print; status 1 if a run does not repeat. What it costs is told, and decides nothing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", help="a coflow trace, or `sample`")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        rows = [row for case in CASES for row in measured(args.trace, case)]
    except (WrongInput, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if args.json:
        print(json.dumps({"machine": machine.describe(), "rows": rows}, indent=1))
    else:
        print(machine.describe(), as_table(rows), sep="\n\n")
    return 0 if all(row["repeats"] for row in rows) else 1


CASES = {
    "alone": (Volume(), False),
    "shuffles": (Volume(), True),
    "measured": (Volume(measure="maximum"), False),
}


def measured(trace: str, case: str) -> list[dict[str, Any]]:
    """A row for each policy. Raises WrongInput, OSError."""
    volume, shuffles = CASES[case]
    workload = load_workload(trace, "coflow", Derivation(volume=volume))
    if not shuffles:
        workload = replace(workload, shuffles=())
    light = LightSection(splitters=workload.racks // 3, may_pause=True, may_split=True)
    setting = Setting(workload.racks, 40, 10.0, 40.0, light, "recorded")
    # Compiled code is loaded before the first measurement.
    play(Run(replace(workload, multicasts=workload.multicasts[:3], shuffles=()), setting, "paper"))
    rows = []
    for policy in POLICIES:
        ran, again = (play(Run(workload, setting, policy)) for _ in range(2))
        row = {
            "case": case,
            "policy": policy,
            "multicasts": ran.row["multicasts"],
            "shuffles": len(workload.shuffles),
            "cpu_seconds": ran.cpu_seconds,
            "mean_seconds": ran.row["mean_seconds"],
            "p99_seconds": ran.row["p99_seconds"],
            "longest_seconds": ran.row["longest_seconds"],
            "repeats": json.dumps(ran.row) == json.dumps(again.row),
        }
        rows.append(row)
    return rows


if __name__ == "__main__":
    sys.exit(main())

"""Claim: the simulator reproduces the statements of the paper on rack-fabric multicast about its figures, for every
seed; where it does not, an experiment shows why. The statements are in blast_sim/fabric/paper/claims.py.

The results do not depend on the machine. Exit status 1 where a verdict differs from the expected one. The second line
also checks the invariants of the model:

    .venv/bin/python benchmarks/rack_fabric_claims.py [--seeds 1-5] [--keep DIR] [--json]
    scripts/cargo build --profile checked && BLAST_RACK_FABRIC=target/checked/rack-fabric .venv/bin/python \
benchmarks/rack_fabric_claims.py
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from blast_sim.base.sweep import Kept, Workers
from blast_sim.base.text import table
from blast_sim.fabric.paper.claims import verdicts
from blast_sim.fabric.paper.evaluation import EXPERIMENTS, PANELS, NoResult, evaluated
from blast_sim.fabric.simulator import NoSimulator, RunFailed, Simulator, program
from blast_sim.sim_command import seeds


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds, default=(1, 2, 3, 4, 5), metavar="N|N-N|N,N", help="(default: 1-5)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep results there, and resume")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        simulator = Simulator(program())
        workers, kept = Workers(os.cpu_count() or 1), Kept(args.keep)
        panels = [*PANELS, *EXPERIMENTS]
        by_seed = [verdicts(evaluated(simulator, panels, seed, workers, kept)) for seed in args.seeds]
    except (NoSimulator, RunFailed, NoResult) as error:
        parser.error(str(error))
    rows = []
    for found in zip(*by_seed, strict=True):
        claim, expected = found[0].claim, all(one.expected for one in found)
        verdict = ("refuted" if claim.refuted else "holds") if expected else "NOT AS EXPECTED"
        row = {"figure": claim.figure, "claim": claim.sentence, "found": [one.value for one in found]}
        rows.append({**row, "verdict": verdict, "why not": claim.refuted, "expected": expected})
    if args.json:
        print(json.dumps({"seeds": args.seeds, "rows": rows}, indent=2))
    else:
        print(f"seeds {', '.join(map(str, args.seeds))}; found: that of the first one")
        cells = [[str(row["figure"]), row["claim"], row["found"][0], row["verdict"]] for row in rows]
        print(table(["figure", "claim", "found", "verdict"], cells))
    return int(not all(row["expected"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())

"""Claim: what the paper on rack-fabric multicast says of its figures comes out of the simulator, for every seed; where
it does not, an experiment shows why. All of blast_sim/fabric/paper/claims.py, with what was found.

Nothing of it depends on the machine. Ends with 1 where a verdict is not the one that is told there. With the checks of
the model itself on:

    scripts/cargo build --profile checked
    BLAST_RACK_FABRIC=target/checked/rack-fabric .venv/bin/python benchmarks/rack_fabric_claims.py --seeds 1-5

    .venv/bin/python benchmarks/rack_fabric_claims.py [--seeds 1-5] [--keep DIR] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from blast_sim.base.sweep import Kept, Workers
from blast_sim.base.text import table
from blast_sim.fabric.paper.claims import Verdict, verdicts
from blast_sim.fabric.paper.evaluation import EXPERIMENTS, PANELS, NoResult, evaluated
from blast_sim.fabric.simulator import NoSimulator, RunFailed, Simulator, program
from blast_sim.sim_command import seeds


def verdict_word(found: Sequence[Verdict]) -> str:
    """What came of a claim under all seeds."""
    if not all(one.expected for one in found):
        return "NOT AS TOLD"
    return "refuted" if found[0].claim.refuted else "holds"


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds, default=(1, 2, 3, 4, 5), metavar="N|N-N|N,N", help="(default: 1-5)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep results there; a run that was ended goes on")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        simulator = Simulator(program())
        workers, kept = Workers(os.cpu_count() or 1), Kept(args.keep)
        panels = [*PANELS, *EXPERIMENTS]
        by_seed = [verdicts(evaluated(simulator, panels, seed, workers, kept)) for seed in args.seeds]
    except (NoSimulator, RunFailed, NoResult) as error:
        parser.error(str(error))
    claims = list(zip(*by_seed, strict=True))
    rows = [
        {
            "figure": found[0].claim.figure,
            "claim": found[0].claim.sentence,
            "found": [one.value for one in found],
            "verdict": verdict_word(found),
            "why not": found[0].claim.refuted,
        }
        for found in claims
    ]
    if args.json:
        print(json.dumps({"seeds": args.seeds, "rows": rows}, indent=2))
    else:
        print(f"seeds {', '.join(map(str, args.seeds))}; found: the first one's")
        print(table(["figure", "claim", "found", "verdict"], [_cells(row) for row in rows]))
    return int(any(not one.expected for found in claims for one in found))


def _cells(row: dict[str, object]) -> list[str]:
    found = row["found"]
    assert isinstance(found, list)
    return [str(row["figure"]), str(row["claim"]), found[0], str(row["verdict"])]


if __name__ == "__main__":
    sys.exit(main())

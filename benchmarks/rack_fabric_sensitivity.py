"""Claim: no parameter that the rack-fabric paper states explains the 83 Gb/s of Figure 13(a) at 30 Gb/s with
synchronization on, over its plausible range and with the others as stated; a sync CAM of at most 8 entries instead of
24 does, and so does a fabric whose surrogates do not synchronize. Prints the table of docs/rack-fabric.md.

The results do not depend on the machine. Exit status 1 where other values explain it than
blast_sim/fabric/paper/sensitivity.py names:

    .venv/bin/python benchmarks/rack_fabric_sensitivity.py [--seed N] [--keep DIR]      # two minutes
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from blast_sim.base.sweep import Kept, Workers
from blast_sim.fabric.paper.evaluation import NoResult, results_of
from blast_sim.fabric.paper.sensitivity import explains, variations
from blast_sim.fabric.paper.whole_system import received_gbps
from blast_sim.fabric.simulator import NoSimulator, RunFailed, Simulator, program


def main() -> int:
    """Simulate all variations and print a row of the table for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="draw of the trees (default: 1)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep results there, and resume")
    args = parser.parse_args()
    several = variations(args.seed)
    models = [model for variation in several for model in variation.models.values()]
    try:
        workers = Workers(os.cpu_count() or 1)
        results = iter(results_of(Simulator(program()), models, workers, Kept(args.keep)))
    except (NoSimulator, RunFailed, NoResult) as error:
        parser.error(str(error))
    print("| parameter | the paper | value: Gb/s at destinations |\n|---|---|---|")
    as_expected = True
    for variation in several:
        found = {label: next(results) for label in variation.models}
        values = ", ".join(f"{label}: {received_gbps(one):.1f}" for label, one in found.items())
        print(f"| {variation.parameter} | {variation.stated} | {values} |")
        as_expected &= {label for label, one in found.items() if explains(one)} == variation.explains
    return int(not as_expected)


if __name__ == "__main__":
    sys.exit(main())

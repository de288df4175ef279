"""Claim: no single parameter that the rack-fabric paper states explains the 83 Gb/s of its Figure 13(a).

The paper reports it at 30 Gb/s with synchronization. No parameter explains it over its plausible range; a sync CAM of
at most 8 entries instead of 24 does, and so does a fabric whose surrogates do not synchronize. The script prints the
table of docs/explanation/rack-fabric.md.

The results do not depend on the machine. Exit status 1 if the values that explain it differ from those in
blast_sim/papers/rack_fabric/sensitivity.py:

    .venv/bin/python benchmarks/simulators/rack_fabric_sensitivity.py [--seed N] [--keep DIR] [--json]      # a minute
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from blast_sim.base.sweep import Kept, Workers
from blast_sim.fabric.simulator import NoSimulatorError, RunFailedError, Simulator, program
from blast_sim.papers.rack_fabric.evaluation import NoRunResultError, results_of
from blast_sim.papers.rack_fabric.sensitivity import Variation, explains, variations
from blast_sim.papers.rack_fabric.whole_system import received_gbps

HEAD = "| parameter | the paper | values tried | highest, Gb/s | within 5 % of 83 |\n|---|---|---|---|---|"


def main() -> int:
    """Simulate all variations and print a row of the table for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="draw of the trees (default: 1)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder that keeps results, to resume")
    parser.add_argument("--json", action="store_true", help="print each throughput as JSON instead of the table")
    args = parser.parse_args()
    several = variations(args.seed)
    models = [model for variation in several for model in variation.models.values()]
    try:
        workers = Workers(os.cpu_count() or 1)
        results = iter(results_of(Simulator(program()), models, workers, Kept(args.keep)))
    except (NoSimulatorError, RunFailedError, NoRunResultError) as error:
        parser.error(str(error))
    gbps = {one.name: {label: received_gbps(next(results)) for label in one.models} for one in several}
    close = {name: [label for label, one in tried.items() if explains(one)] for name, tried in gbps.items()}
    if args.json:
        print(json.dumps(gbps, indent=2))
    else:
        rows = [_cells(one, max(gbps[one.name].values()), close[one.name]) for one in several]
        print("\n".join([HEAD, *(f"| {' | '.join(row)} |" for row in rows)]))
    return int(any(set(close[one.name]) != one.explains for one in several))


def _cells(variation: Variation, max_gbps: float, close: Sequence[str]) -> list[str]:
    """Return a row of the table, with the id of docs/values.toml after its result."""
    result = f"{max_gbps:.1f}<!--fabric-sensitivity.{variation.name}-->"
    return [variation.parameter, variation.stated, ", ".join(variation.models), result, ", ".join(close) or "–"]


if __name__ == "__main__":
    sys.exit(main())

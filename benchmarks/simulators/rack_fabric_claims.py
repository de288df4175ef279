"""Claim: for every seed, the simulator yields the documented verdict on every claim of the rack-fabric paper.

docs/explanation/rack-fabric.md has the verdicts, and blast_sim/papers/rack_fabric/claims.py the claims. The
experiments that explain the claims that are not reproduced hold, too.

The results do not depend on the machine. Exit status 1 if a row differs from its verdict. `--markdown` prints the
tables and the reasons of the page. The second command also checks the invariants of the model:

    .venv/bin/python benchmarks/simulators/rack_fabric_claims.py [--seeds 1-5] [--keep DIR] [--json | --markdown]
    scripts/cargo build --profile checked && BLAST_RACK_FABRIC=target/checked/rack-fabric .venv/bin/python \
benchmarks/simulators/rack_fabric_claims.py
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from blast_sim.base.report import Row
from blast_sim.base.sweep import Kept, Workers
from blast_sim.base.text import table
from blast_sim.fabric.simulator import NoSimulatorError, RunFailedError, Simulator, program
from blast_sim.papers.rack_fabric.claims import NUMBER, checked_claims, checked_experiments, claim_rows, experiment_rows
from blast_sim.papers.rack_fabric.evaluation import EXPERIMENTS, PANELS, NoRunResultError, evaluated
from blast_sim.sim_command import seeds

CLAIM_COLUMNS = ("figure", "claim", "paper", "here", "verdict")
EXPERIMENT_COLUMNS = ("figure", "experiment", "here")


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seeds", type=seeds, default=(1, 2, 3, 4, 5), metavar="N|N-N|N,N", help="seeds (default: 1-5)"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder that keeps results, to resume")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    try:
        simulator = Simulator(program())
        workers, kept = Workers(os.cpu_count() or 1), Kept(args.keep)
        panels = [*PANELS, *EXPERIMENTS]
        by_seed = [evaluated(simulator, panels, seed, workers, kept) for seed in args.seeds]
    except (NoSimulatorError, RunFailedError, NoRunResultError) as error:
        parser.error(str(error))
    claims = _over_seeds([claim_rows(checked_claims(curves)) for curves in by_seed])
    experiments = _over_seeds([experiment_rows(checked_experiments(curves)) for curves in by_seed])
    if args.json:
        print(json.dumps({"seeds": args.seeds, "claims": claims, "experiments": experiments}, indent=2))
    elif args.markdown:
        blocks = [
            _markdown(_marked(claims, "claims"), CLAIM_COLUMNS),
            _reasons(claims),
            _markdown(_marked(experiments, "experiments"), EXPERIMENT_COLUMNS),
        ]
        print("\n\n".join(blocks))
    else:
        print(f"seeds {', '.join(map(str, args.seeds))}; here: the value of the first one")
        for rows, columns in ((claims, CLAIM_COLUMNS), (experiments, EXPERIMENT_COLUMNS)):
            head = [*columns, "as_expected"]
            print(table(head, [[str(row[column]) for column in head] for row in rows]))
        counts = Counter(row["verdict"] for row in claims)
        print(", ".join(f"{verdict}: {count}" for verdict, count in counts.items()))
    return int(any(row["as_expected"] == "no" for row in (*claims, *experiments)))


def _over_seeds(by_seed: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of the first seed with the values of all; a row is as expected only if it is for every seed."""
    return [
        {
            **several[0],
            "as_expected": "yes" if all(row["as_expected"] == "yes" for row in several) else "no",
            "by_seed": [row["here"] for row in several],
        }
        for several in zip(*by_seed, strict=True)
    ]


def _marked(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the rows with the ids of docs/values.toml after the numbers of `here`."""
    return [{**row, "here": _with_ids(row["here"], f"fabric.{kind}.{row['name']}")} for row in rows]


def _with_ids(here: str, name: str) -> str:
    places = count(1)
    return NUMBER.sub(lambda number: f"{number[0]}<!--{name}.{next(places)}-->", here)


def _reasons(claims: Sequence[Row]) -> str:
    """Return a line for each reason, with the claims that share it."""
    by_reason: dict[str, list[Row]] = {}
    for claim in claims:
        if claim["reason"]:
            by_reason.setdefault(claim["reason"], []).append(claim)
    return "\n".join(f"- **{_named(several)}: {reason}." for reason, several in by_reason.items())


def _named(claims: Sequence[Row]) -> str:
    figures = ", ".join(dict.fromkeys(claim["figure"] for claim in claims))
    return f"{figures}**, {claims[0]['claim'].removeprefix('... ')}" if len(claims) == 1 else f"{figures}**"


def _markdown(rows: Sequence[Row], columns: Sequence[str]) -> str:
    lines = [columns, ["---"] * len(columns), *([str(row[column]) for column in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())

"""`blast figures fabric`: every curve of the paper on rack-fabric multicast, and the rack fabric beside light, each
picture with its figures as CSV.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from blast_sim.base.report import Row, as_csv
from blast_sim.base.sweep import Kept, Workers
from blast_sim.fabric.paper.claims import Verdict, verdicts
from blast_sim.fabric.paper.drawings import drawing
from blast_sim.fabric.paper.evaluation import EXPERIMENTS, PANELS, NoResult, evaluated
from blast_sim.fabric.simulator import Simulator, program
from blast_sim.figures.rack_fabric.light_drawing import with_light
from blast_sim.figures.rack_fabric.with_light import rows
from blast_sim.figures.saving import save

SEED = 1
CLAIMS = "fabric-claims.csv"


def run(arguments: argparse.Namespace) -> None:
    """Simulate what is missing, draw everything, and say what was written.

    Raises WrongInput, NoSimulator, NoResult, RunFailed, OSError.
    """
    simulator = Simulator(program())
    folder: Path = arguments.out
    kept = Kept(folder / "fabric-cells")
    if arguments.again:
        kept.clear()
    workers = Workers(arguments.processes or os.cpu_count() or 1)
    panels = [*PANELS, *EXPERIMENTS]
    curves = evaluated(simulator, panels, SEED, workers, kept)
    written = [
        path
        for panel in PANELS
        for path in save(
            folder, f"fabric-{panel.name}", arguments.format, panel.rows(curves[panel.name]), drawing(panel)
        )
    ]
    found = verdicts(curves)
    written.append(folder / CLAIMS)
    written[-1].write_text(as_csv(claim_rows(found)), encoding="utf-8")
    written += save(folder, "fabric-with-light", arguments.format, rows(simulator, workers, kept), with_light)
    sys.stdout.write("".join(f"{path}\n" for path in written))
    other = sum(not one.expected for one in found)
    if other:
        raise NoResult(f"{other} claims did not come out as docs/rack-fabric.md tells: see {folder / CLAIMS}")


def claim_rows(found: Sequence[Verdict]) -> list[Row]:
    """What was said, what was found, and what to think of it: a row for each claim."""
    return [
        {
            "figure": one.claim.figure,
            "claim": one.claim.sentence,
            "found": one.value,
            "holds": "yes" if one.holds else "no",
            "expected": "yes" if one.expected else "no",
            "why_not": one.claim.refuted,
        }
        for one in found
    ]

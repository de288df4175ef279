"""`blast figures fabric`: every curve of the paper on rack-fabric multicast, and the fabric beside optical multicast.

Each picture comes with its figures as CSV.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from blast_sim.base.provenance import Origin, Recording
from blast_sim.base.report import as_csv
from blast_sim.base.sweep import Kept, Workers
from blast_sim.fabric.simulator import Simulator, program
from blast_sim.papers.rack_fabric.claims import checked_claims, checked_experiments, claim_rows, experiment_rows
from blast_sim.papers.rack_fabric.drawings import drawing
from blast_sim.papers.rack_fabric.evaluation import EXPERIMENTS, PANELS, NoRunResultError, evaluated
from blast_sim.papers.rack_fabric.light_drawing import with_light
from blast_sim.papers.rack_fabric.with_light import rows
from blast_sim.papers.saving import gallery_of, save

SEED = 1
"""Figures show one seed; benchmarks/simulators/rack_fabric_claims.py tries others."""
CLAIMS = "fabric-claims.csv"
CLAIM_EXPERIMENTS = "fabric-experiments.csv"


def run(arguments: argparse.Namespace) -> None:
    """Simulate missing results, draw everything, and print the files.

    Raises InputError, NoSimulatorError, RunFailedError, OSError; NoRunResultError also if a row contradicts its
    verdict.
    """
    recording = Recording()
    simulator = Simulator(program())
    folder: Path = arguments.out
    kept = Kept(folder / "fabric-cells")
    if arguments.again:
        kept.clear()
    workers = Workers(arguments.processes or os.cpu_count() or 1)
    panels = [*PANELS, *EXPERIMENTS]
    curves = evaluated(simulator, panels, SEED, workers, kept)
    beside_light = rows(simulator, workers, kept)
    origin = Origin("figures fabric", seeds=(SEED,), rack_fabric=simulator.version())
    gallery = gallery_of(arguments, recording, origin)
    written = [
        path
        for panel in PANELS
        for path in save(gallery, f"fabric-{panel.name}", panel.rows(curves[panel.name]), drawing(panel))
    ]
    claims, experiments = checked_claims(curves), checked_experiments(curves)
    for name, table in ((CLAIMS, claim_rows(claims)), (CLAIM_EXPERIMENTS, experiment_rows(experiments))):
        written.append(folder / name)
        written[-1].write_text(as_csv(table, gallery.provenance), encoding="utf-8")
    written += save(gallery, "fabric-with-light", beside_light, with_light)
    sys.stdout.write("".join(f"{path}\n" for path in written))
    other = sum(not claim.expected for claim in claims) + sum(not one.expected for one in experiments)
    if other:
        raise NoRunResultError(
            f"{other} rows differ from their verdict in docs/explanation/rack-fabric.md: see as_expected in {folder}"
        )

"""`blast figures blast`: pictures of the flow-level simulations and of the allocator, each with its figures as CSV."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from blast_sim.base.provenance import Origin, Recording
from blast_sim.base.report import Row
from blast_sim.base.sweep import Failure, Kept, Workers, run_cells
from blast_sim.experiments.cell import FlowCell
from blast_sim.experiments.run import run_cell
from blast_sim.papers.blast import (
    drawings,
    figure_cells,
    job_drawings,
    optimality_drawings,
    set_up_cells,
    set_up_drawing,
    size_drawings,
)
from blast_sim.papers.drawings import decision_times
from blast_sim.papers.measurements import BENCHMARKS
from blast_sim.papers.saving import Drawing, gallery_of, measured, papers, save

ALLOCATOR = [benchmark for benchmark in BENCHMARKS if benchmark.script in ("allocation_speed", "allocation_quality")]


class NoCellResultError(Exception):
    """A cell of a picture has no result. One sentence."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: its simulations, and its drawing."""

    name: str
    cells: Callable[[bool], list[FlowCell]]
    drawing: Drawing


PICTURES = (
    Picture("blast-figure-4", figure_cells.figure_four, drawings.figure_four),
    Picture("blast-load", figure_cells.against_load, drawings.against_load),
    Picture("blast-splitters", figure_cells.against_splitters, drawings.against_splitters),
    Picture("blast-racks", figure_cells.against_racks, drawings.against_racks),
    Picture("blast-sizes", figure_cells.against_size, size_drawings.against_size),
    Picture("blast-jobs", figure_cells.iterative_jobs, job_drawings.iterative_jobs),
    Picture("blast-ip-multicast", set_up_cells.against_set_up, set_up_drawing.against_set_up),
)


def run(arguments: argparse.Namespace) -> None:
    """Simulate and measure missing results, draw everything, and print the files.

    Raises InputError, MeasurementFailedError, NoCellResultError, WorkerDiedError, OSError.
    """
    recording = Recording()
    folder: Path = arguments.out
    folder.mkdir(parents=True, exist_ok=True)
    plans = [(picture, picture.cells(arguments.quick)) for picture in PICTURES]
    kept = Kept(folder / "cells")
    if arguments.again:
        kept.clear()
    bar = tqdm(
        total=sum(len(cells) for _, cells in plans),
        desc="cells",
        disable=not sys.stderr.isatty(),
        file=sys.stderr,
        leave=False,
    )
    with bar:
        results = [(picture, _rows(cells, arguments.processes, kept, bar.update)) for picture, cells in plans]
    tables = measured(arguments, ALLOCATOR)
    seeds = sorted({cell.seed for _, cells in plans for cell in cells})
    gallery = gallery_of(arguments, recording, Origin("figures blast", {"quick": arguments.quick}, seeds))
    written = [path for picture, rows in results for path in save(gallery, picture.name, rows, picture.drawing)]
    sizes = next(rows for picture, rows in results if picture.name == "blast-sizes")
    written += save(gallery, "blast-break-even", figure_cells.break_even(sizes), size_drawings.break_even)
    speeds = [*tables["table_one"], *papers(tables["papers_table_one"])]
    written += save(gallery, "blast-computation", speeds, decision_times)
    written += save(gallery, "blast-optimality", tables["rows"], optimality_drawings.optimality)
    written += save(gallery, "blast-greedy", tables["mixture"], optimality_drawings.greedy_readings)
    sys.stdout.write("".join(f"{path}\n" for path in written))


def _rows(
    cells: Sequence[FlowCell], processes: int | None, kept: Kept, progress: Callable[[float], object]
) -> list[Row]:
    """Run these cells; return their rows with their labels. Raises InputError, NoCellResultError, WorkerDiedError."""
    rows: list[Row] = []
    workers = Workers(processes or os.cpu_count() or 1)
    for cell, result in zip(cells, run_cells(run_cell, cells, workers, kept, progress), strict=True):
        if isinstance(result, Failure):
            raise NoCellResultError(
                f"{cell.method} on {cell.network} beside {cell.background} has none: {result.reason}"
            )
        rows += [{**cell.labels, **row} for row in result]
    return rows

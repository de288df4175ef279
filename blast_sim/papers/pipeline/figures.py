"""`blast figures pipeline`: the evaluation of the Kascade paper (section IV) with our pipeline.

Each figure comes with its data as CSV. Throughput is size ÷ time, with 95 % intervals as in the paper. The paper's
links had 1 Gbit/s and ours are slower, so that one machine can emulate a hundred hosts; the comparison uses the share
of the link's rate, and start-up is shown separately.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from blast_sim.base.confidence import half_width
from blast_sim.base.provenance import Origin, Recording
from blast_sim.base.report import Row
from blast_sim.papers.measurements import Benchmark, MeasurementFailedError, Tables
from blast_sim.papers.pipeline.drawings import of_rates, of_shares
from blast_sim.papers.pipeline.failure_drawing import of_failures
from blast_sim.papers.pipeline.rows import COLUMNS, drawn, scenario_summary
from blast_sim.papers.pipeline.start_drawing import of_start
from blast_sim.papers.saving import Drawing, Gallery, gallery_of, measured, save

__all__ = ["MeasurementFailedError", "draw", "run"]

BENCHMARKS = (
    Benchmark("pipeline_scenarios", {"rows": COLUMNS}, keeps=True, needs_checkout=True),
    Benchmark(
        "pipeline_failures",
        {"failures": ("way", "scenario", "nodes", "rate_mbps", "bytes", "seconds")},
        keeps=True,
        needs_checkout=True,
    ),
)

PAPER_LINK = 125.0
"""MB/s of the paper's 1 Gbit/s links."""
PAPER = (
    {"scenario": "disk", "megabytes_per_second": 45.0, "from": "Kascade paper, IV-D: 45 MB/s, disks of 83.5 MB/s"},
    {"scenario": "no failure", "megabytes_per_second": 80.0, "from": "Kascade paper, IV-G: 80 MB/s without failure"},
)
"""Values from the paper's text; its pictures have no figures to read."""
SITES = "Each receiver but the first on a site of its own, 16 ms there and back"


def run(arguments: argparse.Namespace) -> None:
    """Draw everything, and print the files. Raises InputError, MeasurementFailedError, OSError."""
    recording = Recording()
    tables = measured(arguments, BENCHMARKS)
    for path in draw(tables, gallery_of(arguments, recording, Origin("figures pipeline"))):
        sys.stdout.write(f"{path}\n")


def draw(tables: Tables, gallery: Gallery) -> list[Path]:
    """Write every picture and its CSV; return the files written."""
    rows = drawn(scenario_summary(row) for row in tables["rows"])
    ours = [row for row in _of(rows, "ordered") if row["tool"] == "pipeline"]
    failures = [summary(row) for row in tables["failures"] if row["seconds"]]
    random = _of(rows, "random")
    drawings: list[tuple[str, Sequence[Row], Drawing]] = [
        ("pipeline-scale", _of(rows, "ordered"), of_shares("Receivers ordered by racks (paper: IV-A)")),
        ("pipeline-fast", _of(rows, "fast"), of_rates),
        ("pipeline-random", [*random, *(ours if random else [])], of_shares("Receivers in random order (paper: IV-C)")),
        ("pipeline-disk", _with_paper(_of(rows, "disk"), "disk"), of_shares("Copies to one disk (paper: IV-D)")),
        ("pipeline-sites", _of(rows, "sites"), of_shares(f"{SITES} (paper: IV-E)")),
        ("pipeline-small", _of(rows, "small"), of_start),
        ("pipeline-failures", _with_paper(failures, "no failure"), of_failures),
    ]
    return [path for name, own, drawing in drawings if own for path in save(gallery, name, own, drawing)]


def summary(row: Row) -> Row:
    """Return mean and half confidence interval of time, throughput, and throughput as a share of the link."""
    rates = [row["bytes"] / 1e6 / seconds for seconds in row["seconds"]]
    mean, half = statistics.mean(rates), half_width(rates)
    link = row["rate_mbps"] / 8 if row["rate_mbps"] else None
    kept = {
        name: value for name, value in row.items() if name not in {"seconds", "sender_seconds", "failures", "wrong"}
    }
    return {
        **kept,
        "runs": len(rates),
        "seconds": statistics.mean(row["seconds"]),
        "seconds_half": half_width(row["seconds"]),
        "megabytes_per_second": mean,
        "half": half,
        "share": mean / link if link else None,
        "share_half": half / link if link else None,
    }


def _of(rows: Sequence[Row], *scenarios: str) -> list[Row]:
    return [row for row in rows if row["scenario"] in scenarios]


def _with_paper(rows: Sequence[Row], scenario: str) -> list[Row]:
    """Return the paper's values with the measured ones, if there are any."""
    papers = [{**row, "share": row["megabytes_per_second"] / PAPER_LINK} for row in _of(PAPER, scenario)]
    return [*rows, *papers] if rows else []

"""`blast figures pipeline`: the evaluation of the Kascade paper (section IV) with our pipeline, each picture with its
figures as CSV.

Throughput is size ÷ time, as in the paper, and intervals are its 95 % ones. Its links had 1 Gbit/s and ours are slower,
so that one machine can be a hundred hosts; what is compared is the share of the link's rate.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from blast_sim.confidence import half_width
from blast_sim.figures import Drawing, measured, save
from blast_sim.measurements import Benchmark, MeasurementFailed, Row, Tables
from blast_sim.pipeline_drawings import against_receivers, in_seconds, of_failures, of_sites

__all__ = ["MeasurementFailed", "draw", "run"]

BENCHMARKS = (
    Benchmark(
        "pipeline_scenarios", {"rows": ("scenario", "tool", "title", "receivers", "rate_mbps", "bytes", "seconds")}
    ),
    Benchmark("pipeline_failures", {"failures": ("scenario", "nodes", "rate_mbps", "bytes", "seconds")}),
)

PAPER_LINK = 125.0
"""MB/s of the paper's 1 Gbit/s links."""
PAPER = (
    {"scenario": "disk", "megabytes_per_second": 45.0, "from": "Kascade paper, IV-D: 45 MB/s, disks of 83.5 MB/s"},
    {"scenario": "no failure", "megabytes_per_second": 80.0, "from": "Kascade paper, IV-G: 80 MB/s without failure"},
)
"""What the paper's text states; its pictures have no figures to read."""


def run(arguments: argparse.Namespace) -> None:
    """Draw everything, and say what was written. Raises WrongInput, MeasurementFailed, OSError."""
    for path in draw(measured(arguments, BENCHMARKS), arguments.out, arguments.format):
        sys.stdout.write(f"{path}\n")


def draw(tables: Tables, folder: Path, kind: str) -> list[Path]:
    """Write every picture (`kind` svg or png) and its CSV into `folder`; the files written."""
    rows = [summary(row) for row in tables["rows"] if row["seconds"]]
    failures = [summary(row) for row in tables["failures"] if row["seconds"]]
    drawings: list[tuple[str, Sequence[Row], Drawing]] = [
        ("pipeline-scale", [*_of(rows, "ordered", "random", "disk"), *_papers("disk")], against_receivers),
        ("pipeline-sites", _of(rows, "sites"), of_sites),
        ("pipeline-small", _of(rows, "small"), in_seconds),
        ("pipeline-failures", [*failures, *_papers("no failure")], of_failures),
    ]
    return [path for name, own, drawing in drawings if own for path in save(folder, name, kind, own, drawing)]


def summary(row: Row) -> Row:
    """Mean and half of the confidence interval, of the time, of the throughput, and of that as share of the link."""
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


def _papers(*scenarios: str) -> list[Row]:
    return [{**row, "share": row["megabytes_per_second"] / PAPER_LINK} for row in _of(PAPER, *scenarios)]

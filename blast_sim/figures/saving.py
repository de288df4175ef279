"""`blast figures allocation`: pictures of the allocation results, each with its figures as CSV."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from tqdm import tqdm

from blast_sim.base.files import whole_or_not
from blast_sim.base.report import Row
from blast_sim.figures.drawings import all_policies, completion_times, decision_times, shares_of_optimum
from blast_sim.figures.measurements import BENCHMARKS, Benchmark, MeasurementFailed, Tables, kept_in, measure, read

Drawing = Callable[[Figure, Sequence[Row]], None]

__all__ = ["MeasurementFailed", "draw", "measured", "papers", "run", "save"]


def run(arguments: argparse.Namespace) -> None:
    """Draw everything about allocation, and say what was written. Raises WrongInput, MeasurementFailed, OSError."""
    tables = measured(arguments, BENCHMARKS)
    for path in draw(tables, arguments.out, arguments.format):
        sys.stdout.write(f"{path}\n")


def measured(arguments: argparse.Namespace, benchmarks: Sequence[Benchmark]) -> Tables:
    """The tables of these benchmarks; what is missing is measured. Raises WrongInput, MeasurementFailed, OSError."""
    folder: Path = arguments.out
    folder.mkdir(parents=True, exist_ok=True)
    missing = [benchmark for benchmark in benchmarks if arguments.again or not kept_in(folder, benchmark).exists()]
    bar = tqdm(missing, desc="measuring", disable=not sys.stderr.isatty(), file=sys.stderr, leave=False)
    for benchmark in bar:
        measure(
            benchmark,
            arguments.benchmarks,
            arguments.quick,
            folder,
            lambda said, script=benchmark.script: bar.set_postfix_str(f"{script}: {said}"),  # type: ignore[misc]
        )
    return {name: rows for one in benchmarks for name, rows in read(kept_in(folder, one), one).items()}


def draw(tables: Tables, folder: Path, kind: str) -> list[Path]:
    """Write every picture (`kind` svg or png) and its CSV into `folder`; the files written."""
    drawings: list[tuple[str, Sequence[Row], Drawing]] = [
        ("allocation-time", [*tables["table_one"], *papers(tables["papers_table_one"])], decision_times),
        ("allocation-quality", tables["rows"], shares_of_optimum),
        ("completion-time", tables["completion"], completion_times),
        ("completion-policies", tables["policies"], all_policies),
    ]
    return [path for name, rows, drawing in drawings for path in save(folder, name, kind, rows, drawing)]


def save(folder: Path, name: str, kind: str, rows: Sequence[Row], drawing: Drawing) -> list[Path]:
    """Write a picture of these rows, and the rows as CSV; the files written."""
    picture, figures = folder / f"{name}.{kind}", folder / f"{name}.csv"
    with drawn(rows, drawing) as figure, whole_or_not(picture) as unfinished:
        figure.savefig(unfinished, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    with whole_or_not(figures) as unfinished:
        _write_csv(unfinished, rows)
    return [picture, figures]


@contextmanager
def drawn(rows: Sequence[Row], drawing: Drawing) -> Iterator[Figure]:
    """The picture of these rows. The same figures make the same file, bit for bit, and its text stays text."""
    with mpl.rc_context(
        {"svg.hashsalt": "blast", "svg.fonttype": "none", "figure.constrained_layout.use": True, "font.size": 9.0}
    ):
        figure = Figure(figsize=(8.0, 5.0))
        drawing(figure, rows)
        yield figure


def papers(rows: Sequence[Row]) -> list[Row]:
    """Rows that are printed in the paper, as such."""
    return [{**row, "from": "the Blast paper, Table I"} for row in rows]


def _write_csv(path: Path, rows: Sequence[Row]) -> None:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)

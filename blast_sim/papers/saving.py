"""`blast figures allocation`: pictures of the allocation results, each with its figures as CSV."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from tqdm import tqdm

from blast_sim.base.files import whole_or_not
from blast_sim.base.provenance import Origin, Provenance, Recording
from blast_sim.base.report import Row, as_csv
from blast_sim.papers.canvas import SCREEN, Canvas, Style
from blast_sim.papers.drawings import all_policies, completion_times, decision_times, shares_of_optimum
from blast_sim.papers.measurements import BENCHMARKS, Benchmark, MeasurementFailedError, Tables, kept_in, measure, read

Drawing = Callable[[Figure, Sequence[Row]], None]

DOTS_PER_INCH = 300
UNDATED: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
"""Metadata without the date that matplotlib would write, so that the same rows make the same file."""

__all__ = ["Gallery", "MeasurementFailedError", "draw", "gallery_of", "measured", "papers", "run", "save"]


def run(arguments: argparse.Namespace) -> None:
    """Draw all allocation results, and print the files. Raises InputError, MeasurementFailedError, OSError."""
    recording = Recording()
    tables = measured(arguments, BENCHMARKS)
    for path in draw(tables, gallery_of(arguments, recording, Origin("figures allocation"))):
        sys.stdout.write(f"{path}\n")


def measured(arguments: argparse.Namespace, benchmarks: Sequence[Benchmark]) -> Tables:
    """Return the tables of these benchmarks; measure missing ones.

    Raises InputError, MeasurementFailedError, OSError.
    """
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
            lambda line, script=benchmark.script: bar.set_postfix_str(f"{script}: {line}"),  # type: ignore[misc]
        )
    return {name: rows for one in benchmarks for name, rows in read(kept_in(folder, one), one).items()}


def draw(tables: Tables, gallery: Gallery) -> list[Path]:
    """Write every picture and its CSV; return the files written."""
    drawings: list[tuple[str, Sequence[Row], Drawing]] = [
        ("allocation-time", [*tables["table_one"], *papers(tables["papers_table_one"])], decision_times),
        ("allocation-quality", tables["rows"], shares_of_optimum),
        ("completion-time", tables["completion"], completion_times),
        ("completion-policies", tables["policies"], all_policies),
    ]
    return [path for name, rows, drawing in drawings for path in save(gallery, name, rows, drawing)]


@dataclass(frozen=True, slots=True)
class Gallery:
    """A folder of pictures in one style; pictures and tables name their provenance, where there is one."""

    folder: Path
    style: Style = SCREEN
    provenance: Provenance | None = None


def gallery_of(arguments: argparse.Namespace, recording: Recording, origin: Origin) -> Gallery:
    """Return the folder and the style that the options of a command ask for; the folder is made.

    `recording` began with the command; call it when all results are there.
    """
    folder: Path = arguments.out
    folder.mkdir(parents=True, exist_ok=True)
    style = Style(arguments.format, arguments.width, arguments.font_size, arguments.title)
    return Gallery(folder, style, recording.provenance(origin))


def save(gallery: Gallery, name: str, rows: Sequence[Row], drawing: Drawing) -> list[Path]:
    """Write a picture of these rows, and the rows as CSV; return the files written."""
    style, provenance = gallery.style, gallery.provenance
    metadata = UNDATED[style.format] if provenance is None else provenance.picture_metadata(style.format)
    picture, figures = gallery.folder / f"{name}.{style.format}", gallery.folder / f"{name}.csv"
    with drawn(rows, drawing, style) as figure, whole_or_not(picture) as unfinished:
        figure.savefig(unfinished, format=style.format, dpi=DOTS_PER_INCH, metadata=metadata)
    with whole_or_not(figures) as unfinished:
        unfinished.write_text(as_csv(rows, provenance), encoding="utf-8")
    return [picture, figures]


@contextmanager
def drawn(rows: Sequence[Row], drawing: Drawing, style: Style) -> Iterator[Figure]:
    """Draw these rows. The same rows make the same file, bit for bit, and its text stays text."""
    with mpl.rc_context(
        {
            "svg.hashsalt": "blast",
            "svg.fonttype": "none",
            # 42: TrueType; journals refuse the default, Type 3.
            "pdf.fonttype": 42,
            "figure.constrained_layout.use": True,
            "font.size": style.font_size,
            "figure.titlesize": "medium",
            "axes.titlesize": "medium",
        }
    ):
        figure = Canvas(style)
        drawing(figure, rows)
        figure.fit()
        yield figure


def papers(rows: Sequence[Row]) -> list[Row]:
    """Return rows that the paper prints, with their source."""
    return [{"from": "the Blast paper, Table I", **row} for row in rows]

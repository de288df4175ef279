"""`blast figures balanced`: the evaluation of the paper on balanced multicasting (section 4), each picture with its
figures as CSV.

Planned rates are those of `algorithms/balanced` for the testbeds there; measured ones come from files that the
benchmarks write, and are drawn beside the plan that they were measured for.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from algorithms.balanced.exact import exact
from algorithms.balanced.network import Network
from algorithms.balanced.plan import Plan
from algorithms.balanced.testbeds import CLUSTERS, SITES, das, gridlab
from blast_sim.base.report import Row
from blast_sim.base.wrong_input import WrongInput, shown
from blast_sim.figures.balanced.drawings import for_each_root, with_clusters
from blast_sim.figures.saving import save
from blast_sim.trees.network_file import MOST_RATE
from blast_sim.trees.trees_plan import HEURISTICS

METHODS: dict[str, Callable[[Network], Plan]] = {
    name: (HEURISTICS | {"exact": exact})[name] for name in ("semi-flat", "bottleneck", "fpfr", "balanced", "exact")
}
"""In the order in which they are drawn."""

NODES = range(1, 9)
"""Per cluster."""

MEASURED = ("planned", "measured")
"""Columns with bit/s that every file has beside those that name a point."""
OF_SITES = ("root", "method")
OF_CLUSTERS = ("clusters", "nodes")

SAME_PLAN = 0.05
"""Share by which the plan of a measurement may be off ours: beyond, it was another network."""
MOST_ROWS = 100_000

MEGABYTES = 8e6 / 10
"""bit/s that a MB/s of the paper's clusters is at a tenth."""
PAPER = tuple(
    {"clusters": clusters, "nodes": nodes, "measured": megabytes * MEGABYTES, "from": f"paper, 4.2: {megabytes:g} MB/s"}
    for clusters, nodes, megabytes in ((2, 1, 11.2), (2, 6, 62.0), (3, 6, 57.0))
)
"""What the paper's text states; its pictures have no figures to read."""

Point = tuple[str, ...]


def run(arguments: argparse.Namespace) -> None:
    """Draw both, and say what was written. Raises WrongInput, OSError, SolverFault, NoRates."""
    measured: dict[tuple[str, ...], list[Row]] = {OF_SITES: [], OF_CLUSTERS: []}
    for path in arguments.measured:
        names, rows = read(path)
        measured[names] += rows
    tables = {names: joined(rows, measured[names], names) for names, rows in planned().items()}
    arguments.out.mkdir(parents=True, exist_ok=True)
    for path in draw(tables, arguments.out, arguments.format):
        sys.stdout.write(f"{path}\n")


def planned() -> dict[tuple[str, ...], list[Row]]:
    """The rows of Figure 7 and those of Figure 8, as yet without measurements."""
    return {OF_SITES: list(_sites()), OF_CLUSTERS: list(_clusters())}


def _sites() -> Iterator[Row]:
    for root in SITES:
        network = gridlab(root)
        for name, method in METHODS.items():
            yield {"root": root, "method": name, "planned": method(network).rate}


def _clusters() -> Iterator[Row]:
    for count in range(2, len(CLUSTERS) + 1):
        for nodes in NODES:
            network = das(count, nodes)
            limit = min(rate for _, _, rate in network.links)
            rate = exact(network.numbered()).rate
            yield {"clusters": count, "nodes": nodes, "wide_area": limit, "planned": rate}


def draw(tables: Mapping[tuple[str, ...], Sequence[Row]], folder: Path, kind: str) -> list[Path]:
    """Write both pictures (`kind` svg or png) and their CSV into `folder`; the files written."""
    clusters = [*tables[OF_CLUSTERS], *PAPER]
    return [
        *save(folder, "balanced-sites", kind, tables[OF_SITES], for_each_root),
        *save(folder, "balanced-clusters", kind, clusters, with_clusters),
    ]


# ------------------------------------------------------------------------------------------------- measured


def read(path: Path) -> tuple[tuple[str, ...], list[Row]]:
    """The measurements in a CSV file, and the columns that name their points. Raises WrongInput, OSError."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            names = _names(path, reader.fieldnames or ())
            rows = [_measurement(f"{path}:{reader.line_num}", row, names) for row in _no_more(path, reader)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise WrongInput(f"{path} is no CSV: {error}") from None
    if not rows:
        raise WrongInput(f"{path} has no measurement in it: measure first, or leave it out")
    return names, rows


def _names(path: Path, columns: Iterable[str]) -> tuple[str, ...]:
    for names in (OF_SITES, OF_CLUSTERS):
        if {*names, *MEASURED} <= set(columns):
            return names
    wanted = " or ".join(", ".join((*names, *MEASURED)) for names in (OF_SITES, OF_CLUSTERS))
    raise WrongInput(f"{path} lacks columns: it has to have {wanted}")


def _no_more(path: Path, rows: Iterable[Row]) -> Iterator[Row]:
    for number, row in enumerate(rows):
        if number == MOST_ROWS:
            raise WrongInput(f"{path} has more than {MOST_ROWS} rows: give one of the benchmarks' results")
        yield row


def _measurement(where: str, row: Mapping[str, str | None], names: Sequence[str]) -> Row:
    return {name: (row[name] or "").strip() for name in names} | {
        name: _rate(f"{where}: {name}", row[name]) for name in MEASURED
    }


def _rate(what: str, text: str | None) -> float:
    try:
        rate = float(text or "")
    except ValueError:
        rate = math.nan
    if not 0 <= rate <= MOST_RATE:
        raise WrongInput(f"{what} is {shown(text)}, which is no number of bit/s from 0 to {MOST_RATE:g}")
    return rate


def joined(rows: Sequence[Row], measured: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """The planned rows, with what was measured of each: the mean of its runs, the least and the most.

    Raises WrongInput for a measurement of what is not planned, or is planned otherwise.
    """
    ours = {_point(row, names): row for row in rows}
    runs: dict[Point, list[float]] = {}
    for one in measured:
        point = _point(one, names)
        _check_plan(one, point, ours)
        runs.setdefault(point, []).append(one["measured"])
    return [row | _summary(runs.get(point, [])) for point, row in ours.items()]


def _point(row: Row, names: Sequence[str]) -> Point:
    return tuple(str(row[name]) for name in names)


def _check_plan(measurement: Row, point: Point, ours: Mapping[Point, Row]) -> None:
    words = ", ".join(point)
    if point not in ours:
        known = "; ".join(dict.fromkeys(", ".join(one) for one in ours))
        raise WrongInput(f"nothing is planned for {shown(words)}: known are {known}")
    mine = ours[point]["planned"]
    if abs(measurement["planned"] - mine) > SAME_PLAN * mine:
        raise WrongInput(
            f"{words} was measured on another network, with a plan of {measurement['planned']:g} bit/s instead of "
            f"{mine:g}: measure it anew"
        )


def _summary(runs: Sequence[float]) -> Row:
    if not runs:
        return {}
    return {"measured": statistics.fmean(runs), "least": min(runs), "most": max(runs), "runs": len(runs)}

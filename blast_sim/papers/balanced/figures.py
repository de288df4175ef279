"""`blast figures balanced`: the evaluation of the paper on balanced multicasting (section 4).

Each picture comes with its figures as CSV. Planned rates are those of `algorithms/balanced` for the testbeds there;
measured ones come from files that the benchmarks write, and are drawn beside the plan that they were measured for.
Claims on the eight synthetic sites are drawn beside the same claims on random networks (`random_networks`).
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from algorithms.balanced.exact import exact
from algorithms.balanced.fpfr import DEFAULT_ORDER, ORDERS, Order
from algorithms.balanced.network import Network
from algorithms.balanced.plan import MulticastPlan
from algorithms.balanced.testbeds import CLUSTERS, SITES, das, gridlab
from blast_sim.base.provenance import Origin, Recording
from blast_sim.base.report import Row, without_provenance
from blast_sim.base.wrong_input import InputError, shown
from blast_sim.papers.balanced.drawings import (
    ASSUMED,
    PLANNED,
    SYNTHETIC,
    for_each_root,
    gains,
    shares,
    with_clusters,
)
from blast_sim.papers.balanced.random_networks import NETWORKS, QUICK_NETWORKS, claim_shares, random_rows
from blast_sim.papers.saving import Gallery, gallery_of, save
from blast_sim.trees.network_file import MAX_RATE
from blast_sim.trees.trees_plan import ORDERED, SINGLE_TREE

METHODS: dict[str, Callable[[Network], MulticastPlan]] = {
    name: (SINGLE_TREE | ORDERED | {"exact": exact})[name]
    for name in ("semi-flat", "bottleneck", "fpfr", "balanced", "exact")
}
"""In the order in which they are drawn; FPFR and balanced trees with FPFR's default order."""

DRAWS, QUICK_DRAWS = 200, 20
"""Seeds of FPFR's order `random` for each root of the eight sites."""

NODES = range(1, 9)
"""Per cluster."""

MEASURED = ("planned", "measured")
"""Columns in bit/s that every file has in addition to the columns that name a point."""
OF_SITES = ("root", "method")
OF_CLUSTERS = ("clusters", "nodes")

SAME_PLAN = 0.05
"""Maximum relative difference between the plan of a measurement and ours: beyond, the network was another one."""
MAX_ROWS = 100_000
"""Far above the results of the benchmarks; a longer file is another one."""

MEGABYTES = 8e6 / 10
"""bit/s of a MB/s of the paper's clusters, at a tenth."""
PAPER = tuple(
    {
        "clusters": clusters,
        "nodes": nodes,
        "measured": megabytes * MEGABYTES,
        "from": f"paper, 4.2: {megabytes:g} MB/s with {clusters} clusters",
    }
    for clusters, nodes, megabytes in ((2, 1, 11.2), (2, 6, 62.0), (3, 6, 57.0))
)
"""Values from the paper's text; its pictures have no figures to read."""

Point = tuple[str, ...]


def run(arguments: argparse.Namespace) -> None:
    """Draw all pictures, and print the names of the files.

    Raises InputError, OSError, SolverError, NoRatesError, WorkerDiedError.
    """
    recording = Recording()
    measured: dict[tuple[str, ...], list[Row]] = {OF_SITES: [], OF_CLUSTERS: []}
    for path in arguments.measured:
        names, rows = read(path)
        measured[names] += rows
    tables = {names: joined(rows, measured[names], names) for names, rows in planned().items()}
    draws, networks = (QUICK_DRAWS, QUICK_NETWORKS) if arguments.quick else (DRAWS, NETWORKS)
    tables[OF_SITES] += other_orders(draws)
    tables[OF_CLUSTERS] = supported(tables[OF_CLUSTERS])
    random = _random(networks, arguments.processes)
    request = {"quick": arguments.quick, "measured": [str(path) for path in arguments.measured]}
    gallery = gallery_of(arguments, recording, Origin("figures balanced", request, range(networks)))
    for path in draw(tables, random, gallery):
        sys.stdout.write(f"{path}\n")


def _random(networks: int, processes: int | None) -> list[Row]:
    with tqdm(total=networks, unit=" networks", leave=False, disable=not sys.stderr.isatty(), file=sys.stderr) as bar:
        return random_rows(networks, processes or os.cpu_count() or 1, bar.update)


def planned() -> dict[tuple[str, ...], list[Row]]:
    """Return the rows of Figure 7 with FPFR's default order and those of Figure 8, without measurements."""
    return {OF_SITES: list(_sites()), OF_CLUSTERS: list(_clusters())}


def _sites() -> Iterator[Row]:
    for root in SITES:
        network = gridlab(root)
        for name, method in METHODS.items():
            yield _of_site(root, name, DEFAULT_ORDER if name in ORDERED else "") | {"planned": method(network).rate}


def _of_site(root: str, method: str, order: str) -> Row:
    return {"data": SYNTHETIC, "root": root, "method": method, "order": order}


def other_orders(draws: int) -> Iterator[Row]:
    """Yield the rows of Figure 7 with the other orders of FPFR; with `random` the median and range of these draws."""
    for order in ORDERS:
        if order != DEFAULT_ORDER:
            yield from (_drawn(root, name, order, draws) for root in SITES for name in ORDERED)


def _drawn(root: str, name: str, order: Order, draws: int) -> Row:
    network = gridlab(root)
    row = _of_site(root, name, order)
    if order != "random":
        return row | {"planned": ORDERED[name](network, order, 0).rate}
    rates = [ORDERED[name](network, order, seed).rate for seed in range(draws)]
    return row | {"planned": statistics.median(rates), "draws": draws, "draws_min": min(rates), "draws_max": max(rates)}


def _clusters() -> Iterator[Row]:
    for count in range(2, len(CLUSTERS) + 1):
        for nodes in NODES:
            network = das(count, nodes)
            limit = min(rate for _, _, rate in network.links)
            rate = exact(network.numbered()).rate
            yield {"clusters": count, "nodes": nodes, "wide_area": limit, "line": ASSUMED, "planned": rate}


def supported(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of Figure 8; `line` is `planned` for clusters with a measurement, else `assumed`."""
    measured = {row["clusters"] for row in rows if "measured" in row}
    return [row | {"line": PLANNED if row["clusters"] in measured else ASSUMED} for row in rows]


def draw(tables: Mapping[tuple[str, ...], Sequence[Row]], random: Sequence[Row], gallery: Gallery) -> list[Path]:
    """Write all pictures and their CSV, and return the files.

    `random` are the rows of the random networks.
    """
    return [
        *save(gallery, "balanced-sites", tables[OF_SITES], for_each_root),
        *save(gallery, "balanced-clusters", [*tables[OF_CLUSTERS], *PAPER], with_clusters),
        *save(gallery, "balanced-random-gains", random, gains),
        *save(gallery, "balanced-random-shares", claim_shares(random), shares),
    ]


# ------------------------------------------------------------------------------------------------- measured


def read(path: Path) -> tuple[tuple[str, ...], list[Row]]:
    """Return the columns that name points, and the measurements in a CSV file. Raises InputError, OSError."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            before, lines = without_provenance(file)
            reader = csv.DictReader(lines)
            names = _names(path, reader.fieldnames or ())
            rows = [_measurement(f"{path}:{before + reader.line_num}", row, names) for row in _limited(path, reader)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no CSV: {error}") from None
    if not rows:
        raise InputError(f"{path} has no measurement in it: measure first, or leave it out")
    return names, rows


def _names(path: Path, columns: Iterable[str]) -> tuple[str, ...]:
    for names in (OF_SITES, OF_CLUSTERS):
        if {*names, *MEASURED} <= set(columns):
            return names
    needed = " or ".join(", ".join((*names, *MEASURED)) for names in (OF_SITES, OF_CLUSTERS))
    raise InputError(f"{path} lacks columns: add {needed}")


def _limited(path: Path, rows: Iterable[Row]) -> Iterator[Row]:
    for number, row in enumerate(rows):
        if number == MAX_ROWS:
            raise InputError(f"{path} has more than {MAX_ROWS} rows: give one of the benchmarks' results")
        yield row


def _measurement(where: str, row: Mapping[str, str | None], names: Sequence[str]) -> Row:
    return {name: (row[name] or "").strip() for name in names} | {
        name: _rate(f"{where}: {name}", row[name]) for name in MEASURED
    }


def _rate(column: str, text: str | None) -> float:
    try:
        rate = float(text or "")
    except ValueError:
        rate = math.nan
    if not 0 <= rate <= MAX_RATE:
        raise InputError(f"{column} is {shown(text)}, which is no number of bit/s from 0 to {MAX_RATE:g}")
    return rate


def joined(rows: Sequence[Row], measured: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Return the planned rows, each with the mean, minimum and maximum of its measured runs.

    Raises InputError for a measurement without a plan, or with another one.
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
        raise InputError(f"nothing is planned for {shown(words)}: known are {known}")
    mine = ours[point]["planned"]
    if abs(measurement["planned"] - mine) > SAME_PLAN * mine:
        raise InputError(
            f"{words} was measured on another network, with a plan of {measurement['planned']:g} bit/s instead of "
            f"{mine:g}: measure it again"
        )


def _summary(runs: Sequence[float]) -> Row:
    if not runs:
        return {}
    return {
        "measured": statistics.fmean(runs),
        "measured_min": min(runs),
        "measured_max": max(runs),
        "runs": len(runs),
    }

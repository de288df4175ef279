"""What `blast sim flow` does: reads a scenario, runs its cells, prints what came of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tqdm import tqdm

from blast_sim.base.report import Row, as_csv, as_json, as_table
from blast_sim.base.scenario_file import Source
from blast_sim.base.settings import combinations, setting, sweep
from blast_sim.base.sweep import Failure, Kept, Workers, run_cells
from blast_sim.base.wrong_input import WrongInput
from blast_sim.controller.compute import compute_of
from blast_sim.experiments.cell import Cell, Effort, cells_of
from blast_sim.experiments.run import run_cell
from blast_sim.scenarios.loading import find, load

DONE, FAILED, SOME = 0, 1, 3


def run(arguments: argparse.Namespace) -> int:
    """Run every cell; the exit status. Raises WrongInput, NoScheduler, OSError."""
    source = find(arguments.scenario)
    if arguments.show:
        sys.stdout.write(source.text)
        return DONE
    cells = wanted_cells(source, arguments)
    bar = tqdm(total=len(cells), desc="cells", disable=not sys.stderr.isatty(), file=sys.stderr, leave=False)
    with bar:
        workers = Workers(arguments.processes, arguments.scheduler)
        results = run_cells(run_cell, cells, workers, Kept(arguments.keep), bar.update)
    rows: list[Row] = []
    failures: list[tuple[Cell, str]] = []
    for cell, result in zip(cells, results, strict=True):
        if isinstance(result, Failure):
            failures.append((cell, result.reason))
        else:
            rows += [_printed(cell, row) for row in result]
    shown = as_json if arguments.json else as_csv if arguments.csv else as_table
    sys.stdout.write(shown(rows))
    for cell, reason in failures:
        sys.stderr.write(f"blast: {_name(cell)} has no result: {reason}\n")
    return DONE if not failures else SOME if rows else FAILED


FILTERS = {"methods": "method", "networks": "network", "backgrounds": "background", "policies": "policy"}
"""Options that choose among the cells -> what of a cell they look at."""


def wanted_cells(source: Source, arguments: argparse.Namespace) -> list[Cell]:
    """Every cell that the options leave, for every combination of the swept keys. Raises WrongInput."""
    fixed = dict(map(setting, arguments.set))
    swept = dict(map(sweep, arguments.sweep))
    effort = Effort(arguments.compute, arguments.stepped)
    # What is wrong with this option is to be said before anything is run.
    compute_of(arguments.compute, 1, 1)
    cells: list[Cell] = []
    for labels in combinations(swept):
        cells += cells_of(load(source, {**fixed, **labels}), arguments.seeds, effort, labels)
    for option, part in FILTERS.items():
        cells = _left(cells, getattr(arguments, option), part)
    return cells


def _left(cells: Sequence[Cell], names: Sequence[str] | None, part: str) -> list[Cell]:
    """The cells that have one of these names, or none. Raises WrongInput for a name that no cell has."""
    if names is None:
        return list(cells)
    found = list(dict.fromkeys(filter(None, (getattr(cell, part) for cell in cells))))
    for name in names:
        if name not in found:
            raise WrongInput(
                f"no cell of the scenario has the {part} {name!r}, but {', '.join(found) or 'none at all'}: "
                "add it to a [[run]] of a file of your own (--show)"
            )
    return [cell for cell in cells if getattr(cell, part) in (*names, "")]


def _printed(cell: Cell, row: Row) -> Row:
    columns = cell.scenario.columns or tuple(row)
    return {**cell.labels, **{column: row[column] for column in columns if column in row}}


def _name(cell: Cell) -> str:
    labels = [f"{key} = {value}" for key, value in cell.labels.items()]
    return ", ".join(filter(None, (cell.method, cell.network, cell.background, cell.policy, *labels)))

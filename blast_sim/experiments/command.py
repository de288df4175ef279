"""`blast sim flow`: reads a scenario, runs its cells, and prints the results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import UnionType

from tqdm import tqdm

from blast_base.command_line import DONE, FAILED, PARTLY
from blast_sim.base.parquet import write_parquet
from blast_sim.base.provenance import Origin, Recording
from blast_sim.base.report import Row, as_csv, as_json, as_table
from blast_sim.base.scenario_file import ScenarioSource
from blast_sim.base.settings import combinations, setting, sweep
from blast_sim.base.sweep import Failure, Kept, Workers, run_cells
from blast_sim.base.wrong_input import InputError
from blast_sim.controller.compute import compute_of
from blast_sim.experiments.cell import Effort, FlowCell, cells_of
from blast_sim.experiments.run import run_cell
from blast_sim.plugins.loading import is_plugin, require_plugin
from blast_sim.scenarios.loading import find, load
from blast_sim.scenarios.schema import Scenario

KIND = "flow"


def run(arguments: argparse.Namespace) -> int:
    """Run every cell; return the exit status.

    Raises InputError, PluginFailedError, NoSchedulerError, WorkerDiedError, OSError.
    """
    source = find(arguments.scenario)
    if arguments.show:
        sys.stdout.write(source.text)
        return DONE
    recording = Recording()
    cells = requested_cells(source, arguments)
    bar = tqdm(total=len(cells), desc="cells", disable=not sys.stderr.isatty(), file=sys.stderr, leave=False)
    with bar:
        workers = Workers(arguments.processes, arguments.scheduler)
        results = run_cells(run_cell, cells, workers, Kept(arguments.keep), bar.update)
    rows: list[Row] = []
    failures: list[tuple[FlowCell, str]] = []
    for cell, result in zip(cells, results, strict=True):
        if isinstance(result, Failure):
            failures.append((cell, result.reason))
        else:
            rows += [printed(cell, row) for row in result]
    provenance = recording.provenance(origin_of(source, arguments, cells))
    if arguments.parquet is not None:
        write_parquet(arguments.parquet, rows, provenance)
    if arguments.json or arguments.csv:
        sys.stdout.write((as_json if arguments.json else as_csv)(rows, provenance))
    else:
        sys.stdout.write(as_table(rows))
    for cell, reason in failures:
        sys.stderr.write(f"blast: {name_of(cell)} has no result: {reason}\n")
    return DONE if not failures else PARTLY if rows else FAILED


FILTERS = {"methods": "method", "networks": "network", "backgrounds": "background", "policies": "policy"}
"""Filter options, with the attribute of a cell that each of them compares."""


OPTIONS: dict[str, type | UnionType] = {
    "set": list,
    "sweep": list,
    "seeds": tuple | list,
    "methods": tuple | list | None,
    "networks": tuple | list | None,
    "backgrounds": tuple | list | None,
    "policies": tuple | list | None,
    "compute": str,
    "stepped": bool,
}
"""Options that affect results, with their types; lists are tuples here, and lists in JSON."""


def origin_of(source: ScenarioSource, arguments: argparse.Namespace, cells: Sequence[FlowCell]) -> Origin:
    """Return the request that reproduces these results."""
    plugins = dict.fromkeys(plugin for cell in cells for plugin in cell.plugins)
    options = {option: getattr(arguments, option) for option in OPTIONS}
    return Origin(KIND, {"scenario": source.description, **options}, arguments.seeds, tuple(plugins))


def requested_cells(source: ScenarioSource, arguments: argparse.Namespace) -> list[FlowCell]:
    """Return the cells that pass the filters, for every combination of the swept keys.

    Raises InputError, PluginFailedError.
    """
    fixed = dict(map(setting, arguments.set))
    swept = dict(map(sweep, arguments.sweep))
    effort = Effort(arguments.compute, arguments.stepped)
    # An invalid option must be reported before any cell runs.
    compute_of(arguments.compute, 1, 1)
    cells: list[FlowCell] = []
    for labels in combinations(swept):
        scenario = with_plugins(load(source, {**fixed, **labels}), arguments.methods or (), arguments.policies or ())
        cells += cells_of(scenario, arguments.seeds, effort, labels)
    cells = _without_repeats(cells)
    for option, part in FILTERS.items():
        cells = _left(cells, getattr(arguments, option), part)
    return cells


def with_plugins(scenario: Scenario, methods: Sequence[str], policies: Sequence[str]) -> Scenario:
    """Add the plug-ins among these names to every run of a scenario.

    Raises PluginError, NoSourceError, PluginFailedError.
    """
    more_methods = [name for name in methods if is_plugin("method", name)]
    more_policies = [name for name in policies if is_plugin("policy", name)]
    for name in more_methods:
        require_plugin("method", name)
    for name in more_policies:
        require_plugin("policy", name)
    runs = tuple(
        run.model_copy(
            update={
                "methods": tuple(dict.fromkeys([*run.methods, *more_methods])),
                "policies": tuple(dict.fromkeys([*run.policies, *more_policies])),
            }
        )
        for run in scenario.run
    )
    return scenario.model_copy(update={"run": runs})


def _without_repeats(cells: Sequence[FlowCell]) -> list[FlowCell]:
    """Drop repeated cells of plug-ins: two runs of a scenario may share a network and a background."""
    names = [name_of(cell) for cell in cells]
    return [cell for place, cell in enumerate(cells) if not cell.plugins or names[place] not in names[:place]]


def _left(cells: Sequence[FlowCell], names: Sequence[str] | None, part: str) -> list[FlowCell]:
    """Return the cells whose `part` is one of these names or empty; all cells if `names` is None.

    Raises InputError for a name that no cell has.
    """
    if names is None:
        return list(cells)
    found = list(dict.fromkeys(filter(None, (getattr(cell, part) for cell in cells))))
    for name in names:
        if name not in found:
            raise InputError(
                f"no cell of the scenario has the {part} {name!r}, only {', '.join(found) or 'none'}: "
                "add it to a [[run]] of a file of your own (--show)"
            )
    return [cell for cell in cells if getattr(cell, part) in (*names, "")]


def printed(cell: FlowCell, row: Row) -> Row:
    """Return a row of a cell with the columns that the scenario prints."""
    columns = cell.scenario.columns or tuple(row)
    return {**cell.labels, **{column: row[column] for column in columns if column in row}}


def name_of(cell: FlowCell) -> str:
    """Return a name that is unique among the cells of a scenario."""
    labels = [f"{key} = {value}" for key, value in cell.labels.items()]
    return ", ".join(filter(None, (cell.method, cell.network, cell.background, cell.policy, *labels)))

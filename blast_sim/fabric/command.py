"""`blast sim fabric`: reads a scenario, simulates its cells, and prints the results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType

from blast_base.command_line import DONE, FAILED, PARTLY
from blast_controller.configuration.schema import SchemaError, line_of
from blast_sim.base.parquet import write_parquet
from blast_sim.base.provenance import Origin, Provenance, Recording
from blast_sim.base.report import Row, as_csv, as_json, as_table
from blast_sim.base.scenario_file import ScenarioSource, find_in, refusal
from blast_sim.base.settings import combinations, setting, sweep
from blast_sim.base.sweep import Failure, Kept, Workers
from blast_sim.base.wrong_input import InputError
from blast_sim.fabric.cell import FabricCell
from blast_sim.fabric.running import simulated
from blast_sim.fabric.scenario import HERE, dotted, load
from blast_sim.fabric.simulator import ScenarioRefusedError, Simulator, program

KIND = "fabric"
OPTIONS: dict[str, type | UnionType] = {"set": list, "sweep": list, "seeds": tuple | list | None}
"""Options that affect results, with their types; lists are tuples here, and lists in JSON."""

COLUMNS = ("leaf", "port", "gbps", "copies", "mean_delay_ns")
"""First columns of a destination's row; the simulator's other values follow."""


def run(arguments: argparse.Namespace) -> int:
    """Run every cell; return the exit status.

    Raises InputError, NoSimulatorError, RunFailedError, NoSchedulerError, OSError.
    """
    source = find_in(HERE, arguments.scenario)
    if arguments.show:
        sys.stdout.write(source.text)
        return DONE
    recording = Recording()
    simulator = Simulator(program())
    cells = requested_cells(source, arguments, simulator)
    _check_trace(arguments, cells)
    workers = Workers(arguments.processes, arguments.scheduler)
    results = simulated(simulator, cells, Kept(arguments.keep), workers, arguments.trace)
    found = [(cell, result[0]) for cell, result in zip(cells, results, strict=True) if not isinstance(result, Failure)]
    provenance = recording.provenance(origin_of(source, arguments, simulator))
    if arguments.parquet is not None:
        rows = [row for cell, results in found for row in destinations(cell, results)]
        write_parquet(arguments.parquet, rows, provenance)
    if found or arguments.json:
        sys.stdout.write(_shown(found, arguments, provenance))
    for cell, result in zip(cells, results, strict=True):
        if isinstance(result, Failure):
            sys.stderr.write(f"blast: {name_of(cell)} has no result: {result.reason}\n")
    return DONE if len(found) == len(cells) else PARTLY if found else FAILED


def origin_of(source: ScenarioSource, arguments: argparse.Namespace, simulator: Simulator) -> Origin:
    """Return the request that reproduces these results."""
    options = {option: getattr(arguments, option) for option in OPTIONS}
    return Origin(
        KIND, {"scenario": source.description, **options}, arguments.seeds or (), rack_fabric=simulator.version()
    )


def requested_cells(source: ScenarioSource, arguments: argparse.Namespace, simulator: Simulator) -> list[FabricCell]:
    """Return a cell for every combination of the swept keys, each checked.

    Raises InputError, RunFailedError, OSError.
    """
    fixed = dict(map(setting, arguments.set))
    named = dict(map(sweep, arguments.sweep))
    origins = {**{key: f"--set {key}" for key in fixed}, **{key: f"--sweep {key}" for key in named}}
    if arguments.seeds is not None:
        named["seed"], origins["seed"] = list(arguments.seeds), "--seeds"
    swept = {key: values for key, values in _sweep_of(source, fixed, origins).items() if key not in origins}
    origins |= {key: f"{source.name}:{line_of(source.text, ('sweep', key))}" for key in swept}
    swept |= named
    version = simulator.version()
    return [
        _cell(source, {**fixed, **values}, origins, simulator, version, _labels(values, swept))
        for values in combinations(swept)
    ]


def destinations(cell: FabricCell, results: Row) -> Iterator[Row]:
    """Yield a row for each destination of each flow, with the swept keys before it."""
    for flow in results.get("flows", []):
        for destination in flow["destinations"]:
            values = {key: value for key, value in destination.items() if not isinstance(value, dict | list)}
            first = {column: values[column] for column in COLUMNS if column in values}
            yield {**cell.labels, "flow": flow["name"], **first, **values}


def _sweep_of(
    source: ScenarioSource, fixed: Mapping[str, object], origins: Mapping[str, str]
) -> Mapping[str, list[object]]:
    try:
        return load(source, fixed).sweep
    except SchemaError as fault:
        raise refusal(source, origins, fault) from None


def _cell(  # noqa: PLR0913, PLR0917
    source: ScenarioSource,
    settings: Mapping[str, object],
    origins: Mapping[str, str],
    simulator: Simulator,
    version: str,
    labels: Row,
) -> FabricCell:
    try:
        scenario = load(source, settings)
        taken = simulator.check(scenario.model)
    except SchemaError as fault:
        raise refusal(source, origins, fault) from None
    except ScenarioRefusedError as wrong:
        place = f"{dotted(wrong.location)}: " if wrong.location else ""
        raise refusal(source, origins, SchemaError(f"{place}{wrong}", wrong.location)) from None
    return FabricCell(scenario.title, scenario.model, taken.events, taken.memory_bytes, version, labels)


def _labels(values: Row, swept: Mapping[str, list[object]]) -> Row:
    """Return the values that distinguish cells."""
    return {key: value for key, value in values.items() if key != "seed" or len(swept["seed"]) > 1}


def _check_trace(arguments: argparse.Namespace, cells: list[FabricCell]) -> None:
    if arguments.trace is None:
        return
    if len(cells) > 1 or arguments.keep is not None or arguments.scheduler is not None:
        raise InputError("--trace records the events of one local cell: leave out --keep, --scheduler and sweeps")
    if not arguments.trace.parent.is_dir():
        raise InputError(f"--trace: there is no folder {arguments.trace.parent}: create it, or name another file")
    if arguments.trace.exists() and not arguments.trace.is_file():
        raise InputError(f"--trace: {arguments.trace} is not a file: name another one")


def answer(cell: FabricCell, results: Row) -> Row:
    """Return a cell of the JSON result."""
    return {"settings": cell.labels, "scenario": cell.model, "results": results}


def _shown(found: Sequence[tuple[FabricCell, Row]], arguments: argparse.Namespace, provenance: Provenance) -> str:
    if arguments.json:
        return as_json([answer(*one) for one in found], provenance)
    rows = [row for cell, values in found for row in destinations(cell, values)]
    return as_csv(rows, provenance) if arguments.csv else as_table(rows)


def name_of(cell: FabricCell) -> str:
    """Return a name that is unique among the cells of a scenario."""
    return ", ".join(f"{key} = {value}" for key, value in cell.labels.items()) or cell.title

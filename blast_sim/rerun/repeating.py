"""Computes the parts of a result again, each kind of result in its way."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blast_base.json_types import JsonValue
from blast_controller.configuration.schema import SchemaError, checked
from blast_sim.base.parquet import as_parquet_rows
from blast_sim.base.report import Row, as_csv, from_csv
from blast_sim.base.scenario_file import ScenarioSource
from blast_sim.base.sweep import Failure, Kept, Workers, run_cells
from blast_sim.base.wrong_input import InputError
from blast_sim.controller.compute import MEASURED as COMPUTE_MEASURED
from blast_sim.experiments import cell as flow_cell
from blast_sim.experiments import command as flow
from blast_sim.experiments.run import run_cell
from blast_sim.fabric import cell as fabric_cell
from blast_sim.fabric import command as fabric
from blast_sim.fabric.running import simulated
from blast_sim.fabric.simulator import ScenarioRefusedError, Simulator, program
from blast_sim.plugins.loading import PluginChangedError, plugins_of
from blast_sim.replay import command as replay
from blast_sim.replay.options import replay_arguments
from blast_sim.replay.reading import describe_trace
from blast_sim.replay.tables import tables
from blast_sim.rerun.comparing import MEASURED, ComparedPart
from blast_sim.rerun.result_file import Form, ResultFile, TraceChangedError, TraceMissingError
from blast_sim.scenarios.schema import Scenario


@dataclass(frozen=True, slots=True)
class RepeatedParts:
    """The parts that a file holds, and the same computed now."""

    recorded: list[JsonValue]
    parts: list[ComparedPart]


def again(file: ResultFile, processes: int) -> RepeatedParts:
    """Compute a result again, in parallel processes.

    Raises InputError, such as UnusableResultError and PluginError, and PluginFailedError, NoSimulatorError,
    RunFailedError, StalledError, WorkerDiedError, OSError.
    """
    repeat = KINDS.get(file.kind)
    if repeat is None:
        raise file.unusable(f"it is a result of {file.kind}, and those of {', '.join(KINDS)} can be")
    _check_plugins(file)
    return repeat(file, processes)


def _check_plugins(file: ResultFile) -> None:
    for recorded in file.plugins():
        if recorded not in plugins_of(**{recorded.kind: recorded.name}):
            raise PluginChangedError(
                f"the {recorded.kind} {recorded.name} is not the one that {file.path} was made with: its source differs"
            )


# ------------------------------------------------------------------------------------------------- flow


def _flow(file: ResultFile, processes: int) -> RepeatedParts:
    arguments = argparse.Namespace(**{name: file.option(name, kind) for name, kind in flow.OPTIONS.items()})
    source = ScenarioSource(str(file.part("request", "scenario", "name")), file.scenario_text())
    cells = _built(file, lambda: flow.requested_cells(source, arguments))
    parts = _parts_of(cells, processes, flow.printed)
    return RepeatedParts(file.rows(_rows_key(file, "cells")), _in_form(file.form, parts))


def _flow_cell(file: ResultFile, processes: int) -> RepeatedParts:
    names = {"method": str, "network": str, "background": str, "policy": str, "seed": int}
    options = {name: file.option(name, kind) for name, kind in names.items()}
    effort = flow_cell.Effort(file.option("compute", str), file.option("stepped", bool))
    scenario = _model(file)
    cell = _built(file, lambda: flow_cell.FlowCell(_checked(scenario), effort=effort, **options))
    return RepeatedParts(file.rows("rows"), _parts_of([cell], processes, lambda _, row: row))


def _parts_of(
    cells: Sequence[flow_cell.FlowCell], processes: int, shown: Callable[[flow_cell.FlowCell, Row], Row]
) -> list[ComparedPart]:
    repeatable = [cell for cell in cells if not _is_measured(cell)]
    found = dict(zip(map(id, repeatable), run_cells(run_cell, repeatable, Workers(processes), Kept(None)), strict=True))
    parts: list[ComparedPart] = []
    for cell in cells:
        name, result = flow.name_of(cell), found.get(id(cell))
        if result is None:
            jobs = [f"{name}, {job.name}" for job in cell.scenario.jobs]
            parts += [ComparedPart(one, reason=MEASURED) for one in jobs or [name]]
        elif isinstance(result, Failure):
            _report(name, result)
        else:
            parts += [
                ComparedPart(f"{name}, {row['job']}" if "job" in row else name, shown(cell, row)) for row in result
            ]
    return parts


def _is_measured(cell: flow_cell.FlowCell) -> bool:
    """Return True if the result contains measured times: only decisions of the controller are timed."""
    return cell.effort.compute == COMPUTE_MEASURED and cell.method == "blast"


def _checked(model: Row) -> Scenario:
    try:
        return checked(Scenario, model)
    except SchemaError as fault:
        raise InputError(str(fault)) from None


# ----------------------------------------------------------------------------------------------- fabric


def _fabric(file: ResultFile, processes: int) -> RepeatedParts:
    arguments = argparse.Namespace(**{name: file.option(name, kind) for name, kind in fabric.OPTIONS.items()})
    source = ScenarioSource(str(file.part("request", "scenario", "name")), file.scenario_text())
    simulator = Simulator(program())
    cells = _built(file, lambda: fabric.requested_cells(source, arguments, simulator))
    results = simulated(simulator, cells, Kept(None), Workers(processes))
    for cell, result in zip(cells, results, strict=True):
        if isinstance(result, Failure):
            _report(fabric.name_of(cell), result)
    found = [(cell, result[0]) for cell, result in zip(cells, results, strict=True) if not isinstance(result, Failure)]
    if file.form == "JSON":
        return RepeatedParts(
            file.rows("cells"), [ComparedPart(fabric.name_of(cell), fabric.answer(cell, row)) for cell, row in found]
        )
    parts = [
        ComparedPart(f"{fabric.name_of(cell)}: {row['flow']} to {row.get('leaf')}, {row.get('port')}", row)
        for cell, record in found
        for row in fabric.destinations(cell, record)
    ]
    return RepeatedParts(file.rows("rows"), _in_form(file.form, parts))


def _fabric_cell(file: ResultFile, processes: int) -> RepeatedParts:
    model, simulator = _model(file), Simulator(program())
    taken = _built(file, lambda: simulator.check(model))
    cell = fabric_cell.FabricCell("", model, taken.events, taken.memory_bytes, simulator.version())
    (result,) = simulated(simulator, [cell], Kept(None), Workers(processes))
    if isinstance(result, Failure):
        _report(file.kind, result)
    rows = [] if isinstance(result, Failure) else result
    return RepeatedParts(
        file.rows("rows"), [ComparedPart(str(file.content.get("title", "the cell")), row) for row in rows]
    )


# ----------------------------------------------------------------------------------------------- replay


def _replay(file: ResultFile, processes: int) -> RepeatedParts:
    options = {name: file.option(name, kind) for name, kind in replay.OPTIONS.items()}
    trace = str(file.part("request", "trace", "name"))
    _check_trace(file, trace, str(options["format"]))
    arguments = _built(file, lambda: replay_arguments(trace, options))
    setting, workload, runs = _built(file, lambda: replay.requested_runs(arguments))
    measured = MEASURED if options["compute"] == COMPUTE_MEASURED else ""
    rows = [{}] * len(runs) if measured else [one.row for one in replay.played(runs, processes)]
    if file.form != "JSON":
        return _replay_table(file, [run.policy for run in runs], rows, measured)
    record = replay.answer(arguments, setting, workload, [])
    parts = [ComparedPart("the setting", record)]
    parts += [ComparedPart(run.policy, row, measured) for run, row in zip(runs, rows, strict=True)]
    return RepeatedParts([{**file.content, "policies": []}, *file.rows("policies")], _in_form(file.form, parts))


def _replay_table(file: ResultFile, policies: Sequence[str], rows: Sequence[Row], measured: str) -> RepeatedParts:
    recorded = file.rows("rows")
    if measured:
        return RepeatedParts(recorded, [ComparedPart(str(row.get("policy")), reason=measured) for row in recorded])
    for table in tables(rows).values():
        if recorded and set(table[0]) == set(recorded[0]):
            parts = [ComparedPart(f"{row['policy']}, row {number}", row) for number, row in enumerate(table, start=1)]
            return RepeatedParts(recorded, _in_form(file.form, parts))
    raise file.unusable(f"its columns are those of no table of a replay of {', '.join(policies)}")


def _check_trace(file: ResultFile, name: str, form: str) -> None:
    recorded = file.part("request", "trace", "sha256")
    try:
        here = describe_trace(name, form)["sha256"]
    except OSError as error:
        raise TraceMissingError(
            f"{file.path} was made from the trace {name}, which cannot be read ({error.strerror}): put it there"
        ) from None
    if here != recorded:
        raise TraceChangedError(
            f"the trace {name} is not the one that {file.path} was made from: its SHA-256 is {here}, and that of the "
            f"other one {recorded}"
        )


# ------------------------------------------------------------------------------------------------- forms

KINDS: dict[str, Callable[[ResultFile, int], RepeatedParts]] = {
    flow.KIND: _flow,
    flow_cell.KIND: _flow_cell,
    fabric.KIND: _fabric,
    fabric_cell.KIND: _fabric_cell,
    replay.KIND: _replay,
}


def _report(name: str, failure: Failure) -> None:
    """Print why a cell has no result now; that the file has one is a difference."""
    sys.stderr.write(f"blast: {name} has no result: {failure.reason}\n")


def _rows_key(file: ResultFile, key: str) -> str:
    return key if file.form == "JSON" else "rows"


def _model(file: ResultFile) -> Row:
    model = file.part("request", "scenario", "model")
    if not isinstance(model, dict):
        raise file.unusable("its scenario is no table")
    file.check_digest(json.dumps(model, sort_keys=True))
    return model


def _built(file: ResultFile, build: Callable[[], JsonValue]) -> JsonValue:
    """Build the request's cells. Raises UnusableResultError if this version rejects the request."""
    try:
        return build()
    except (ValueError, TypeError, ScenarioRefusedError) as error:
        raise file.unusable(f"this version does not take its request: {' '.join(str(error).split())}") from error


def _in_form(form: Form, parts: Sequence[ComparedPart]) -> list[ComparedPart]:
    """Return the parts as they come out of a file of this form."""
    rows = [part.now for part in parts if not part.reason]
    if form == "JSON":
        read: list[JsonValue] = json.loads(json.dumps(rows))
    else:
        read = from_csv(as_csv(rows))[1] if form == "CSV" else as_parquet_rows(rows)
    left = iter(read)
    return [part if part.reason else ComparedPart(part.name, next(left)) for part in parts]

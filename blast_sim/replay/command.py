"""`blast sim replay`: reads a trace, plays it under every requested policy, and prints the results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import UnionType

from tqdm import tqdm

from blast_base.command_line import DONE
from blast_sim.base.parquet import write_parquet
from blast_sim.base.provenance import Origin, Provenance, Recording, with_provenance
from blast_sim.base.report import Row, as_table
from blast_sim.base.wrong_input import InputError
from blast_sim.controller.compute import compute_of
from blast_sim.flow.optics import SWITCHING_SECONDS
from blast_sim.plugins.loading import plugins_of
from blast_sim.replay.reading import describe_trace, policies_from, workload_from
from blast_sim.replay.result import result
from blast_sim.replay.runs import MeasuredRun, ReplayRun, play_all
from blast_sim.replay.seen import seen
from blast_sim.replay.setting import Setting
from blast_sim.replay.tables import CDF, COMPLETIONS, POLICIES, tables
from blast_sim.scenarios.schema import LightSection
from blast_sim.traces.workload import Workload

KIND = "replay"
Number = int | float
OPTIONS: dict[str, type | UnionType] = {
    **dict.fromkeys(("policy", "compute", "format", "rule", "volume", "placement", "fallback", "switch"), str),
    **dict.fromkeys(("shuffles", "directional", "pause", "split"), bool),
    **dict.fromkeys(("seed", "iterations", "machines_per_rack", "servers_per_rack", "fan_out", "ports"), int),
    **dict.fromkeys(("first", "racks", "splitters", "max_splitters_per_tree"), int | None),
    **dict.fromkeys(("period", "server_gbps", "uplink_gbps", "light_gbps"), Number),
    "pending_timeout": Number | None,
}
"""Options that affect results, besides the trace, with their types."""

MADE_BY = "flow simulator"
RACKS_A_SPLITTER = 3
"""Racks per splitter, if the number of splitters is not given."""

COLUMNS = ("policy", "mean_seconds", "median_seconds", "p95_seconds", "p99_seconds", "longest_seconds", "without_light")
"""Columns of a policy's row that the table shows."""


def run(arguments: argparse.Namespace) -> int:
    """Replay and print; return the exit status.

    Raises InputError, PluginFailedError, StalledError, WorkerDiedError, OSError.
    """
    recording = Recording()
    setting, workload, runs = requested_runs(arguments)
    ran = played(runs, arguments.processes)
    rows = [one.row for one in ran]
    provenance = recording.provenance(origin_of(arguments))
    if arguments.figure is not None:
        draw(arguments.figure, rows, provenance)
    if arguments.parquet is not None:
        write_parquet(arguments.parquet, tables(rows)[COMPLETIONS], provenance)
    if arguments.json:
        record = with_provenance(provenance, answer(arguments, setting, workload, rows))
        sys.stdout.write(json.dumps(record, indent=1) + "\n")
    else:
        sys.stdout.write(as_table([_shown(one) for one in ran]) + seen(rows))
    return DONE


def requested_runs(arguments: argparse.Namespace) -> tuple[Setting, Workload, list[ReplayRun]]:
    """Return the setting, the workload, and a run for each policy. Raises InputError, PluginFailedError, OSError."""
    workload = workload_from(arguments)
    if not arguments.shuffles:
        workload = replace(workload, shuffles=())
    setting = _setting(arguments, workload)
    return (
        setting,
        workload,
        [ReplayRun(workload, setting, name) for name in policies_from(arguments.policy, plugins=True)],
    )


def played(runs: Sequence[ReplayRun], processes: int) -> list[MeasuredRun]:
    """Play the runs with a progress bar. Raises StalledError, PluginError, PluginFailedError, WorkerDiedError."""
    ends = sum(len(run.workload.multicasts) + len(run.workload.shuffles) for run in runs)
    with tqdm(total=ends, desc="ended", disable=not sys.stderr.isatty(), file=sys.stderr, leave=False) as bar:
        return play_all(runs, processes, bar.update)


def answer(arguments: argparse.Namespace, setting: Setting, workload: Workload, rows: Sequence[Row]) -> Row:
    """Return the JSON result."""
    options = {**setting.as_dict, "shuffles": arguments.shuffles}
    return result(MADE_BY, arguments.trace, workload.rules, options, rows)


def origin_of(arguments: argparse.Namespace) -> Origin:
    """Return the request that reproduces these results. Raises OSError."""
    options = {option: getattr(arguments, option) for option in OPTIONS}
    request = {"trace": describe_trace(arguments.trace, arguments.format), **options}
    plugins = [one for policy in policies_from(arguments.policy, plugins=True) for one in plugins_of(policy)]
    return Origin(KIND, request, (arguments.seed,), plugins)


def _setting(arguments: argparse.Namespace, workload: Workload) -> Setting:
    racks = workload.racks if arguments.racks is None else arguments.racks
    if racks < workload.racks:
        raise InputError(f"the trace has {workload.racks} racks, but --racks is {racks}: use at least {workload.racks}")
    if arguments.switch not in SWITCHING_SECONDS:
        raise InputError(f"--switch {arguments.switch!r} is unknown: use one of {', '.join(SWITCHING_SECONDS)}")
    splitters = racks // RACKS_A_SPLITTER if arguments.splitters is None else arguments.splitters
    light = LightSection(
        rate_gbps=arguments.light_gbps,
        ports_per_rack=arguments.ports,
        directional=arguments.directional,
        splitters=splitters,
        fan_out=arguments.fan_out,
        max_splitters_per_tree=arguments.max_splitters_per_tree,
        switch=arguments.switch,
        may_pause=arguments.pause,
        may_split=arguments.split,
        pending_timeout_s=arguments.pending_timeout,
        fallback=arguments.fallback,
    )
    compute_of(arguments.compute, 1, 1)
    return Setting(
        racks, arguments.servers_per_rack, arguments.server_gbps, arguments.uplink_gbps, light, arguments.compute
    )


def _shown(ran: MeasuredRun) -> Row:
    shuffles = ran.row["mean_shuffle_seconds"]
    extra = {} if shuffles is None else {"mean_shuffle_seconds": shuffles}
    return {**{column: ran.row[column] for column in COLUMNS}, **extra, "cpu_seconds": ran.cpu_seconds}


def draw(folder: Path, rows: list[Row], provenance: Provenance) -> None:
    """Draw mean and tail by policy, and the distribution of completion times, each with its CSV. Raises OSError."""
    # Drawing imports a library that takes a second to load.
    from blast_sim.papers.saving import Gallery, save
    from blast_sim.replay.picture import by_policy, distributions

    folder.mkdir(parents=True, exist_ok=True)
    found = tables(rows)
    for name, drawing in ((POLICIES, by_policy), (CDF, distributions)):
        for path in save(Gallery(folder, provenance=provenance), name, found[name], drawing):
            sys.stderr.write(f"{path}\n")

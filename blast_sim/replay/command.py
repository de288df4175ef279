"""What `blast sim replay` does: reads a trace, plays it under every policy asked for, prints what came of it."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from blast_sim.base.report import Row, as_table
from blast_sim.base.wrong_input import WrongInput
from blast_sim.controller.compute import compute_of
from blast_sim.flow.optics import SWITCHING_SECONDS
from blast_sim.replay.reading import policies_from, workload_from
from blast_sim.replay.result import result
from blast_sim.replay.runs import Ran, Run, play_all
from blast_sim.replay.seen import seen
from blast_sim.replay.setting import Setting
from blast_sim.scenarios.schema import LightSection
from blast_sim.traces.workload import Workload

DONE = 0
MADE_BY = "flow simulator"
RACKS_A_SPLITTER = 3
"""Racks for each splitter, unless the number of splitters is given."""

COLUMNS = ("policy", "mean_seconds", "median_seconds", "p95_seconds", "p99_seconds", "longest_seconds", "without_light")
"""Those of a policy's row that are for a table."""


def run(arguments: argparse.Namespace) -> int:
    """Replay and print; the exit status. Raises WrongInput, OSError."""
    workload = workload_from(arguments)
    if not arguments.shuffles:
        workload = replace(workload, shuffles=())
    setting = _setting(arguments, workload)
    runs = [Run(workload, setting, policy) for policy in policies_from(arguments.policy)]
    ends = len(runs) * (len(workload.multicasts) + len(workload.shuffles))
    bar = tqdm(total=ends, desc="ended", disable=not sys.stderr.isatty(), file=sys.stderr, leave=False)
    with bar:
        ran = play_all(runs, arguments.processes, bar.update)
    rows = [one.row for one in ran]
    if arguments.figure is not None:
        draw(arguments.figure, rows)
    if arguments.json:
        told = {**setting.told, "shuffles": arguments.shuffles}
        sys.stdout.write(json.dumps(result(MADE_BY, arguments.trace, workload.rules, told, rows), indent=1) + "\n")
    else:
        sys.stdout.write(as_table([_shown(one) for one in ran]) + seen(rows))
    return DONE


def _setting(arguments: argparse.Namespace, workload: Workload) -> Setting:
    racks = workload.racks if arguments.racks is None else arguments.racks
    if racks < workload.racks:
        raise WrongInput(f"the trace has {workload.racks} racks, but --racks says {racks}: take at least as many")
    if arguments.switch not in SWITCHING_SECONDS:
        raise WrongInput(f"--switch {arguments.switch!r} is not known: there are {', '.join(SWITCHING_SECONDS)}")
    splitters = racks // RACKS_A_SPLITTER if arguments.splitters is None else arguments.splitters
    light = LightSection(
        rate_gbps=arguments.light_gbps,
        ports_per_rack=arguments.ports,
        directional=arguments.directional,
        splitters=splitters,
        ways=arguments.ways,
        max_splitters_per_tree=arguments.max_splitters_per_tree,
        switch=arguments.switch,
        may_pause=arguments.pause,
        may_split=arguments.split,
        patience_s=arguments.patience,
        fallback=arguments.fallback,
    )
    compute_of(arguments.compute, 1, 1)
    return Setting(
        racks, arguments.servers_per_rack, arguments.server_gbps, arguments.uplink_gbps, light, arguments.compute
    )


def _shown(ran: Ran) -> Row:
    shuffles = ran.row["mean_shuffle_seconds"]
    extra = {} if shuffles is None else {"mean_shuffle_seconds": shuffles}
    return {**{column: ran.row[column] for column in COLUMNS}, **extra, "cpu_seconds": ran.cpu_seconds}


def draw(folder: Path, rows: list[Row]) -> None:
    """Mean and tail by policy, as a picture and its CSV in `folder`. Raises OSError."""
    # Pictures need a library that takes a second to load.
    from blast_sim.figures.saving import save
    from blast_sim.replay.picture import by_policy

    folder.mkdir(parents=True, exist_ok=True)
    plain = [{key: value for key, value in row.items() if key != "completions"} for row in rows]
    for path in save(folder, "replay", "svg", plain, by_policy):
        sys.stderr.write(f"{path}\n")

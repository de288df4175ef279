"""The command `blast sim`. `blast` imports this module at every start, so it imports no numeric libraries."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from blast_base.command_line import FAILED, WRONG_INPUT
from blast_sim.base.options import add_parquet, new_parser, reporting_errors, whole_number
from blast_sim.base.wrong_input import PluginFailedError
from blast_sim.replay.options import register_replay

PROCESSES = "number of worker processes (default: one per core)"
_FLOW = """\
Simulate multicasts or iterative jobs on a rack network, or multicasts between sites. Flows share links max-min fairly,
with exact event times.

SCENARIO is a TOML file or a built-in scenario: fig4 (Figure 4 of the Blast paper), contended (Blast's policies with
scarce splitters), iterative-jobs, hundreds-of-jobs (the number that the paper states for 50 splitters), methods (all
methods in comparison), sites (unequal sites over a wide area). --show prints a scenario as a starting point. The cells,
all combinations of method, network and background traffic, run on all cores or on a Dask cluster.

The column `seconds` is the mean completion time including the controller's computation, as in the Blast paper.
--compute sets that computation: measured during the run, recorded earlier, or a
number of milliseconds. All but `measured` are bit-for-bit repeatable. Another column has the time without computation.
"""
_FLOW_EXAMPLE = """\
examples:
  blast sim flow fig4
  blast sim flow fig4 --json --compute recorded
  blast sim flow fig4 --seeds 0-99 --parquet fig4.parquet
  blast sim flow fig4 --methods blast --sweep light.switch=glimmerglass,calient --sweep multicasts.megabytes=30,300
  blast sim flow hundreds-of-jobs --sweep jobs.0.count=320,360,380,400
  blast sim flow contended --policies paper,srpt-lease --seeds 0-9 --keep results --csv
  blast sim flow fig4 --method blast,mine:relay; blast sim flow contended --policy paper,mine:NarrowestFirst
  blast sim flow fig4 --show > mine.toml; blast sim flow mine.toml --set light.splitters=20
  blast sim flow fig4 --seeds 0-99 --scheduler tcp://scheduler:8786 --keep results

Exit status: 0 done, 1 failed, 2 wrong input, 3 some cells have no result.
"""
_FABRIC = """\
Simulate multicast inside the fabric of a rack, packet by packet: leaves with packet caches, synchronized virtual output
queues, drop from head, congestion notification, surrogates. The simulator is compiled; `make setup` builds it.

SCENARIO is a TOML file or the built-in scenario one-leaf (a server multicasts to four neighbors and four other leaves).
--show prints it as a starting point. Each combination of swept values, by --sweep or in the file's [sweep] table
("flows.0.rate_gbps" = [25, 99]), is a cell. Cells run on all cores or on a Dask cluster.

The output has a row for each destination of each flow; --json adds all results and the scenario of each cell. The same
scenario and seed give the same bytes on every machine. The simulator refuses a run that needs more memory than is free.
"""
_FABRIC_EXAMPLE = """\
examples:
  blast sim fabric one-leaf
  blast sim fabric one-leaf --sweep flows.0.frame_bytes=512,1522,9022 --sweep flows.0.rate_gbps=50,99 --csv
  blast sim fabric one-leaf --seeds 1-5 --keep results --json
  blast sim fabric one-leaf --seeds 1-5 --parquet one-leaf.parquet
  blast sim fabric one-leaf --show > mine.toml; blast sim fabric mine.toml --set duration_ns=4000000
  blast sim fabric one-leaf --set duration_ns=10000 --trace events.bin; blast sim fabric-trace events.bin

Exit status: 0 done, 1 failed, 2 wrong input, 3 some cells have no result.
"""
_FABRIC_TRACE = """\
Count the events of a trace written by `blast sim fabric --trace`, by kind, with the first and last time of each kind.
blast_sim/fabric/trace.py documents the file format and has a reader for Python programs.
"""
_FABRIC_TRACE_EXAMPLE = "example:\n  blast sim fabric-trace events.bin --json"


_RERUN = """\
Recompute a simulation result from its provenance alone, and compare it bit for bit.

FILE is an output of `blast sim flow`, `replay` or `fabric` with --json, --csv or --parquet, or a result stored by
--keep. The file contains the scenario. A trace is read from its original path and must have the same SHA-256. Plug-in
policies and methods are imported by name and must have the same source. Caution: recomputing a file from another person
runs the code that the file names.

For each result the command prints `identical`, or the first field that differs with both values. Results of --compute
measured are not repeatable and do not count as differences. If the code differs, the output names the commit that made
the file.
"""
_RERUN_EXAMPLE = """\
examples:
  blast sim flow fig4 --compute recorded --json > fig4.json; blast sim rerun fig4.json
  blast sim rerun results/0f3a9c….json --json

Exit status: 0 all repeatable results are identical, 1 a result differs, 2 the file cannot be recomputed.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `sim` to `blast`."""
    sim = subparsers.add_parser("sim", help="simulate multicasts at full size")
    kinds = sim.add_subparsers(metavar="SIMULATOR", required=True)
    _register_flow(kinds)
    _register_fabric(kinds)
    register_replay(kinds)
    _register_rerun(kinds)


def _register_flow(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    flow = new_parser(kinds, "flow", "simulate a scenario at flow level", _FLOW, _FLOW_EXAMPLE)
    _add_scenario(flow)
    flow.add_argument("--seeds", metavar="N|N-N|N,N", type=seeds, default=(0,), help="random seeds (default: 0)")
    for option, part in (("networks", "network"), ("backgrounds", "load")):
        flow.add_argument(f"--{option}", metavar="NAME,NAME", type=_names, help=f"filter: cells with this {part}")
    for option, part in (("methods", "method"), ("policies", "policy")):
        flow.add_argument(
            f"--{option}",
            f"--{part}",
            metavar="NAME,NAME",
            type=_names,
            help=f"filter: cells with this {part}; a plug-in (module:Class) is added to every run",
        )
    flow.add_argument(
        "--compute", metavar="measured|recorded|MS", default="measured", help="time of a decision (default: measured)"
    )
    flow.add_argument("--stepped", action="store_true", help="faster approximate solution, error at most 0.5 percent")
    _add_running(flow)
    flow.set_defaults(run=_flow)


def _register_fabric(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    fabric = new_parser(kinds, "fabric", "simulate a rack's fabric at packet level", _FABRIC, _FABRIC_EXAMPLE)
    _add_scenario(fabric)
    fabric.add_argument("--seeds", metavar="N|N-N|N,N", type=seeds, help="random seeds (default: seed of the scenario)")
    fabric.add_argument(
        "--trace", metavar="FILE", type=Path, help="binary output file for every event of a single cell"
    )
    _add_running(fabric)
    fabric.set_defaults(run=_fabric)
    trace = new_parser(
        kinds, "fabric-trace", "count the events of a fabric trace", _FABRIC_TRACE, _FABRIC_TRACE_EXAMPLE
    )
    trace.add_argument("file", metavar="FILE", type=Path, help="trace file")
    trace.add_argument("--json", action="store_true", help="print JSON")
    trace.set_defaults(run=_fabric_trace)


def _register_rerun(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rerun = new_parser(kinds, "rerun", "recompute a result and compare it", _RERUN, _RERUN_EXAMPLE)
    rerun.add_argument("file", metavar="FILE", type=Path, help="result file")
    rerun.add_argument(
        "--processes", metavar="N", type=whole_number(1, 1024), default=os.cpu_count() or 1, help=PROCESSES
    )
    rerun.add_argument("--json", action="store_true", help="print JSON")
    rerun.set_defaults(run=_rerun)


def _add_scenario(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="SCENARIO", help="built-in scenario, or file")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="value for a key of the scenario (repeatable)"
    )
    parser.add_argument(
        "--sweep", metavar="KEY=V,V", action="append", default=[], help="values of a key, one cell each (repeatable)"
    )


def _add_running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, help="folder of stored results, from which an interrupted sweep continues"
    )
    parser.add_argument(
        "--processes", metavar="N", type=whole_number(1, 1024), default=os.cpu_count() or 1, help=PROCESSES
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler (default: local processes)")
    parser.add_argument("--show", action="store_true", help="print the scenario and exit")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print JSON")
    output.add_argument("--csv", action="store_true", help="print CSV")
    add_parquet(parser, "the rows of --csv")


def seeds(text: str) -> tuple[int, ...]:
    """Parse a list of seeds: numbers and ranges, separated by commas."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        numbers = (first, last if dash else first)
        if not all(number.isascii() and number.isdecimal() and len(number) <= 9 for number in numbers):
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of seeds: write 3, 0-9 or 1,4,7")
        found += range(int(numbers[0]), int(numbers[1]) + 1)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} has no seeds: write 3, 0-9 or 1,4,7")
    return tuple(dict.fromkeys(found))


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, text.split(","))))


@reporting_errors
def _flow(arguments: argparse.Namespace) -> int:
    from blast_sim.base.sweep import NoSchedulerError
    from blast_sim.base.worker_processes import WorkerDiedError
    from blast_sim.experiments.command import run

    try:
        return run(arguments)
    except (NoSchedulerError, WorkerDiedError) as error:
        sys.stderr.write(f"blast: {error}\n")
        return FAILED


@reporting_errors
def _fabric(arguments: argparse.Namespace) -> int:
    from blast_sim.base.sweep import NoSchedulerError
    from blast_sim.fabric.command import run
    from blast_sim.fabric.simulator import NoSimulatorError, RunFailedError

    try:
        return run(arguments)
    except (NoSchedulerError, NoSimulatorError, RunFailedError) as error:
        sys.stderr.write(f"blast: {error}\n")
        return FAILED


@reporting_errors
def _rerun(arguments: argparse.Namespace) -> int:
    from blast_sim.rerun.result_file import prefer_solver, read_result

    file = read_result(arguments.file)
    # Imported first: the solver must be chosen before any module is imported that uses it.
    prefer_solver(file)
    from blast_sim.base.worker_processes import WorkerDiedError
    from blast_sim.fabric.simulator import NoSimulatorError, RunFailedError
    from blast_sim.rerun.command import run

    try:
        return run(arguments, file)
    except (NoSimulatorError, PluginFailedError, RunFailedError, WorkerDiedError) as error:
        sys.stderr.write(f"blast: {error}\n")
        return WRONG_INPUT


@reporting_errors
def _fabric_trace(arguments: argparse.Namespace) -> int:
    from blast_sim.fabric.trace_command import run

    return run(arguments)

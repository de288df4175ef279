"""`blast sim`: the simulators. Loaded at every start of `blast`, so it loads nothing that calculates."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from blast_sim.base.options import FAILED, WRONG_INPUT, add_parquet, new_parser, telling, whole_number
from blast_sim.base.wrong_input import PluginFailed
from blast_sim.replay.options import register_replay

_FLOW = """\
Simulate multicasts, or iterative jobs, on a rack network, or between sites; flows share links max-min
fairly, with exact events.

A scenario is a TOML file, or one that comes with the program: fig4 (Figure 4 of the Blast paper), contended (Blast's
policies where light is scarce), iterative-jobs, hundreds-of-jobs (as many as the paper says that 50 splitters serve),
methods (all of them side by side), sites (uneven ones over a wide area). `--show` prints it as a start for one's own.
Its cells, every method on every network beside every background, are run on all cores, or on a Dask cluster.

seconds is the mean completion time with the controller's computation, as the Blast paper adds it: as measured now, as
recorded once, or so many milliseconds. All but the first repeat bit for bit. The time without it stands beside it.
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
Simulate multicast inside the fabric of a rack, packet by packet: leaves with packet caches, virtual output queues kept
in step, drop from head, congestion notification, surrogates. The simulator is compiled: make setup builds it.

A scenario is a TOML file, or one that comes with the program: one-leaf (a server multicasts to four neighbors and four
other leaves). `--show` prints it as a start for one's own. What is swept, by --sweep or in the file's [sweep] table
("flows.0.rate_gbps" = [25, 99]), makes cells, which run on all cores or on a Dask cluster.

Printed is a row for each destination of each flow; --json has all results, with the scenario of each cell. The same
scenario and seed give the same bytes on every machine. A run for which there is not enough memory is not begun.
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
Count the events of a trace that `blast sim fabric --trace` has written, by kind, with the times of the first and last
of each. The form of the file, and a reader for other programs in Python, are in blast_sim/fabric/trace.py.
"""
_FABRIC_TRACE_EXAMPLE = "example:\n  blast sim fabric-trace events.bin --json"


_RERUN = """\
Compute a simulated result again from its provenance alone, and compare the two to the last bit.

FILE is what `blast sim flow`, `replay` or `fabric` has written with --json, --csv or --parquet, or a result that --keep
has kept. The scenario is in the file; a trace is read again where it was, and must have the same SHA-256; policies and
methods from outside the package are imported by their names, and must have the same source: to compute a file of
another person again runs the code that it names.

For each result `identical` is printed, or the first field that differs with both values. What was computed with
--compute measured is not repeatable, and no difference. Where the code differs, the commit that made the file is named.
"""
_RERUN_EXAMPLE = """\
examples:
  blast sim flow fig4 --compute recorded --json > fig4.json; blast sim rerun fig4.json
  blast sim rerun results/0f3a9c….json --json

Exit status: 0 all that can be repeated is identical, 1 something differs, 2 the file cannot be computed again.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `sim` to `blast`."""
    sim = subparsers.add_parser("sim", help="simulate multicasts at full size")
    kinds = sim.add_subparsers(metavar="WHAT", required=True)
    _register_flow(kinds)
    _register_fabric(kinds)
    register_replay(kinds)
    _register_rerun(kinds)


def _register_flow(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    flow = new_parser(kinds, "flow", "flow-level simulation of a scenario", _FLOW, _FLOW_EXAMPLE)
    _add_scenario(flow)
    flow.add_argument("--seeds", metavar="N|N-N|N,N", type=seeds, default=(0,), help="(default: 0)")
    for option, what in (("networks", "network"), ("backgrounds", "load")):
        flow.add_argument(f"--{option}", metavar="NAME,NAME", type=_names, help=f"only cells with such a {what}")
    for option, what in (("methods", "method"), ("policies", "policy")):
        flow.add_argument(
            f"--{option}",
            f"--{what}",
            metavar="NAME,NAME",
            type=_names,
            help=f"only cells with such a {what}; module:Class (from outside the package) is added to every run",
        )
    flow.add_argument(
        "--compute", metavar="measured|recorded|MS", default="measured", help="of a decision (default: measured)"
    )
    flow.add_argument("--stepped", action="store_true", help="solve less often: faster, off by 0.5 percent at most")
    _add_running(flow)
    flow.set_defaults(run=_flow)


def _register_fabric(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    fabric = new_parser(kinds, "fabric", "packet-level simulation of a rack's fabric", _FABRIC, _FABRIC_EXAMPLE)
    _add_scenario(fabric)
    fabric.add_argument("--seeds", metavar="N|N-N|N,N", type=seeds, help="(default: the scenario's)")
    fabric.add_argument("--trace", metavar="FILE", type=Path, help="write every event of the one cell there, in binary")
    _add_running(fabric)
    fabric.set_defaults(run=_fabric)
    trace = new_parser(kinds, "fabric-trace", "what is in a trace of that", _FABRIC_TRACE, _FABRIC_TRACE_EXAMPLE)
    trace.add_argument("file", metavar="FILE", type=Path, help="the trace")
    trace.add_argument("--json", action="store_true", help="print JSON")
    trace.set_defaults(run=_fabric_trace)


def _register_rerun(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rerun = new_parser(kinds, "rerun", "a result once more, and whether it is the same", _RERUN, _RERUN_EXAMPLE)
    rerun.add_argument("file", metavar="FILE", type=Path, help="the result")
    rerun.add_argument(
        "--processes", metavar="N", type=whole_number(1, 1024), default=os.cpu_count() or 1, help="(default: all cores)"
    )
    rerun.add_argument("--json", action="store_true", help="print JSON")
    rerun.set_defaults(run=_rerun)


def _add_scenario(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="SCENARIO", help="a scenario's name, or a file")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="set a key of the scenario")
    parser.add_argument(
        "--sweep", metavar="KEY=V,V", action="append", default=[], help="run with each of these values (and each seed)"
    )


def _add_running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep results there; a sweep that was ended goes on")
    parser.add_argument(
        "--processes", metavar="N", type=whole_number(1, 1024), default=os.cpu_count() or 1, help="(default: all cores)"
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on the Dask cluster of this scheduler")
    parser.add_argument("--show", action="store_true", help="print the scenario, and end")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print JSON")
    how.add_argument("--csv", action="store_true", help="print CSV")
    add_parquet(parser, "the rows of --csv")


def seeds(text: str) -> tuple[int, ...]:
    """The type of a list of seeds: numbers and spans between commas."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        numbers = (first, last if dash else first)
        if not all(number.isascii() and number.isdecimal() and len(number) <= 9 for number in numbers):
            raise argparse.ArgumentTypeError(f"{text!r} is no list of seeds: 3, or 0-9, or 1,4,7")
        found += range(int(numbers[0]), int(numbers[1]) + 1)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} has no seeds")
    return tuple(dict.fromkeys(found))


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, text.split(","))))


@telling
def _flow(arguments: argparse.Namespace) -> int:
    from blast_sim.base.sweep import NoScheduler
    from blast_sim.base.worker_processes import WorkerDied
    from blast_sim.experiments.command import run

    try:
        return run(arguments)
    except (NoScheduler, WorkerDied) as error:
        sys.stderr.write(f"blast: {error}\n")
        return FAILED


@telling
def _fabric(arguments: argparse.Namespace) -> int:
    from blast_sim.base.sweep import NoScheduler
    from blast_sim.fabric.command import run
    from blast_sim.fabric.simulator import NoSimulator, RunFailed

    try:
        return run(arguments)
    except (NoScheduler, NoSimulator, RunFailed) as error:
        sys.stderr.write(f"blast: {error}\n")
        return FAILED


@telling
def _rerun(arguments: argparse.Namespace) -> int:
    from blast_sim.rerun.result_file import prefer_solver, read_result

    file = read_result(arguments.file)
    # Before anything is loaded that calculates.
    prefer_solver(file)
    from blast_sim.base.worker_processes import WorkerDied
    from blast_sim.fabric.simulator import NoSimulator, RunFailed
    from blast_sim.rerun.command import run

    try:
        return run(arguments, file)
    except (NoSimulator, PluginFailed, RunFailed, WorkerDied) as error:
        sys.stderr.write(f"blast: {error}\n")
        return WRONG_INPUT


@telling
def _fabric_trace(arguments: argparse.Namespace) -> int:
    from blast_sim.fabric.trace_command import run

    return run(arguments)

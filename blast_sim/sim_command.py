"""`blast sim`: the simulators. Loaded at every start of `blast`, so it loads nothing that calculates."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from blast_sim.options import FAILED, new_parser, telling, whole_number
from blast_sim.replay.options import register_replay

_FLOW = """\
Simulate multicasts, or iterative jobs, on a rack network, or between sites; flows share links max-min
fairly, with exact events.

A scenario is a TOML file, or one that comes with the program: fig4 (Figure 4 of the Blast paper), contended (Blast's
policies where light is scarce), iterative-jobs, methods (all of them side by side), sites (uneven ones over a wide
area). `--show` prints it as a start for one's own. Its cells, every method on every network beside every background,
are run on all cores, or on a Dask cluster.

seconds is the mean completion time, without the computation time of the controller, which stands beside it: as measured
now, as recorded once, or so many milliseconds. All but the first repeat bit for bit.
"""
_FLOW_EXAMPLE = """\
examples:
  blast sim flow fig4
  blast sim flow fig4 --json --compute recorded
  blast sim flow fig4 --methods blast --sweep light.switch=glimmerglass,calient --sweep multicasts.megabytes=30,300
  blast sim flow contended --policies paper,srpt-lease --seeds 0-9 --keep results --csv
  blast sim flow fig4 --show > mine.toml; blast sim flow mine.toml --set light.splitters=20
  blast sim flow fig4 --seeds 0-99 --scheduler tcp://scheduler:8786 --keep results

Exit status: 0 done, 1 failed, 2 wrong input, 3 some cells have no result.
"""


def register(subparsers: Any) -> None:
    """Add `sim` to `blast`."""
    sim = subparsers.add_parser("sim", help="simulate multicasts at full size")
    kinds = sim.add_subparsers(metavar="WHAT", required=True)
    _register_flow(kinds)
    register_replay(kinds)


def _register_flow(kinds: Any) -> None:
    flow = new_parser(kinds, "flow", "flow-level simulation of a scenario", _FLOW, _FLOW_EXAMPLE)
    flow.add_argument("scenario", metavar="SCENARIO", help="a scenario's name, or a file")
    flow.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="set a key of the scenario")
    flow.add_argument(
        "--sweep", metavar="KEY=V,V", action="append", default=[], help="run with each of these values (and each seed)"
    )
    flow.add_argument("--seeds", metavar="N|N-N|N,N", type=seeds, default=(0,), help="(default: 0)")
    for option, what in (("methods", "method"), ("networks", "network"), ("backgrounds", "load"), ("policies", "rule")):
        flow.add_argument(f"--{option}", metavar="NAME,NAME", type=_names, help=f"only cells with such a {what}")
    flow.add_argument(
        "--compute", metavar="measured|recorded|MS", default="measured", help="of a decision (default: measured)"
    )
    flow.add_argument("--stepped", action="store_true", help="solve less often: faster, off by 0.5 percent at most")
    flow.add_argument("--keep", metavar="DIR", type=Path, help="keep results there; a sweep that was ended goes on")
    flow.add_argument(
        "--processes", metavar="N", type=whole_number(1, 1024), default=os.cpu_count() or 1, help="(default: all cores)"
    )
    flow.add_argument("--scheduler", metavar="ADDRESS", help="run on the Dask cluster of this scheduler")
    flow.add_argument("--show", action="store_true", help="print the scenario, and end")
    how = flow.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print JSON")
    how.add_argument("--csv", action="store_true", help="print CSV")
    flow.set_defaults(run=_flow)


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
    from blast_sim.flow.command import run
    from blast_sim.sweep import NoScheduler
    from blast_sim.worker_processes import WorkerDied

    try:
        return run(arguments)
    except (NoScheduler, WorkerDied) as error:
        sys.stderr.write(f"blast: {error}\n")
        return FAILED

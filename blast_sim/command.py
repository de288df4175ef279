"""The commands of this package: `blast plan`, `blast sim`, `blast fabric plan` and `blast figures`.

`blast` loads this file at every start, so what calculates and draws is loaded when one of them runs; a base
installation, which lacks the libraries for it, still shows the help.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from blast_sim import sim_command
from blast_sim.base.options import (
    DONE,
    FAILED,
    counts,
    length,
    new_parser,
    positive,
    require_drawing,
    telling,
    whole_number,
)
from blast_sim.base.stoppable import stoppable

_PLAN = """\
Allocate ports and splitters to the requests of an instance file, and say how far from the best that can be.

Without --optimize or --exact the requests are taken in the order of the policy: `paper` by volume per rack, `smith`
and `srpt-lease` by duration times the square root of the racks (a request has as many seconds of data as its weight
has units for each receiver). With either, the sum of what the policy says each request is worth is made as large as
possible: with `paper` that is the weight itself.

The answer as JSON: {"provenance", "selected": [{"id", "splitters": {"4": m}}...], "refused": [{"id", "reason"}...],
"weight", "bound" (no allocation weighs more; null: none found), "gap" (share of the bound), "optimal" (the two are
equal), "seconds"}.
"""
_PLAN_EXAMPLE = """\
examples:
  blast plan instance.json --optimize 50 --json
  blast plan instance.json --policy mine:NarrowestFirst

instance.json:
  {"racks": 8, "ports_per_rack": 1, "splitters": [{"fan_out": 4, "count": 2}],
   "requests": [{"id": "a", "sender": 0, "receivers": [1, 2, 3], "weight": 900},
                {"id": "b", "sender": 3, "receivers": [4], "weight": 100}],
   "max_splitters_per_tree": null, "directional": false, "loop_leaf": false}
"""
_FABRIC_PLAN = """\
Say how many splitters of which sizes, and how many optical ports, to buy for a workload.

Method: several samples of the workload are requests that compete at one moment. A linear program over all of them
proposes pools of splitters, once for each of a row of exchange rates between money and volume and for each number of
ports. Every proposal is then allocated on every sample by the optimizer, cut down to what was used, and priced with
the table. Printed are the proposals that no other one beats in both price and share of the volume served, the
cheapest among them that serves --serve percent of what the best one does (or the best one within --max-price), and
what one more piece of each kind would add to it. The share served is that of one decision: requests left over wait.
Where the price table has a light budget, only trees that keep it are counted; amplifiers are tried where a group is too
wide for it. Static trees for groups that come again are priced beside, and what the paper says of costs.
"""
_FABRIC_PLAN_EXAMPLE = """\
examples:
  blast fabric plan --racks 120 --workload S-many --groups 60
  blast fabric plan --racks 200 --workload requests.json --ports 1,2 --max-price 200000 --json
  blast fabric plan --example-prices > prices.toml
  blast fabric plan --racks 200 --workload FB --prices prices.toml
"""
_ALLOCATION = """\
Draw the allocation results as pictures, each with its figures as CSV: the time of a decision against racks beside
Table I of the paper, the optimizer against proven optima, completion times of the policies.

The measurements are those of blast_sim.measuring: allocation_speed, allocation_quality and completion_time. Their
JSON is looked for in the --out folder; what is missing is measured first (a few minutes, less with --quick) and kept
there.
"""

_BLAST = """\
Draw the evaluation of the Blast paper, each picture with its figures as CSV: Figure 4, Table I, the optimality of the
allocator and of the paper's greedy in each reading of its mixture, IP multicast by its set-up, and what the paper
leaves out: completion time against load, splitters, racks (120 to 10,000), sizes and switching delays with the size
below which light stops paying, and iterative jobs. What the paper states is marked.

Cells that were simulated before are taken from `cells` in the --out folder, so that what was ended goes on; results of
the measurements are kept there, too. All of it takes some five minutes on two cores.
"""
_BLAST_EXAMPLE = """\
examples:
  blast figures blast --quick
  blast figures blast --out figures --format pdf --width 3.4in --font-size 8 --no-title
"""
_PIPELINE = """\
Draw the evaluation of the Kascade paper (section IV) with Blast's pipeline, each picture with its figures as CSV and
95 % confidence intervals: receivers in order, in random order and to disk, distant sites, small files, nodes that die.
What the paper's text states is marked.

The measurements are those of benchmarks/pipeline_scenarios.py and pipeline_failures.py, which need root. Their JSON is
looked for in the --out folder; what is missing is measured first (some two hours, minutes with --quick) and kept there.
"""
_PIPELINE_EXAMPLE = "example:\n  blast figures pipeline --quick"
_BALANCED = """\
Draw the evaluation of the paper on balanced multicasting (section 4), each picture with its figures as CSV: throughput
for each root of eight synthetic sites by method and FPFR's order (Figure 7), and against the nodes of two and three
clusters (Figure 8). What the paper's text states is marked. The claims about Figure 7 stand beside 500 random networks
(20 with --quick): about a minute on two cores.

Planned rates are computed now. Measured ones are drawn beside them from CSV files in bit/s, with the columns root,
method, planned, measured, or clusters, nodes, planned, measured; several rows of one point are several runs.
"""
_BALANCED_EXAMPLE = """\
examples:
  blast figures balanced
  blast figures balanced --measured sites.csv --measured clusters.csv --format png
"""


_FABRIC = """\
Draw the evaluation of the paper on rack-fabric multicast, all 22 panels with curves, each picture with its figures as
CSV and with what the paper's text states marked; and what it could not ask: the rack fabric, light, and both together.

Everything is simulated (make setup builds the simulator): some two minutes on two cores. Results are kept in the folder
`fabric-cells` in --out, so that what was ended goes on. fabric-claims.csv has the verdict on every claim,
fabric-experiments.csv the runs behind it.
"""
_FABRIC_EXAMPLE = """\
examples:
  blast figures fabric
  blast figures fabric --out figures --format png --processes 1
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `plan`, `sim` and `figures` to `blast`."""
    _register_plan(subparsers)
    sim_command.register(subparsers)
    figures = subparsers.add_parser("figures", help="draw results as pictures and tables")
    kinds = figures.add_subparsers(metavar="WHAT", required=True)
    allocation = new_parser(
        kinds, "allocation", "allocation and scheduling", _ALLOCATION, "example:\n  blast figures allocation --quick"
    )
    _add_figure_options(allocation)
    allocation.set_defaults(run=_figures)
    blast = new_parser(kinds, "blast", "the paper's evaluation, and more", _BLAST, _BLAST_EXAMPLE)
    _add_figure_options(blast)
    blast.add_argument("--processes", metavar="N", type=whole_number(1, 1024), help="(default: all cores)")
    blast.set_defaults(run=_blast_figures)
    pipeline = new_parser(kinds, "pipeline", "the Kascade paper's evaluation", _PIPELINE, _PIPELINE_EXAMPLE)
    _add_figure_options(pipeline)
    pipeline.set_defaults(run=_pipeline_figures)
    balanced = new_parser(kinds, "balanced", "the balanced multicast's evaluation", _BALANCED, _BALANCED_EXAMPLE)
    _add_picture_options(balanced)
    balanced.add_argument(
        "--measured", metavar="FILE", type=Path, action="append", default=[], help="measurements as CSV (repeatable)"
    )
    balanced.add_argument("--quick", action="store_true", help="20 random networks and 20 draws instead of 500 and 200")
    balanced.add_argument("--processes", metavar="N", type=whole_number(1, 1024), help="(default: all cores)")
    balanced.set_defaults(run=_balanced_figures)
    fabric = new_parser(kinds, "fabric", "the rack-fabric multicast's evaluation", _FABRIC, _FABRIC_EXAMPLE)
    _add_picture_options(fabric)
    fabric.add_argument("--again", action="store_true", help="anew also what is there from before")
    fabric.add_argument("--processes", metavar="N", type=whole_number(1, 1024), help="(default: all cores)")
    fabric.set_defaults(run=_fabric_figures)


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("a folder has a name: . is the current one")
    return Path(text)


def _add_picture_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", type=_folder, default=Path("figures"), help="folder (default: figures)")
    parser.add_argument("--format", choices=("svg", "png", "pdf"), default="svg", help="of the pictures (default: svg)")
    parser.add_argument(
        "--width", metavar="LENGTH", type=length, help="of a column, as 3.4in or 86mm (default: for a screen)"
    )
    parser.add_argument("--font-size", metavar="POINTS", type=positive, default=9.0, help="of axis labels (default: 9)")
    parser.add_argument(
        "--no-title", dest="title", action="store_false", help="leave out the title, which a paper has in its caption"
    )


def _add_figure_options(parser: argparse.ArgumentParser) -> None:
    _add_picture_options(parser)
    parser.add_argument("--quick", action="store_true", help="fewer points and shorter measurements")
    parser.add_argument("--again", action="store_true", help="anew also what is there from before")
    parser.add_argument(
        "--benchmarks",
        metavar="DIR",
        type=Path,
        help="folder of the scripts that measure (default: those that came with the program; those of the pipeline, "
        "which need a checkout: benchmarks)",
    )


def register_fabric_plan(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `plan` to `blast fabric`."""
    plan = new_parser(subparsers, "plan", "what hardware to buy for a workload", _FABRIC_PLAN, _FABRIC_PLAN_EXAMPLE)
    plan.add_argument("--racks", type=whole_number(2, 100_000), help="racks of the fabric (default: those of the file)")
    plan.add_argument(
        "--workload", metavar="NAME|FILE", help="P-contig, P-random, S-many, R3-5, FB …, or an instance file"
    )
    plan.add_argument(
        "--groups", type=whole_number(1, 100_000), help="multicasts that compete (default: half the racks)"
    )
    plan.add_argument("--samples", type=whole_number(1, 1000), default=5, help="of a named workload (default: 5)")
    plan.add_argument("--ports", metavar="B,B", type=counts, default=(1, 2), help="a rack, to try (default: 1,2)")
    plan.add_argument(
        "--directional", action="store_true", help="a rack may send to one group and receive from another"
    )
    plan.add_argument(
        "--max-splitters-per-tree", type=whole_number(0, 100_000), metavar="K", help="the paper's constraint 1"
    )
    plan.add_argument(
        "--counting",
        choices=("paper", "packed"),
        default="paper",
        help="switch ports of a 1:N splitter: N + 1 (paper), or N as its input shares a pair with an output (packed)",
    )
    wanted = plan.add_mutually_exclusive_group()
    wanted.add_argument("--serve", metavar="PERCENT", type=positive, default=95.0, help="of the best (default: 95)")
    wanted.add_argument("--max-price", metavar="PRICE", type=positive, help="the best fabric for this price instead")
    plan.add_argument("--prices", metavar="FILE", type=Path, help="price table (default: the example's)")
    plan.add_argument("--example-prices", action="store_true", help="print a price table to start from, and end")
    plan.add_argument("--json", action="store_true", help="print JSON")
    plan.set_defaults(run=_fabric_plan)


def _register_plan(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    plan = new_parser(subparsers, "plan", "allocate the requests of a file, offline", _PLAN, _PLAN_EXAMPLE)
    plan.add_argument("file", metavar="INSTANCE.json", help="the instance, `-` for standard input")
    plan.add_argument(
        "--policy", metavar="NAME", default="paper", help="paper, smith, srpt-lease, or module:Class (default: paper)"
    )
    how = plan.add_mutually_exclusive_group()
    how.add_argument("--optimize", metavar="MS", type=positive, help="optimize for so many milliseconds at most")
    how.add_argument("--exact", action="store_true", help="solve the integer program")
    plan.add_argument(
        "--time-limit", metavar="SECONDS", type=positive, default=60.0, help="for --exact to give up (default: 60)"
    )
    plan.add_argument("--json", action="store_true", help="print JSON")
    plan.set_defaults(run=_plan)


# --------------------------------------------------------------------------------------------------- running


@telling
def _plan(arguments: argparse.Namespace) -> int:
    from algorithms.b_matching.exact import SolverFailed
    from blast_sim.allocation.plan_command import run

    advice = ": try --optimize 1000 instead"
    return _run(lambda given: stoppable(lambda: run(given)), arguments, (SolverFailed,), advice)


@telling
def _fabric_plan(arguments: argparse.Namespace) -> int:
    from algorithms.level_program import SolverFault as NoTree
    from blast_sim.planning.fabric_plan_command import run
    from blast_sim.planning.pool_program import SolverFault as NoPool

    advice = ": try fewer --groups or --samples"
    return _run(lambda given: stoppable(lambda: run(given)), arguments, (NoTree, NoPool), advice)


@telling
def _figures(arguments: argparse.Namespace) -> int:
    require_drawing()
    from blast_sim.figures.saving import MeasurementFailed, run

    return _run(run, arguments, (MeasurementFailed,))


@telling
def _blast_figures(arguments: argparse.Namespace) -> int:
    require_drawing()
    from blast_sim.base.worker_processes import WorkerDied
    from blast_sim.figures.blast.figures import NoResult, run
    from blast_sim.figures.measurements import MeasurementFailed

    return _run(run, arguments, (MeasurementFailed, NoResult, WorkerDied))


@telling
def _pipeline_figures(arguments: argparse.Namespace) -> int:
    require_drawing()
    from blast_sim.figures.pipeline.figures import MeasurementFailed, run

    return _run(run, arguments, (MeasurementFailed,))


@telling
def _balanced_figures(arguments: argparse.Namespace) -> int:
    require_drawing()
    from algorithms.balanced.balancing import NoRates
    from algorithms.balanced.master import SolverFault
    from blast_sim.base.worker_processes import WorkerDied
    from blast_sim.figures.balanced.figures import run

    return _run(run, arguments, (NoRates, SolverFault, WorkerDied))


@telling
def _fabric_figures(arguments: argparse.Namespace) -> int:
    require_drawing()
    from blast_sim.fabric.paper.evaluation import NoResult
    from blast_sim.fabric.simulator import NoSimulator, RunFailed
    from blast_sim.figures.rack_fabric.figures import run

    return _run(run, arguments, (NoResult, NoSimulator, RunFailed))


def _run(
    run: Callable[[argparse.Namespace], object],
    arguments: argparse.Namespace,
    failures: tuple[type[Exception], ...],
    advice: str = "",
) -> int:
    """Run a command; what fails for no fault of the caller's becomes a sentence, with `advice` behind it."""
    try:
        run(arguments)
    except failures as error:
        sys.stderr.write(f"blast: {error}{advice}\n")
        return FAILED
    return DONE

"""The commands `blast plan`, `blast sim`, `blast fabric plan` and `blast figures`.

`blast` imports this module at every start, so numeric and drawing libraries are imported only when a command runs. A
base installation without these libraries still prints the help.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from blast_base.command_line import DONE, FAILED
from blast_sim import sim_command
from blast_sim.base.options import counts, length, new_parser, positive, reporting_errors, require_drawing, whole_number
from blast_sim.base.stoppable import stoppable

_PLAN = """\
Allocate ports and splitters to the requests of an instance file, and print a bound on the optimum.

Without --optimize or --exact, requests are served in the order of the policy: `paper` by volume per rack, `smith` and
`srpt-lease` by duration times the square root of the racks (the duration in seconds is the weight per receiver). With
either option, the sum of the policy's objective over the served requests is maximized; the objective of `paper` is
the weight.

JSON output: {"provenance", "selected": [{"id", "splitters": {"4": m}}...], "refused": [{"id", "reason"}...],
"weight", "bound" (upper bound of the weight; null: none found), "gap" (share of the bound), "optimal" (weight equals
bound), "seconds"}.
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
Plan the splitters, optical ports and switch to buy for a workload.

Method: each sample of the workload is a set of requests that compete at one time. A linear program over all samples
proposes pools of splitters, one for each exchange rate between price and volume and each number of ports per rack. The
optimizer then allocates every sample on every proposal; unused hardware is removed, and the rest is priced by the
table. The output lists the proposals that are Pareto-optimal in price and share of the volume served, the cheapest of
them that serves --serve percent of the best share (or the best one within --max-price), and the gain of one more piece
of each kind. The share served is that of one decision: the remaining requests wait.
If the price table has a [light] budget, only trees within the budget count; amplifiers are tried for wider groups.
The output also prices static trees for recurring groups, and compares the result with the paper's statements on costs.
"""
_FABRIC_PLAN_EXAMPLE = """\
examples:
  blast fabric plan --racks 120 --workload S-many --groups 60
  blast fabric plan --racks 200 --workload requests.json --ports 1,2 --max-price 200000 --json
  blast fabric plan --example-prices > prices.toml
  blast fabric plan --racks 200 --workload FB --prices prices.toml
"""
_ALLOCATION = """\
Draw the allocation results, each figure with its data as CSV: decision time against racks next to Table I of the paper,
the optimizer against proven optima, and completion times of the policies.

The data comes from blast_sim.papers.blast.measuring: allocation_speed, allocation_quality and completion_time. The
command reads their JSON from the --out folder; it runs missing measurements first (a few minutes, less with --quick)
and stores them there.
"""

_BLAST = """\
Draw the evaluation of the Blast paper, each figure with its data as CSV: Figure 4, Table I, the optimality of the
allocator and of the paper's greedy for each interpretation of its workload mixture, and IP multicast by set-up time.
Additional figures: completion time against load, splitters, racks (120 to 10,000), sizes and switching delays, with
the size below which the optical network does not pay off, and iterative jobs. The paper's values are marked.

Simulated cells are stored in `cells` in the --out folder, so that an interrupted run continues; measurements are stored
there too. A full run takes about five minutes on two cores.
"""
_BLAST_EXAMPLE = """\
examples:
  blast figures blast --quick
  blast figures blast --out figures --format pdf --width 3.4in --font-size 8 --no-title
"""
_PIPELINE = """\
Draw the evaluation of the Kascade paper (section IV) with Blast's pipeline, each figure with its data as CSV and 95 %
confidence intervals: receivers in order, in random order and to disk, distant sites, small files, failing nodes. The
values in the paper's text are marked.

The data comes from pipeline_scenarios.py and pipeline_failures.py of benchmarks/transfers, which need root. The
command reads their JSON from the --out folder. It runs missing measurements first (about two hours, minutes with
--quick), and stores them there.
"""
_PIPELINE_EXAMPLE = "example:\n  blast figures pipeline --quick"
_BALANCED = """\
Draw the evaluation of the paper on balanced multicasting (section 4), each figure with its data as CSV: throughput for
each root of eight synthetic sites by method and FPFR's order (Figure 7), and against the nodes of two and three
clusters (Figure 8). The values in the paper's text are marked. The claims about Figure 7 are compared with 500 random
networks (20 with --quick), which takes about a minute on two cores.

Planned rates are computed. Measured rates are read from CSV files (--measured) in bit/s, with the columns root, method,
planned, measured, or clusters, nodes, planned, measured; each row of a point is one run.
"""
_BALANCED_EXAMPLE = """\
examples:
  blast figures balanced
  blast figures balanced --measured sites.csv --measured clusters.csv --format png
"""


_FABRIC = """\
Draw the evaluation of the paper on rack-fabric multicast, all 22 panels with curves, each figure with its data as CSV
and the values of the paper's text marked. Additional figures combine the rack fabric and the optical network.

All data is simulated (`make setup` builds the simulator), in about two minutes on two cores. Results are stored in
`fabric-cells` in the --out folder, so that an interrupted run continues. fabric-claims.csv has the verdict on every
claim, fabric-experiments.csv the runs behind it.
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
    kinds = figures.add_subparsers(metavar="EVALUATION", required=True)
    allocation = new_parser(
        kinds,
        "allocation",
        "draw allocation and scheduling results",
        _ALLOCATION,
        "example:\n  blast figures allocation --quick",
    )
    _add_figure_options(allocation)
    allocation.set_defaults(run=_figures)
    blast = new_parser(kinds, "blast", "draw the evaluation of the Blast paper", _BLAST, _BLAST_EXAMPLE)
    _add_figure_options(blast)
    blast.add_argument(
        "--processes",
        metavar="N",
        type=whole_number(1, 1024),
        help="number of worker processes (default: one per core)",
    )
    blast.set_defaults(run=_blast_figures)
    pipeline = new_parser(kinds, "pipeline", "draw the evaluation of the Kascade paper", _PIPELINE, _PIPELINE_EXAMPLE)
    _add_figure_options(pipeline)
    pipeline.set_defaults(run=_pipeline_figures)
    balanced = new_parser(
        kinds, "balanced", "draw the evaluation of balanced multicasting", _BALANCED, _BALANCED_EXAMPLE
    )
    _add_picture_options(balanced)
    balanced.add_argument(
        "--measured",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="CSV file of measurements (repeatable)",
    )
    balanced.add_argument("--quick", action="store_true", help="20 random networks and 20 draws instead of 500 and 200")
    balanced.add_argument(
        "--processes",
        metavar="N",
        type=whole_number(1, 1024),
        help="number of worker processes (default: one per core)",
    )
    balanced.set_defaults(run=_balanced_figures)
    fabric = new_parser(kinds, "fabric", "draw the evaluation of rack-fabric multicast", _FABRIC, _FABRIC_EXAMPLE)
    _add_picture_options(fabric)
    fabric.add_argument("--again", action="store_true", help="recomputation of stored results")
    fabric.add_argument(
        "--processes",
        metavar="N",
        type=whole_number(1, 1024),
        help="number of worker processes (default: one per core)",
    )
    fabric.set_defaults(run=_fabric_figures)


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("the folder name is empty: use . for the current folder")
    return Path(text)


def _add_picture_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", type=_folder, default=Path("figures"), help="output folder (default: figures)"
    )
    parser.add_argument(
        "--format", choices=("svg", "png", "pdf"), default="svg", help="file format of the figures (default: svg)"
    )
    parser.add_argument(
        "--width", metavar="LENGTH", type=length, help="figure width, such as 3.4in or 86mm (default: screen size)"
    )
    parser.add_argument(
        "--font-size", metavar="POINTS", type=positive, default=9.0, help="size of axis labels (default: 9)"
    )
    parser.add_argument(
        "--no-title", dest="title", action="store_false", help="no title in the figures, for use with a caption"
    )


def _add_figure_options(parser: argparse.ArgumentParser) -> None:
    _add_picture_options(parser)
    parser.add_argument("--quick", action="store_true", help="fewer points and shorter measurements")
    parser.add_argument("--again", action="store_true", help="recomputation of stored results")
    parser.add_argument(
        "--benchmarks",
        metavar="DIR",
        type=Path,
        help="folder of the measurement scripts (default: installed; `pipeline`: benchmarks/transfers in a checkout)",
    )


def register_fabric_plan(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `plan` to `blast fabric`."""
    plan = new_parser(subparsers, "plan", "plan the hardware to buy for a workload", _FABRIC_PLAN, _FABRIC_PLAN_EXAMPLE)
    plan.add_argument("--racks", type=whole_number(2, 100_000), help="racks of the fabric (default: racks of the file)")
    plan.add_argument(
        "--workload",
        metavar="NAME|FILE",
        help="workload family (P-contig, P-random, S-many, R3-5, FB …) or instance file",
    )
    plan.add_argument(
        "--groups", type=whole_number(1, 100_000), help="number of competing multicasts (default: half the racks)"
    )
    plan.add_argument(
        "--samples", type=whole_number(1, 1000), default=5, help="samples of a workload family (default: 5)"
    )
    plan.add_argument(
        "--ports", metavar="B,B", type=counts, default=(1, 2), help="optical ports per rack to try (default: 1,2)"
    )
    plan.add_argument("--directional", action="store_true", help="separate ports for sending and receiving")
    plan.add_argument(
        "--max-splitters-per-tree",
        type=whole_number(0, 100_000),
        metavar="K",
        help="maximum number of splitters in a tree (constraint 1 of the paper)",
    )
    plan.add_argument(
        "--counting",
        choices=("paper", "packed"),
        default="paper",
        help="switch ports of a 1:N splitter: N + 1 (paper), or N if input and output share a duplex port (packed)",
    )
    target = plan.add_mutually_exclusive_group()
    target.add_argument(
        "--serve", metavar="PERCENT", type=positive, default=95.0, help="share of the best served volume (default: 95)"
    )
    target.add_argument("--max-price", metavar="PRICE", type=positive, help="maximum price, instead of --serve")
    plan.add_argument("--prices", metavar="FILE", type=Path, help="price table (default: the example table)")
    plan.add_argument("--example-prices", action="store_true", help="print an example price table and exit")
    plan.add_argument("--json", action="store_true", help="print JSON")
    plan.set_defaults(run=_fabric_plan)


def _register_plan(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    plan = new_parser(subparsers, "plan", "allocate the requests of a file, offline", _PLAN, _PLAN_EXAMPLE)
    plan.add_argument("file", metavar="INSTANCE.json", help="instance file; `-` for standard input")
    plan.add_argument(
        "--policy", metavar="NAME", default="paper", help="paper, smith, srpt-lease, or module:Class (default: paper)"
    )
    solver = plan.add_mutually_exclusive_group()
    solver.add_argument("--optimize", metavar="MS", type=positive, help="time limit of the optimizer in milliseconds")
    solver.add_argument("--exact", action="store_true", help="exact solution of the integer program")
    plan.add_argument(
        "--time-limit", metavar="SECONDS", type=positive, default=60.0, help="time limit of --exact (default: 60)"
    )
    plan.add_argument("--json", action="store_true", help="print JSON")
    plan.set_defaults(run=_plan)


# --------------------------------------------------------------------------------------------------- running


@reporting_errors
def _plan(arguments: argparse.Namespace) -> int:
    from algorithms.b_matching.exact import MatchingSolverError
    from blast_sim.allocation.plan_command import run

    advice = ": try --optimize 1000 instead"
    return _run(lambda given: stoppable(lambda: run(given)), arguments, (MatchingSolverError,), advice)


@reporting_errors
def _fabric_plan(arguments: argparse.Namespace) -> int:
    from algorithms.level_program import LevelSolverError
    from blast_sim.planning.fabric_plan_command import run
    from blast_sim.planning.pool_program import PoolSolverError

    advice = ": try fewer --groups or --samples"
    return _run(lambda given: stoppable(lambda: run(given)), arguments, (LevelSolverError, PoolSolverError), advice)


@reporting_errors
def _figures(arguments: argparse.Namespace) -> int:
    require_drawing()
    from blast_sim.papers.saving import MeasurementFailedError, run

    return _run(run, arguments, (MeasurementFailedError,))


@reporting_errors
def _blast_figures(arguments: argparse.Namespace) -> int:
    require_drawing()
    from blast_sim.base.worker_processes import WorkerDiedError
    from blast_sim.papers.blast.figures import NoCellResultError, run
    from blast_sim.papers.measurements import MeasurementFailedError

    return _run(run, arguments, (MeasurementFailedError, NoCellResultError, WorkerDiedError))


@reporting_errors
def _pipeline_figures(arguments: argparse.Namespace) -> int:
    require_drawing()
    from blast_sim.papers.pipeline.figures import MeasurementFailedError, run

    return _run(run, arguments, (MeasurementFailedError,))


@reporting_errors
def _balanced_figures(arguments: argparse.Namespace) -> int:
    require_drawing()
    from algorithms.balanced.balancing import NoRatesError
    from algorithms.balanced.master import TreeSolverError
    from blast_sim.base.worker_processes import WorkerDiedError
    from blast_sim.papers.balanced.figures import run

    return _run(run, arguments, (NoRatesError, TreeSolverError, WorkerDiedError))


@reporting_errors
def _fabric_figures(arguments: argparse.Namespace) -> int:
    require_drawing()
    from blast_sim.fabric.simulator import NoSimulatorError, RunFailedError
    from blast_sim.papers.rack_fabric.evaluation import NoRunResultError
    from blast_sim.papers.rack_fabric.figures import run

    return _run(run, arguments, (NoRunResultError, NoSimulatorError, RunFailedError))


def _run(
    run: Callable[[argparse.Namespace], object],
    arguments: argparse.Namespace,
    failures: tuple[type[Exception], ...],
    advice: str = "",
) -> int:
    """Run a command. Report expected failures as one sentence, followed by `advice`, and return the exit status."""
    try:
        run(arguments)
    except failures as error:
        sys.stderr.write(f"blast: {error}{advice}\n")
        return FAILED
    return DONE

"""The options of `blast trees`. `blast` imports this module at every start, so it imports no numeric libraries."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from blast_base.command_line import DONE, FAILED
from blast_sim.base.options import new_parser, reporting_errors, whole_number
from blast_sim.base.stoppable import stoppable

METHODS = ("exact", "balanced", "fpfr", "bottleneck", "semi-flat")
ORDERS = ("index", "random", "widest")
"""The orders of `algorithms.balanced.fpfr`, which this module must not import."""

_DESCRIPTION = """\
Plan a multicast over several trees at once, whose total rate is the highest that paths and access links allow.

exact       the highest rate of any trees, proven by the bound; near-optimal if only some hosts receive
balanced    the trees of fpfr at their best rates (den Burger, Kielmann, Bal: Balanced Multicasting, SC 2005)
fpfr        trees by depth-first search, at the rates that they reach without traffic shaping
bottleneck  one tree over the widest paths
semi-flat   one tree of minimum height

The result of FPFR depends on the order of its searches, which the paper does not define: --fpfr-order starts with the
host of the lowest index, a random host (--seed), or the widest path. The output compares every plan with the bound that
`exact` proves. Hosts that are neither root nor receiver may forward data.
"""
_EXAMPLE = """\
examples:
  blast trees network.json
  blast trees network.json --max-trees 4 --json
  blast trees network.json --method balanced --svg trees.svg
  blast trees network.json --method fpfr --fpfr-order random --seed 7

network.json (rates in any one unit; a host without `out` or `in` has no limit; a link of rate 0 is unused):
  {"hosts": ["a", "b", "c"], "root": "a", "receivers": "all",
   "links": [["a", "b", 10], ["a", "c", 8], ["b", "c", 4], ["c", "b", 4]],
   "out": {"a": 10, "b": 10, "c": 10}, "in": {"b": 10, "c": 10}}

JSON output: {"provenance", "rate", "bound", "trees": [{"rate", "edges": [[from, to]...]}...]}.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `trees` to `blast`."""
    trees = new_parser(subparsers, "trees", "plan balanced multicast trees for a network", _DESCRIPTION, _EXAMPLE)
    trees.add_argument("file", metavar="NETWORK.json", help="network file; `-` for standard input")
    trees.add_argument("--method", choices=METHODS, default="exact", help="planning method (default: exact)")
    trees.add_argument(
        "--fpfr-order",
        choices=ORDERS,
        help="order of the searches of fpfr and balanced (default: widest)",
    )
    trees.add_argument(
        "--seed", metavar="N", type=whole_number(0, 2**63 - 1), help="seed of --fpfr-order random (default: 0)"
    )
    trees.add_argument(
        "--max-trees", metavar="K", type=whole_number(1, 1_000_000), help="maximum number of trees; the loss is printed"
    )
    output = trees.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print JSON")
    output.add_argument("--svg", metavar="FILE", type=Path, help="SVG output file for a drawing of the trees")
    trees.set_defaults(run=_trees)


@reporting_errors
def _trees(arguments: argparse.Namespace) -> int:
    from algorithms.balanced.balancing import NoRatesError
    from algorithms.balanced.master import TreeSolverError
    from blast_sim.trees.trees_plan import run

    try:
        stoppable(lambda: run(arguments))
    except (NoRatesError, TreeSolverError) as error:
        sys.stderr.write(f"blast: {error}: try another --method\n")
        return FAILED
    return DONE

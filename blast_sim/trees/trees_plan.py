"""`blast trees`: what it reads, plans and prints."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tqdm import tqdm

from algorithms.balanced.balancing import balanced
from algorithms.balanced.best_trees import best_trees, thinned
from algorithms.balanced.bottleneck import bottleneck
from algorithms.balanced.exact import ExactSearch
from algorithms.balanced.fpfr import fpfr
from algorithms.balanced.network import Network
from algorithms.balanced.plan import Plan, Tree, ways
from algorithms.balanced.semi_flat import semi_flat
from algorithms.balanced.subset import SubsetSearch
from algorithms.balanced.unshaped import unshaped
from blast_sim.base.text import table
from blast_sim.base.wrong_input import WrongInput
from blast_sim.trees.network_file import network_from, read_network
from blast_sim.trees.trees_svg import trees_svg

STANDARD_INPUT = "-"
SHOW_AFTER_SECONDS = 1.0

HEURISTICS: dict[str, Callable[[Network], Plan]] = {
    "balanced": balanced,
    "fpfr": lambda network: unshaped(network, fpfr(network).trees),
    "bottleneck": bottleneck,
    "semi-flat": semi_flat,
}
"""What answers without a bound; whatever is not here is `exact`."""

LIMITED = {"exact": best_trees, "balanced": thinned}
"""How a plan of each method gets fewer trees."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A plan with its bound, the plan without a limit on its trees, and how long both took."""

    method: str
    plan: Plan
    unlimited: Plan
    seconds: float


def run(arguments: argparse.Namespace) -> None:
    """Plan and print. Raises WrongInput, OSError, SolverFault, NoRates."""
    if arguments.max_trees is not None and arguments.method not in LIMITED:
        raise WrongInput(f"--max-trees goes with --method {' or '.join(LIMITED)}, not with {arguments.method}")
    network = network_from(sys.stdin.buffer) if arguments.file == STANDARD_INPUT else read_network(Path(arguments.file))
    answer = answer_of(network, arguments.method, arguments.max_trees)
    if arguments.svg is not None:
        arguments.svg.write_text(trees_svg(network, answer.plan), encoding="utf-8")
    text = json.dumps(as_json(network, answer.plan), indent=2) if arguments.json else as_text(network, answer)
    sys.stdout.write(text + "\n")


def answer_of(network: Network, method: str, most: int | None) -> Answer:
    """The plan of a method with `most` trees or fewer (None: any number), beside the bound of `exact`."""
    optimum = _optimum(network)
    began = time.perf_counter()
    plan = replace(HEURISTICS[method](network), bound=optimum.plan.bound) if method in HEURISTICS else optimum.plan
    limited = plan if most is None else LIMITED[method](network, plan, most)
    seconds = time.perf_counter() - began + (0.0 if method in HEURISTICS else optimum.seconds)
    return Answer(method, limited, plan, seconds)


def _optimum(network: Network) -> Answer:
    began = time.perf_counter()
    search = ExactSearch(network) if network.to_all else SubsetSearch(network)
    quiet = not sys.stderr.isatty()
    with tqdm(unit=" rounds", delay=SHOW_AFTER_SECONDS, leave=False, disable=quiet, file=sys.stderr) as progress:
        while not search.finished:
            search.improve()
            progress.set_description(f"rate {search.rate:.6g}, bound {search.bound:.6g}", refresh=False)
            progress.update()
    plan = search.plan()
    return Answer("exact", plan, plan, time.perf_counter() - began)


def as_json(network: Network, plan: Plan) -> dict[str, object]:
    """The plan as the JSON object that stands for it; a host's edge comes after the one it receives over."""
    return {
        "rate": plan.rate,
        "bound": plan.bound,
        "trees": [
            {"rate": rate, "edges": _edges(network, tree)} for tree, rate in zip(plan.trees, plan.rates, strict=True)
        ],
    }


def _edges(network: Network, tree: Tree) -> list[list[str]]:
    pairs = (pair for way in ways(tree, network.root) for pair in pairwise(way))
    return [[network.hosts[sender], network.hosts[receiver]] for sender, receiver in pairs]


def as_text(network: Network, answer: Answer) -> str:
    """The plan as a table, and what it is worth."""
    plan = answer.plan
    rows = [
        [
            str(number),
            f"{rate:.6g}",
            f"{rate / plan.rate:.1%}",
            ", ".join(_way(network, way) for way in ways(tree, network.root)),
        ]
        for number, (tree, rate) in enumerate(zip(plan.trees, plan.rates, strict=True), start=1)
    ]
    return f"{table(['TREE', 'RATE', 'SHARE', 'EDGES'], rows)}\n\n{_summary(answer)}"


def _way(network: Network, way: Sequence[int]) -> str:
    return " → ".join(network.hosts[host] for host in way)


def _summary(answer: Answer) -> str:
    plan, unlimited = answer.plan, answer.unlimited
    trees = f"{len(plan.trees)} tree{'' if len(plan.trees) == 1 else 's'}"
    told = f"{answer.method}: rate {plan.rate:.6g} over {trees}, found in {answer.seconds * 1e3:.3g} ms"
    if plan.bound is not None:
        told += f"; no plan exceeds {plan.bound:.6g} (gap {100 * (1 - plan.rate / plan.bound):.3g} %)"
    if len(plan.trees) < len(unlimited.trees):
        lost = 1 - plan.rate / unlimited.rate
        told += f"\n{len(unlimited.trees)} trees would give {unlimited.rate:.6g}: the limit costs {lost:.2%}"
    return told

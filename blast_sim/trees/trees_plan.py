"""`blast trees`: read a network, plan, print."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from tqdm import tqdm

from algorithms.balanced.balancing import balanced
from algorithms.balanced.best_trees import best_trees, thinned
from algorithms.balanced.bottleneck import bottleneck
from algorithms.balanced.exact import ExactSearch
from algorithms.balanced.fpfr import DEFAULT_ORDER, Order, fpfr
from algorithms.balanced.network import Network
from algorithms.balanced.plan import MulticastPlan, Tree, paths
from algorithms.balanced.semi_flat import semi_flat
from algorithms.balanced.subset import SubsetSearch
from algorithms.balanced.unshaped import unshaped
from blast_sim.base.provenance import Origin, Recording, describe_input, with_provenance
from blast_sim.base.text import table
from blast_sim.base.wrong_input import InputError
from blast_sim.trees.network_file import bounded, parse_network
from blast_sim.trees.trees_svg import trees_svg

STANDARD_INPUT = "-"
SHOW_AFTER_SECONDS = 1.0
"""A plan that is ready sooner needs no progress bar."""

SINGLE_TREE: dict[str, Callable[[Network], MulticastPlan]] = {"bottleneck": bottleneck, "semi-flat": semi_flat}


def unshaped_fpfr(network: Network, order: Order = DEFAULT_ORDER, seed: int = 0) -> MulticastPlan:
    """Return the trees of FPFR at the rates that they reach without traffic shaping."""
    return unshaped(network, fpfr(network, order, seed).trees)


class OrderedMethod(Protocol):
    """A method over the trees of FPFR, which depend on the order of its searches."""

    def __call__(self, network: Network, order: Order = ..., seed: int = ...) -> MulticastPlan:
        """Return the plan; the order `random` uses the seed."""
        ...


ORDERED: dict[str, OrderedMethod] = {"balanced": balanced, "fpfr": unshaped_fpfr}

LIMITED = {"exact": best_trees, "balanced": thinned}
"""Functions that reduce the trees of a plan, by its method."""


@dataclass(frozen=True, slots=True)
class TreesPlanAnswer:
    """A plan with its bound, the plan without a limit on its trees, and the seconds for both."""

    label: str
    plan: MulticastPlan
    unlimited: MulticastPlan
    seconds: float


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """A method; `max_trees` (None: no limit), and the order and seed of FPFR for the methods of `ORDERED`."""

    method: str
    max_trees: int | None = None
    order: Order = DEFAULT_ORDER
    seed: int = 0

    @property
    def label(self) -> str:
        """The method, with the order of FPFR if the plan depends on it."""
        if self.method not in ORDERED:
            return self.method
        seed = f", seed {self.seed}" if self.order == "random" else ""
        return f"{self.method} (order {self.order}{seed})"


def run(arguments: argparse.Namespace) -> None:
    """Plan and print. Raises InputError, OSError, SolverError, NoRatesError."""
    options = _options(arguments)
    recording = Recording()
    data = _input(arguments.file)
    network = parse_network(data)
    answer = answer_of(network, options)
    if arguments.svg is not None:
        arguments.svg.write_text(trees_svg(network, answer.plan), encoding="utf-8")
    if arguments.json:
        request = {
            "network": describe_input(arguments.file, data),
            "method": options.method,
            "max_trees": options.max_trees,
            "fpfr_order": options.order,
            "seed": options.seed,
        }
        record = with_provenance(recording.provenance(Origin("trees", request)), as_json(network, answer.plan))
        text = json.dumps(record, indent=2)
    else:
        text = as_text(network, answer)
    sys.stdout.write(text + "\n")


def _input(name: str) -> bytes:
    if name == STANDARD_INPUT:
        return bounded(sys.stdin.buffer)
    with Path(name).open("rb") as file:
        return bounded(file)


def _options(arguments: argparse.Namespace) -> PlanOptions:
    method, order, seed = arguments.method, arguments.fpfr_order, arguments.seed
    if arguments.max_trees is not None and method not in LIMITED:
        raise InputError(f"--max-trees goes with --method {' or '.join(LIMITED)}, not with {method}")
    if order is not None and method not in ORDERED:
        raise InputError(f"--fpfr-order goes with --method {' or '.join(ORDERED)}, not with {method}")
    if seed is not None and order != "random":
        raise InputError("--seed goes with --fpfr-order random: the other orders draw nothing")
    return PlanOptions(method, arguments.max_trees, order or DEFAULT_ORDER, seed or 0)


def answer_of(network: Network, options: PlanOptions) -> TreesPlanAnswer:
    """Return the plan of a method beside the bound of `exact`."""
    optimum = _optimum(network)
    began = time.perf_counter()
    plan = _plan(network, options, optimum.plan)
    fewer, limit = LIMITED.get(options.method), options.max_trees
    limited = plan if fewer is None or limit is None else fewer(network, plan, limit)
    seconds = time.perf_counter() - began + (optimum.seconds if plan is optimum.plan else 0.0)
    return TreesPlanAnswer(options.label, limited, plan, seconds)


def _plan(network: Network, options: PlanOptions, optimum: MulticastPlan) -> MulticastPlan:
    if options.method in ORDERED:
        plan = ORDERED[options.method](network, options.order, options.seed)
    elif options.method in SINGLE_TREE:
        plan = SINGLE_TREE[options.method](network)
    else:
        return optimum
    return replace(plan, bound=optimum.bound)


def _optimum(network: Network) -> TreesPlanAnswer:
    began = time.perf_counter()
    search = ExactSearch(network) if network.to_all else SubsetSearch(network)
    quiet = not sys.stderr.isatty()
    with tqdm(unit=" rounds", delay=SHOW_AFTER_SECONDS, leave=False, disable=quiet, file=sys.stderr) as progress:
        while not search.finished:
            search.improve()
            progress.set_description(f"rate {search.rate:.6g}, bound {search.bound:.6g}", refresh=False)
            progress.update()
    plan = search.plan()
    return TreesPlanAnswer("exact", plan, plan, time.perf_counter() - began)


def as_json(network: Network, plan: MulticastPlan) -> dict[str, object]:
    """Return the plan as a JSON object; an edge into a host precedes the edges out of it."""
    return {
        "rate": plan.rate,
        "bound": plan.bound,
        "trees": [
            {"rate": rate, "edges": _edges(network, tree)} for tree, rate in zip(plan.trees, plan.rates, strict=True)
        ],
    }


def _edges(network: Network, tree: Tree) -> list[list[str]]:
    pairs = (pair for way in paths(tree, network.root) for pair in pairwise(way))
    return [[network.hosts[sender], network.hosts[receiver]] for sender, receiver in pairs]


def as_text(network: Network, answer: TreesPlanAnswer) -> str:
    """Return the plan as a table, with its rate and bound."""
    plan = answer.plan
    rows = [
        [
            str(number),
            f"{rate:.6g}",
            f"{rate / plan.rate:.1%}",
            ", ".join(_way(network, way) for way in paths(tree, network.root)),
        ]
        for number, (tree, rate) in enumerate(zip(plan.trees, plan.rates, strict=True), start=1)
    ]
    return f"{table(['TREE', 'RATE', 'SHARE', 'EDGES'], rows)}\n\n{_summary(answer)}"


def _way(network: Network, way: Sequence[int]) -> str:
    return " → ".join(network.hosts[host] for host in way)


def _summary(answer: TreesPlanAnswer) -> str:
    plan, unlimited = answer.plan, answer.unlimited
    trees = f"{len(plan.trees)} tree{'' if len(plan.trees) == 1 else 's'}"
    text = f"{answer.label}: rate {plan.rate:.6g} over {trees}, found in {answer.seconds * 1e3:.3g} ms"
    if plan.bound is not None:
        text += f"; no plan exceeds {plan.bound:.6g} (gap {100 * (1 - plan.rate / plan.bound):.3g} %)"
    if len(plan.trees) < len(unlimited.trees):
        lost = 1 - plan.rate / unlimited.rate
        text += f"\n{len(unlimited.trees)} trees would give {unlimited.rate:.6g}: the limit costs {lost:.2%}"
    return text

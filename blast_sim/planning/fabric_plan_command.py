"""`blast fabric plan`: its input, execution and output."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from blast_sim.allocation.instance import Instance
from blast_sim.base.provenance import Origin, Recording, describe_input, with_provenance
from blast_sim.base.wrong_input import InputError
from blast_sim.planning.fabric_choice import best_for, cheapest_serving, pareto
from blast_sim.planning.fabric_plan import Planner, PlanQuestion
from blast_sim.planning.fabric_plan_text import FabricPlanAnswer, as_json, as_text
from blast_sim.planning.paper_costs import claims
from blast_sim.planning.prices import example_text, read_prices
from blast_sim.planning.samples import from_family, from_file, is_family
from blast_sim.planning.static_trees import static_trees

OPTIONS = (
    "racks", "groups", "samples", "ports", "directional", "max_splitters_per_tree", "counting", "serve", "max_price",
)  # fmt: skip
"""Options that affect the plan, besides the workload and the prices."""


def run(arguments: argparse.Namespace) -> None:
    """Plan and print. Raises InputError, OSError, and SolverError of `pool_program` and `level_program`."""
    if arguments.example_prices:
        sys.stdout.write(example_text())
        return
    if arguments.workload is None:
        raise InputError("--workload is missing: name a family, such as P-contig, or an instance file")
    recording = Recording()
    samples = _samples(arguments)
    limits = [sample.max_splitters_per_tree for sample in samples]
    limit = arguments.max_splitters_per_tree if arguments.max_splitters_per_tree is not None else limits[0]
    question = PlanQuestion(samples, read_prices(arguments.prices), limit, arguments.counting == "packed")
    answer = _answer(question, arguments)
    if arguments.json:
        record = with_provenance(recording.provenance(_origin(arguments)), as_json(answer))
        text = json.dumps(record, indent=2)
    else:
        text = as_text(answer, question.prices)
    sys.stdout.write(text + "\n")


def _origin(arguments: argparse.Namespace) -> Origin:
    """Return the request of the plan: a workload's name or file, the price table, and the options."""
    request = {option: getattr(arguments, option) for option in OPTIONS}
    named = is_family(arguments.workload)
    request["workload"] = (
        {"name": arguments.workload}
        if named
        else describe_input(arguments.workload, Path(arguments.workload).read_bytes())
    )
    prices: Path | None = arguments.prices
    data = example_text().encode() if prices is None else prices.read_bytes()
    request["prices"] = describe_input("example" if prices is None else str(prices), data)
    return Origin("fabric plan", request, range(arguments.samples) if named else ())


def _samples(arguments: argparse.Namespace) -> list[Instance]:
    name, racks = arguments.workload, arguments.racks
    if not is_family(name) and Path(name).exists():
        samples = from_file(Path(name), racks)
    elif racks is None:
        raise InputError("--racks is missing: a workload family needs the number of racks")
    else:
        samples = from_family(name, racks, arguments.groups or max(1, racks // 2), arguments.samples)
    if not arguments.directional:
        return samples
    if samples[0].loop_leaf:
        raise InputError(
            "--directional excludes loop_leaf, which occupies the sender's receiver: leave out one of them"
        )
    return [replace(sample, directional=True) for sample in samples]


def _answer(question: PlanQuestion, arguments: argparse.Namespace) -> FabricPlanAnswer:
    planner = Planner(question)
    proposed = {ports: planner.proposals(ports) for ports in arguments.ports}
    proposals = [hardware for found in proposed.values() for hardware in found]
    if not proposals:
        raise InputError(_too_small(question, min(arguments.ports)))
    bar = tqdm(proposals, desc="fabrics tried", leave=False, disable=not sys.stderr.isatty(), file=sys.stderr)
    fabrics = pareto(candidate for hardware in bar if (candidate := planner.tried(hardware)) is not None)
    if arguments.max_price is None:
        chosen = cheapest_serving(fabrics, min(1.0, arguments.serve / 100))
    else:
        chosen = best_for(fabrics, arguments.max_price)
    static = list(static_trees(question.samples, question.prices))
    return FabricPlanAnswer(
        too_many_ports=[ports for ports, found in proposed.items() if not found],
        fabrics=fabrics,
        chosen=chosen,
        next_pieces=list(planner.next_pieces(chosen)),
        reach=planner.reach,
        static=static,
        claims=list(claims(question.prices, chosen, static)),
    )


def _too_small(question: PlanQuestion, ports: int) -> str:
    return (
        f"{question.racks} racks need an optical switch of {question.racks * ports} ports or more, but the largest of "
        f"the price table has {question.prices.switches[-1].ports}: add a larger one with --prices"
    )

"""`blast fabric plan`: what it reads, does and prints."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from blast_sim.fabric_plan import Candidate, NextPiece, Planner, Question, best_for, cheapest_serving, pareto
from blast_sim.instance import Instance
from blast_sim.prices import example_text, read_prices
from blast_sim.samples import from_family, from_file, is_family
from blast_sim.text import table
from blast_sim.wrong_input import WrongInput


@dataclass(frozen=True, slots=True)
class Answer:
    """What the command found: fabrics worth their price, the `chosen` one, and what would come next.

    `too_many_ports` are the numbers of ports per rack for which the price table has no switch.
    """

    too_many_ports: Sequence[int]
    fabrics: Sequence[Candidate]
    chosen: Candidate
    next_pieces: Sequence[NextPiece]


def run(arguments: argparse.Namespace) -> None:
    """Plan and print. Raises WrongInput, OSError."""
    if arguments.example_prices:
        sys.stdout.write(example_text())
        return
    if arguments.workload is None:
        raise WrongInput("--workload is missing: name a family, such as P-contig, or an instance file")
    samples = _samples(arguments)
    limits = [sample.most_splitters for sample in samples]
    limit = arguments.max_splitters_per_tree if arguments.max_splitters_per_tree is not None else limits[0]
    question = Question(samples, read_prices(arguments.prices), limit, arguments.counting == "packed")
    answer = _answer(question, arguments)
    sys.stdout.write((json.dumps(_as_json(answer), indent=2) if arguments.json else _as_text(answer)) + "\n")


def _samples(arguments: argparse.Namespace) -> list[Instance]:
    name, racks = arguments.workload, arguments.racks
    if not is_family(name) and Path(name).exists():
        samples = from_file(Path(name), racks)
    elif racks is None:
        raise WrongInput("--racks is missing: a named workload can have any number of them")
    else:
        samples = from_family(name, racks, arguments.groups or max(1, racks // 2), arguments.samples)
    if not arguments.directional:
        return samples
    if samples[0].loop_leaf:
        raise WrongInput("--directional does not go with loop_leaf: the sender's receiver has one use only")
    return [replace(sample, directional=True) for sample in samples]


def _answer(question: Question, arguments: argparse.Namespace) -> Answer:
    planner = Planner(question)
    proposed = {ports: planner.proposals(ports) for ports in arguments.ports}
    proposals = [hardware for found in proposed.values() for hardware in found]
    if not proposals:
        raise WrongInput(_too_small(question, min(arguments.ports)))
    bar = tqdm(proposals, desc="fabrics tried", leave=False, disable=not sys.stderr.isatty(), file=sys.stderr)
    fabrics = pareto(candidate for hardware in bar if (candidate := planner.tried(hardware)) is not None)
    if arguments.most_price is None:
        chosen = cheapest_serving(fabrics, min(1.0, arguments.serve / 100))
    else:
        chosen = best_for(fabrics, arguments.most_price)
    too_many = [ports for ports, found in proposed.items() if not found]
    return Answer(too_many, fabrics, chosen, list(planner.next_pieces(chosen)))


def _too_small(question: Question, ports: int) -> str:
    return (
        f"{question.racks} racks need an optical switch of {question.racks * ports} ports or more, but the largest of "
        f"the price table has {question.prices.switches[-1].ports}: add a larger one with --prices"
    )


def _as_json(answer: Answer) -> dict[str, Any]:
    return {
        "ports_per_rack_too_many": list(answer.too_many_ports),
        "fabrics": [_fabric(candidate) for candidate in answer.fabrics],
        "chosen": _fabric(answer.chosen)
        | {
            "bill": [
                {"what": line.what, "count": line.count, "price": line.price, "watts": line.watts}
                for line in answer.chosen.bill.lines
            ]
        },
        "next": [
            {"what": piece.what, "price": piece.price, "watts": piece.watts, "served_gain": piece.gain}
            for piece in answer.next_pieces
        ],
    }


def _fabric(candidate: Candidate) -> dict[str, Any]:
    hardware = candidate.hardware
    return {
        "ports_per_rack": hardware.ports,
        "splitters": [{"ways": ways, "count": count} for ways, count in hardware.pool.items()],
        "switch_ports": hardware.switch_ports,
        "price": candidate.bill.price,
        "watts": candidate.bill.watts,
        "served": candidate.served,
        "bound": candidate.bound,
    }


def _as_text(answer: Answer) -> str:
    fabrics = [
        [
            "*" if candidate is answer.chosen else "",
            str(candidate.hardware.ports),
            ", ".join(f"{count} x 1:{ways}" for ways, count in candidate.hardware.pool.items()) or "none",
            str(candidate.hardware.switch_ports),
            f"{candidate.bill.price:,.0f}",
            f"{candidate.bill.watts:,.0f}",
            f"{candidate.served:.1%}",
            f"{candidate.bound:.1%}",
        ]
        for candidate in answer.fabrics
    ]
    bill = [
        [line.what, str(line.count), f"{line.price:,.0f}", f"{line.watts:,.0f}"] for line in answer.chosen.bill.lines
    ]
    bill.append(["together", "", f"{answer.chosen.bill.price:,.0f}", f"{answer.chosen.bill.watts:,.0f}"])
    left_out = [
        f"\nNot tried: {ports} ports per rack, for which no optical switch of the price table is large enough."
        for ports in answer.too_many_ports
    ]
    header = ["", "PORTS/RACK", "SPLITTERS", "SWITCH PORTS", "PRICE", "WATTS", "SERVED", "AT MOST"]
    return "\n".join(
        (
            "Fabrics that no other one beats in both price and volume served (* chosen):",
            table(header, fabrics),
            *left_out,
            "\nTo buy:",
            table(["WHAT", "COUNT", "PRICE", "WATTS"], bill),
            "\nThe next piece:",
            table(["WHAT", "PRICE", "WATTS", "MORE SERVED"], [_next(piece) for piece in answer.next_pieces]),
        )
    )


def _next(piece: NextPiece) -> list[str]:
    if piece.price is None or piece.watts is None or piece.gain is None:
        return [piece.what, "no optical switch of the price table has the ports for it", "", ""]
    return [piece.what, f"{piece.price:+,.0f}", f"{piece.watts:+,.0f}", f"{piece.gain:+.2%}"]

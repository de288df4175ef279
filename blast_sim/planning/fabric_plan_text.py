"""The result of `blast fabric plan` as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from blast_sim.base.text import table
from blast_sim.planning.fabric_choice import FabricCandidate
from blast_sim.planning.fabric_plan import NextPiece, Reach
from blast_sim.planning.hardware import Bill, Hardware
from blast_sim.planning.paper_costs import CostClaim
from blast_sim.planning.prices import Prices
from blast_sim.planning.static_trees import StaticTrees


@dataclass(frozen=True, slots=True)
class FabricPlanAnswer:
    """The result: Pareto-optimal fabrics, the `chosen` one, the gain of further pieces, and static trees.

    `too_many_ports` lists the numbers of ports per rack for which the price table has no switch.
    """

    too_many_ports: Sequence[int]
    fabrics: Sequence[FabricCandidate]
    chosen: FabricCandidate
    next_pieces: Sequence[NextPiece]
    reach: Reach
    static: Sequence[StaticTrees]
    claims: Sequence[CostClaim]

    def cheapest_as_good(self, step: StaticTrees) -> float | None:
        """Return the price of the cheapest switched fabric that serves as much, or None if there is none."""
        return min((one.bill.price for one in self.fabrics if one.served >= step.served), default=None)


def as_json(answer: FabricPlanAnswer) -> dict[str, object]:
    """Return the whole result as a JSON object."""
    return {
        "ports_per_rack_too_many": list(answer.too_many_ports),
        "fabrics": [_fabric(candidate) for candidate in answer.fabrics],
        "chosen": _fabric(answer.chosen) | {"bill": _bill(answer.chosen.bill)},
        "next": [
            {"item": piece.name, "price": piece.price, "watts": piece.watts, "served_gain": piece.gain}
            for piece in answer.next_pieces
        ],
        "light": {
            "widest_leaves": answer.reach.widest,
            "too_wide": answer.reach.too_wide,
            "lit_by_amplifiers": answer.reach.amplified,
        },
        "static": [
            {
                "trees": [asdict(tree) for tree in step.trees],
                "racks": step.racks,
                "price": step.bill.price,
                "watts": step.bill.watts,
                "served": step.served,
                "bill": _bill(step.bill),
                "cheapest_fabric_price": answer.cheapest_as_good(step),
            }
            for step in answer.static
        ],
        "claims": [asdict(claim) for claim in answer.claims],
    }


def _bill(bought: Bill) -> list[dict[str, object]]:
    return [{"item": one.name, "count": one.count, "price": one.price, "watts": one.watts} for one in bought.lines]


def _fabric(candidate: FabricCandidate) -> dict[str, object]:
    hardware = candidate.hardware
    return {
        "ports_per_rack": hardware.ports,
        "splitters": [
            {"fan_out": fan_out, "count": count, "amplified": fan_out == hardware.amplified}
            for fan_out, count in hardware.pool.items()
        ],
        "amplifiers": hardware.amplifiers,
        "switch_ports": hardware.switch_ports,
        "price": candidate.bill.price,
        "watts": candidate.bill.watts,
        "served": candidate.served,
        "bound": candidate.bound,
    }


def as_text(answer: FabricPlanAnswer, prices: Prices) -> str:
    """Return the whole result as tables."""
    fabrics = [
        [
            "*" if candidate is answer.chosen else "",
            str(candidate.hardware.ports),
            _splitters(candidate.hardware),
            str(candidate.hardware.switch_ports),
            *_cost(candidate.bill),
            f"{candidate.served:.1%}",
            f"{candidate.bound:.1%}",
        ]
        for candidate in answer.fabrics
    ]
    bill = [
        [line.name, str(line.count), f"{line.price:,.0f}", f"{line.watts:,.0f}"] for line in answer.chosen.bill.lines
    ]
    left_out = [
        f"\nNot tried: {ports} ports per rack, for which no optical switch of the price table is large enough."
        for ports in answer.too_many_ports
    ]
    header = ["", "PORTS/RACK", "SPLITTERS", "SWITCH PORTS", "PRICE", "WATTS", "SERVED", "AT MOST"]
    return "\n".join(
        (
            "Pareto-optimal fabrics by price and volume served (* chosen):",
            table(header, fabrics),
            *left_out,
            "\nTo buy:",
            table(["PIECE", "COUNT", "PRICE", "WATTS"], [*bill, ["total", "", *_cost(answer.chosen.bill)]]),
            f"\n{amplifier_summary(answer.reach, answer.chosen.hardware, prices)}",
            "\nGain of one more piece:",
            table(["PIECE", "PRICE", "WATTS", "MORE SERVED"], [_next(piece) for piece in answer.next_pieces]),
            "\nAlternative, static trees (splitters fixed between ToRs, no optical switch, one group at a time each):",
            _static(answer),
            "\nCosts and power, paper and this plan:",
            table(["SECTION", "PAPER", "THIS PLAN"], [[one.section, one.paper, one.here] for one in answer.claims]),
        )
    )


def amplifier_summary(reach: Reach, hardware: Hardware, prices: Prices) -> str:
    """Return whether the plan has amplifiers, and the reason."""
    if prices.light is None:
        return "Amplifiers: none. The price table has no [light] budget, so no tree is too wide."
    budget = f"{prices.light.budget_db:g} dB"
    if not reach.too_wide:
        leaves = f"the widest of {reach.widest} leaves" if reach.widest > 1 else "each of one leaf"
        return f"Amplifiers: none. Every group, {leaves}, has a passive tree within {budget}."
    needed = f"{reach.too_wide:.1%} of the volume has no passive tree within {budget}"
    if hardware.amplifiers:
        return f"Amplifiers: {hardware.amplifiers}, before the 1:{hardware.amplified} splitters: {needed}."
    if prices.amplifier is None:
        return f"Amplifiers: none. {needed}; add an amplifier to the price table to serve it."
    if not reach.amplified:
        return f"Amplifiers: none. {needed}, and no tree with an amplifier either."
    return f"Amplifiers: none in the chosen fabric. {needed}; amplifiers could light {reach.amplified:.1%}."


def _static(answer: FabricPlanAnswer) -> str:
    if not answer.static:
        return "none: no rack repeats a multicast that the listed splitters can serve."
    rows = [
        [
            str(len(step.trees)),
            f"rack {step.trees[-1].root} to {len(step.trees[-1].leaves)} racks",
            str(step.racks),
            *_cost(step.bill),
            f"{step.served:.1%}",
            "none" if (price := answer.cheapest_as_good(step)) is None else f"{price:,.0f}",
        ]
        for step in answer.static
    ]
    return table(["TREES", "LAST TREE", "RACKS", "PRICE", "WATTS", "SERVED", "PRICE OF EQUAL SWITCHED FABRIC"], rows)


def _splitters(hardware: Hardware) -> str:
    texts = (
        f"{count} x 1:{fan_out}{' amplified' * (fan_out == hardware.amplified)}"
        for fan_out, count in hardware.pool.items()
    )
    return ", ".join(texts) or "none"


def _cost(bought: Bill) -> tuple[str, str]:
    return f"{bought.price:,.0f}", f"{bought.watts:,.0f}"


def _next(piece: NextPiece) -> list[str]:
    if piece.price is None or piece.watts is None or piece.gain is None:
        return [piece.name, "no optical switch of the price table has enough ports", "", ""]
    return [piece.name, f"{piece.price:+,.0f}", f"{piece.watts:+,.0f}", f"{piece.gain:+.2%}"]

"""The Blast paper's statements on costs and power (sections II-A, II-B), compared with a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from blast_sim.planning.fabric_choice import FabricCandidate
from blast_sim.planning.hardware import RACK_PORT, SWITCH, Bill, BillLine, Hardware, bill
from blast_sim.planning.prices import Prices
from blast_sim.planning.static_trees import StaticTrees

PAPERS_FABRIC = Hardware(120, 1, {4: 40})
"""Section VI-A: forty 1:4 splitters and one port of each ToR on a switch of 320 ports."""

PAPERS_SWITCH_PORTS = PAPERS_FABRIC.switch_ports


@dataclass(frozen=True, slots=True)
class CostClaim:
    """A sentence of the paper with its section, and the figures of this plan beside it, in the price table's money."""

    section: str
    paper: str
    here: str


def claims(prices: Prices, chosen: FabricCandidate, static: Sequence[StaticTrees]) -> Iterator[CostClaim]:
    """Yield the paper's statements on costs and power, each beside the figures of this plan."""
    sizes = ", ".join(f"1:{fan_out} {offer.item.price:,g}" for fan_out, offer in prices.splitters.items())
    yield CostClaim("II-A", "splitters: 1:4 $40, 1:16 $80, 1:64 $250", f"price table: {sizes or 'none'}")
    amplifier = prices.amplifier
    listed_price = "none" if amplifier is None else f"{amplifier.item.price:,g}"
    yield CostClaim(
        "II-A", "an amplifier: roughly $1,000", f"price table: {listed_price}; bought: {chosen.hardware.amplifiers}"
    )
    yield CostClaim("II-B", "static trees against hot spots: a few thousand dollars", _static(static))
    listed = next((offer for offer in prices.switches if offer.ports == PAPERS_SWITCH_PORTS), None)
    listed_price = "no such switch" if listed is None else f"{listed.item.price:,g}"
    yield CostClaim(
        "II-B", "a 320-port MEMS switch: $85,000", f"price table: {listed_price}; bought: {_switch(chosen.bill)}"
    )
    yield CostClaim("II-B", "the whole region of a moderate-scale cluster: around $100,000", _region(chosen))
    papers = bill(PAPERS_FABRIC, prices) if PAPERS_FABRIC.pool.keys() <= prices.splitters.keys() else None
    yield CostClaim(
        "VI-A", "120 racks, 40 1:4 splitters, 320 ports (no price)", "no bill" if papers is None else _sum(papers)
    )
    listed_price = "none" if amplifier is None else f"{amplifier.item.watts:,g} W"
    yield CostClaim("II-B", "power of a transceiver: 1 to 3.5 W", f"price table: {prices.rack_port.watts:,g} W")
    yield CostClaim("II-B", "power of a 320-port switch: 50 W", f"bought: {_watts(chosen.bill)}")
    yield CostClaim("II-B", "power of an amplifier: on the order of tens of watts", f"price table: {listed_price}")


def _static(steps: Sequence[StaticTrees]) -> str:
    if not steps:
        return "none is proposed"
    shown = steps[:1] if len(steps) == 1 else (steps[0], steps[-1])
    return "; ".join(
        f"{len(step.trees)} tree{'s' * (len(step.trees) > 1)} over {step.racks} racks: {step.bill.price:,.0f} "
        f"for {step.served:.1%} of the volume"
        for step in shown
    )


def _switch(bought: Bill) -> str:
    line = _switch_line(bought)
    return f"{_ports(line)}, {line.price:,.0f}"


def _watts(bought: Bill) -> str:
    line = _switch_line(bought)
    return f"{_ports(line)}, {line.watts:,g} W; everything {bought.watts:,g} W"


def _switch_line(bought: Bill) -> BillLine:
    return next(line for line in bought.lines if line.name.startswith(SWITCH))


def _ports(switch: BillLine) -> str:
    return switch.name.removeprefix(f"{SWITCH}, ")


def _region(chosen: FabricCandidate) -> str:
    return f"{chosen.hardware.racks} racks: {_sum(chosen.bill)}"


def _sum(bought: Bill) -> str:
    transceivers = sum(line.price for line in bought.lines if line.name == RACK_PORT)
    return f"{bought.price:,.0f}, {bought.price - transceivers:,.0f} without the ToRs' transceivers"

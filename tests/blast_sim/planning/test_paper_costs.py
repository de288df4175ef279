"""The paper's claims on cost and power, compared with the figures of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blast_sim.planning.fabric_plan import PlanQuestion
from blast_sim.planning.hardware import bill
from blast_sim.planning.paper_costs import PAPERS_FABRIC, claims
from blast_sim.planning.prices import Item, Prices, parse_prices
from blast_sim.planning.static_trees import static_trees
from tests.blast_sim.planning.test_plan_fabric import EXAMPLE, PLAIN, candidates, worlds


def claims_of(prices: Prices) -> Mapping[str, str]:
    samples = worlds((tuple(range(8)), 50.0), ((8, 9, 10), 10.0))
    question = PlanQuestion(samples, prices)
    best = candidates(question, 1)[-1]
    return {claim.paper: claim.here for claim in claims(prices, best, list(static_trees(samples, prices)))}


def test_fabric_of_the_paper_costs_about_its_stated_price():
    """Section II-B: around $100,000. The paper gives no price of transceivers: without them it is less."""
    cost = bill(PAPERS_FABRIC, EXAMPLE)
    transceivers = 120 * EXAMPLE.rack_port.price
    assert PAPERS_FABRIC.switch_ports == 320
    assert cost.price - transceivers == 85_000 + 40 * 40
    here = claims_of(EXAMPLE)["120 racks, 40 1:4 splitters, 320 ports (no price)"]
    assert here == f"{cost.price:,.0f}, {cost.price - transceivers:,.0f} without the ToRs' transceivers"


def test_claims_follow_the_price_table():
    before = claims_of(EXAMPLE)
    dearer = replace(EXAMPLE, rack_port=Item(1000.0, 3.0), amplifier=replace(EXAMPLE.amplifier, item=Item(7.0, 8.0)))
    after = claims_of(dearer)
    changed = {paper for paper in before if before[paper] != after[paper]}
    assert {paper.partition(":")[0] for paper in changed} == {
        "an amplifier",
        "static trees against hot spots",
        "the whole region of a moderate-scale cluster",
        "120 racks, 40 1",
        "power of a transceiver",
        "power of a 320-port switch",
        "power of an amplifier",
    }
    few = claims_of(parse_prices(PLAIN.replace("fan_out = 4", "fan_out = 5")))
    assert few["120 racks, 40 1:4 splitters, 320 ports (no price)"] == "no bill"
    assert few["an amplifier: roughly $1,000"] == "price table: none; bought: 0"

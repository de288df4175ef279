"""Amplifiers in `blast fabric plan`: price table, trees with an amplifier, and purchases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blast_sim.allocation.instance import Instance
from blast_sim.base.wrong_input import InputError
from blast_sim.planning.fabric_plan import Planner, PlanQuestion
from blast_sim.planning.fabric_plan_text import amplifier_summary
from blast_sim.planning.hardware import Hardware, bill
from blast_sim.planning.plan_trees import TreeSplitters, tree_choice
from blast_sim.planning.prices import (
    AmplifierOffer,
    Item,
    PricedLightBudget,
    Prices,
    SplitterOffer,
    SwitchOffer,
    example_text,
    parse_prices,
)
from tests.blast_sim.planning.test_plan_fabric import EXAMPLE, PLAIN, candidates, worlds


def test_example_has_the_amplifier_of_the_paper():
    assert EXAMPLE.amplifier is not None
    assert EXAMPLE.amplifier.item.price == 1000
    assert 10 <= EXAMPLE.amplifier.item.watts < 100, "on the order of tens of watts"
    assert 1 <= EXAMPLE.rack_port.watts <= 3.5


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("gain_db = 20.0", "gain = 20.0", "amplifier has an unknown key 'gain': did you mean 'gain_db'"),
        ("gain_db = 20.0", "gain_db = -1", "amplifier: gain_db must be a number from 0"),
        ("max_output_db = 17.0", "", "amplifier has no 'max_output_db'"),
        ("[light]\nbudget_db = 28.0", "", None),
    ],
)
def test_invalid_amplifier_is_rejected_in_one_sentence(old, new, sentence):
    text = example_text().replace(old, new, 1)
    assert text != example_text()
    with pytest.raises(InputError, match=sentence):
        parse_prices(text)


def test_amplifier_needs_a_power_budget_and_its_splitters():
    amplifier = "[amplifier]\nprice = 1\nwatts = 1\ngain_db = 1\nmax_output_db = 1\n"
    with pytest.raises(InputError, match=r"\[amplifier\] and no \[light\]"):
        parse_prices(amplifier + PLAIN)
    fabric = Hardware(15, 1, {4: 1, 16: 2}, amplified=16)
    assert fabric.amplifiers == 2
    assert fabric.with_pool({4: 1, 16: 0}) == Hardware(15, 1, {4: 1})


LOSS = {2: 4.0, 3: 6.0}


def table_of(budget: float, gain: float, output: float = 100.0) -> Prices:
    splitters = {fan_out: SplitterOffer(Item(fan_out, 0.0), loss) for fan_out, loss in LOSS.items()}
    amplifier = AmplifierOffer(Item(10.0, 1.0), gain, output)
    return Prices(Item(1, 1), (SwitchOffer(99, Item(1, 1)),), splitters, PricedLightBudget(budget, 1.0), amplifier)


def below(light: float, pool: Mapping[int, int], budget: float) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield every (leaves, splitters) of a slot with this optical power in front of the switch."""
    yield int(light - 1.0 >= -budget), ()
    for fan_out, loss in LOSS.items():
        if pool.get(fan_out, 0):
            yield from under(light - 1.0 - loss, fan_out, {**pool, fan_out: pool[fan_out] - 1}, budget, (fan_out,))


def under(light, slots, pool, budget, taken) -> Iterator[tuple[int, tuple[int, ...]]]:
    if slots == 0:
        yield 0, taken
        return
    for leaves, pieces in below(light, pool, budget):
        left = Counter(pool)
        left.subtract(pieces)
        for more, all_taken in under(light, slots - 1, left, budget, taken + pieces):
            yield leaves + more, all_taken


def amplified_by_hand(prices: Prices, pool: Mapping[int, int], first: int, leaves: int) -> float:
    """Return the lowest price of a tree that begins with an amplified splitter, by exhaustive search.

    Every later splitter is taken as passive.
    """
    budget = prices.light.budget_db
    light = min(prices.amplifier.gain_db - 1.0, prices.amplifier.max_output_db) - LOSS[first]
    rest = {**pool, first: pool[first] - 1}
    found = under(light, first, rest, budget, (first,))
    return min((price_of(first, pieces) for reached, pieces in found if reached >= leaves), default=math.inf)


def passive_by_hand(pool: Mapping[int, int], budget: float, leaves: int) -> bool:
    return any(reached >= leaves for reached, _ in below(0.0, pool, budget))


def price_of(first: int | None, pieces) -> float:
    return sum(fan_out + 10.0 * (fan_out == first) for fan_out in pieces)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(5, 20),
    st.sampled_from([0.0, 3.0, 8.0, 20.0]),
    st.sampled_from([0.0, 2.0, 100.0]),
    st.sampled_from([2, 3]),
    st.integers(1, 2),
    st.integers(0, 2),
    st.integers(2, 6),
)
def test_amplified_tree_choice_agrees_with_exhaustive_search(budget, gain, output, first, of_first, of_other, leaves):
    prices = table_of(budget, gain, output)
    pool = {first: of_first, 5 - first: of_other if first == 3 else 0}
    offer = TreeSplitters({fan_out: price_of(first, [fan_out]) for fan_out in LOSS}, 3, 1.0)
    chosen = tree_choice(prices, offer, first)(leaves, pool)
    assume(not passive_by_hand(pool, budget, leaves))
    expected = amplified_by_hand(prices, pool, first, leaves)
    assert (math.inf if chosen is None else price_of(first, chosen)) == expected


def test_tree_of_1000_leaves_needs_an_amplifier():
    """Section II-B of the paper: trees of up to 1000 leaves are possible with cascades and amplifiers."""
    offer = TreeSplitters(
        {fan_out: one.item.price for fan_out, one in EXAMPLE.splitters.items()}, 100, EXAMPLE.light.pass_loss_db
    )
    plenty = dict.fromkeys(EXAMPLE.splitters, 100)
    assert tree_choice(EXAMPLE, offer)(1000, plenty) is None
    tree = tree_choice(EXAMPLE, offer, 64)(1000, plenty)
    assert 1 + sum(fan_out - 1 for fan_out in tree) >= 1000
    # By hand: from 17 dB above a transceiver on, a 1:64 and a 1:16 splitter and two passes lose 38.4 dB.
    assert Counter(tree) == {64: 1, 16: 64}
    assert -EXAMPLE.light.budget_db <= 17.0 - 21.5 - 13.9 - 2 * 1.5
    few = {64: 1, 16: 61}
    assert tree_choice(EXAMPLE, offer, 64)(1000, few) is None, "more than the pool has"


def planned(samples: list[Instance], prices: Prices):
    question = PlanQuestion(samples, prices)
    return Planner(question).reach, candidates(question, 1)


def test_planner_buys_no_amplifier_without_need():
    samples = worlds((tuple(range(12)), 10.0))
    reach, found = planned(samples, EXAMPLE)
    assert (reach.widest, reach.too_wide, reach.amplified) == (11, 0.0, 0.0)
    assert found == planned(samples, replace(EXAMPLE, amplifier=None))[1]
    summary = amplifier_summary(reach, found[-1].hardware, EXAMPLE)
    assert summary == "Amplifiers: none. Every group, the widest of 11 leaves, has a passive tree within 28 dB."


def test_planner_buys_amplifiers_for_a_group_that_is_too_wide():
    samples = worlds((tuple(range(12)), 30.0), ((12, 13, 14), 10.0), racks=15)
    # Three passes and two splitters 1:4 lose 19.3 dB.
    short = replace(EXAMPLE, splitters={4: EXAMPLE.splitters[4]}, light=PricedLightBudget(19.0, 1.5))
    reach, found = planned(samples, short)
    assert (reach.widest, reach.too_wide, reach.amplified) == (11, 0.75, 0.75)
    assert [(one.hardware.amplifiers, round(one.served, 2)) for one in found] == [(0, 0.0), (0, 0.25), (5, 1.0)]
    best = found[-1]
    assert [(line.name, line.count) for line in best.bill.lines][-2:] == [("1:4 splitter", 5), ("optical amplifier", 5)]
    assert best.bill.price - bill(replace(best.hardware, amplified=None), short).price == 5 * 1000
    assert best.bill.watts - bill(replace(best.hardware, amplified=None), short).watts == 5 * 20
    summaries = [amplifier_summary(reach, one.hardware, short) for one in found]
    assert (
        summaries[-1]
        == "Amplifiers: 5, before the 1:4 splitters: 75.0% of the volume has no passive tree within 19 dB."
    )
    assert "none in the chosen fabric" in summaries[0]
    assert planned(samples, replace(short, amplifier=None))[1][-1].served == pytest.approx(0.25)


def test_planner_buys_no_amplifier_with_insufficient_gain():
    samples = worlds((tuple(range(12)), 30.0))
    short = replace(EXAMPLE, splitters={4: EXAMPLE.splitters[4]}, light=PricedLightBudget(19.0, 1.5))
    weak = replace(short, amplifier=replace(short.amplifier, gain_db=0.2))
    reach, found = planned(samples, weak)
    assert (reach.too_wide, reach.amplified, found[-1].served) == (1.0, 0.0, 0.0)
    assert "no tree with an amplifier either" in amplifier_summary(reach, found[-1].hardware, weak)
    assert "add an amplifier to the price table" in amplifier_summary(
        reach, found[-1].hardware, replace(weak, amplifier=None)
    )
    assert "no tree is too wide" in amplifier_summary(reach, found[-1].hardware, replace(weak, light=None))


def test_next_piece_may_be_an_amplified_splitter():
    samples = worlds((tuple(range(12)), 30.0), ((12, 13, 14), 10.0), racks=15)
    short = replace(EXAMPLE, light=PricedLightBudget(16.5, 1.5))
    planner = Planner(PlanQuestion(samples, short))
    chosen = planner.tried(Hardware(15, 1, {4: 1}))
    assert chosen.served == pytest.approx(0.25)
    gains = {piece.name: piece for piece in planner.next_pieces(chosen)}
    assert gains["a 1:16 splitter"].gain == 0
    assert gains["a 1:16 splitter with an amplifier"].gain == pytest.approx(0.75)
    assert gains["a 1:16 splitter with an amplifier"].price == 1000 + 80
    bought = planner.tried(Hardware(15, 1, {4: 1, 16: 1}, amplified=16))
    assert "a 1:16 splitter with its amplifier" in {piece.name for piece in planner.next_pieces(bought)}

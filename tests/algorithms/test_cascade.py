"""Trees under a power budget against every tree that there is, and against an integer program of its own."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.cascade import Budget, Catalog
from algorithms.leaf_assignment import Ends, FittedTree, Refusal, fit_tree
from algorithms.power_budget import Amplifier, ElementLoss, Passive, Piece, PowerLevel, Transceiver, Window, exactly
from algorithms.splitter_tree import shallowest
from benchmarks.control_plane.cascade_oracle import cheapest_price
from tests.support.controller.core_power import matched, tiny_trees

PAPER = {4: (7.2, 40.0), 16: (13.8, 80.0), 64: (20.8, 250.0)}
PASS = 1.5
tenths = st.integers(0, 20).map(lambda n: n / 10)


@st.composite
def losses(draw, minimum=0.0):
    best = minimum + draw(tenths)
    return ElementLoss(best, best, best + draw(tenths) / 4)


@st.composite
def kinds(draw, amplified=True):
    fan_out = draw(st.integers(2, 4))
    amplifier = None
    if amplified and draw(st.integers(0, 3)) == 0:
        gain = draw(st.integers(5, 15))
        amplifier = Amplifier("", (gain - 1.0, float(gain), gain + 1.0), 12.0, draw(st.sampled_from([5.0, 20.0])))
    return Piece("", fan_out, draw(losses(2.0)), amplifier, float(draw(st.integers(1, 5))))


@st.composite
def supplies(draw):
    chosen = draw(st.lists(kinds(), min_size=1, max_size=2, unique_by=lambda kind: kind.fan_out))
    return {kind: draw(st.integers(1, 3 if len(chosen) == 1 else 2)) for kind in chosen}


switches = losses(0.5).map(lambda loss: Passive("switch", loss, 15.0))
windows = st.tuples(st.integers(-35, -12), st.integers(8, 40)).map(lambda w: Window(float(w[0]), float(w[0] + w[1])))
roots = st.integers(-5, 5).map(lambda dbm: PowerLevel(dbm - 1.0, dbm, dbm + 1.0))


@given(supplies(), switches, windows, roots)
def test_catalog_has_cheapest_tree_for_every_number_of_leaves(supply, switch, window, root):
    best: dict[int, float] = {}
    for counts, slots in tiny_trees(root, switch, supply):
        price = sum(kind.price * n for kind, n in zip(supply, counts, strict=True))
        usable = sum(slot.best <= switch.max_input and window.fits(switch.after(slot)) for slot in slots)
        for leaves in range(1, usable + 1):
            best[leaves] = min(best.get(leaves, price), price)
    catalog = Catalog(supply, Budget(root, switch, window), 14)
    pool = {kind.fan_out: count for kind, count in supply.items()}
    for leaves in range(1, 15):
        found = catalog.cheapest(leaves, pool)
        assert (found.price if found else None) == best.get(leaves), leaves


@given(supplies(), switches, windows, roots, st.data())
def test_catalog_uses_only_pool_splitters_and_every_tree_is_valid(supply, switch, window, root, data):
    catalog = Catalog(supply, Budget(root, switch, window), 14)
    pool = {kind.fan_out: data.draw(st.integers(0, count)) for kind, count in supply.items()}
    by_fan_out = {kind.fan_out: kind for kind in supply}
    smaller = Catalog({by_fan_out[fan_out]: n for fan_out, n in pool.items()}, Budget(root, switch, window), 14)
    for leaves in range(1, 15):
        found, alone = catalog.cheapest(leaves, pool), smaller.cheapest(leaves, pool)
        assert (found.price if found else None) == (alone.price if alone else None)
        if found is None:
            continue
        assert all(found.pieces.count(fan_out) <= pool.get(fan_out, 0) for fan_out in found.pieces)
        shape = catalog.tree(found)
        assert sorted(shape.fan_out, reverse=True) == list(found.pieces) and len(shape.leaves) >= leaves
        assert len(set(shape.leaves) | set(shape.feeds)) == len(shape.leaves) + len(shape.feeds)
        light = {None: root}
        for index, feed in enumerate(shape.feeds):
            below = by_fan_out[shape.fan_out[index]].hung(light[feed], switch)
            assert below is not None
            light |= {(index, output): below for output in range(shape.fan_out[index])}
        assert all(window.fits(switch.after(light[output])) for output in shape.leaves)


@pytest.mark.parametrize("budget", [11.1, 15, 24, 29.5, 34.5, 40, 49.5])
def test_catalog_price_equals_integer_program(budget):
    rng = random.Random(f"cascade/{budget}")
    pieces = {fan_out: Piece("", fan_out, exactly(loss), price=price) for fan_out, (loss, price) in PAPER.items()}
    light = Budget(PowerLevel(0, 0, 0), Passive("switch", exactly(PASS)), Window(-budget, 20))
    catalog = Catalog(dict(zip(pieces.values(), (40, 10, 3), strict=True)), light, 130)
    for _ in range(5):
        pool = {4: rng.randint(0, 40), 16: rng.randint(0, 10), 64: rng.randint(0, 3)}
        leaves = rng.randint(2, 130)
        supply = {(fan_out, *PAPER[fan_out]): count for fan_out, count in pool.items()}
        found = catalog.cheapest(leaves, pool)
        price = cheapest_price(budget, PASS, supply, leaves)
        assert (found.price if found else None) == (price and pytest.approx(price)), (leaves, pool)


@st.composite
def receivers(draw, number):
    min_power = -draw(st.integers(14, 26))
    return Transceiver(
        f"r{number}", PowerLevel(0, 0, 0), min_power, min_power + draw(st.integers(8, 30)), from_switch=draw(losses())
    )


@st.composite
def fittings(draw):
    supply = draw(supplies())
    pieces = [
        Piece(f"s{i}{n}", k.fan_out, k.loss, k.amplifier, k.price)
        for i, k in enumerate(supply)
        for n in range(supply[k])
    ]
    sender = Transceiver("sender", draw(roots), -40.0, 10.0, to_switch=draw(losses()))
    ends = Ends(sender, tuple(draw(receivers(n)) for n in range(draw(st.integers(1, 5)))))
    return supply, pieces, ends, draw(switches)


@settings(max_examples=60)
@given(fittings(), st.booleans())
def test_fit_tree_returns_cheapest_tree_or_names_binding_element(fitting, tried_first):
    supply, pieces, ends, switch = fitting
    needed = [receiver.needed for receiver in ends.leaves]
    trees = [
        (
            sum(kind.price * n for kind, n in zip(supply, counts, strict=True)),
            [switch.after(slot) for slot in slots if slot.best <= switch.max_input],
        )
        for counts, slots in tiny_trees(ends.sender.entering, switch, supply)
    ]
    prices = [price for price, lights in trees if matched(lights, needed)]
    first = shallowest(1, [piece.fan_out for piece in pieces]) if tried_first else None
    answer = fit_tree(ends, pieces, switch, first)
    if prices:
        assert isinstance(answer, FittedTree)
        assert all(certificate.margin >= -1e-5 for certificate in answer.certificates)
        assert [c.receiver for c in answer.certificates] == [r.name for r in ends.leaves]
        assert len({piece.name for piece in answer.pieces}) == len(answer.pieces)
        used = [*answer.shape.leaves, *answer.shape.feeds]
        assert len(set(used)) == len(used)
        assert tried_first or answer.price == min(prices)
    else:
        assert isinstance(answer, Refusal)
        if answer.binding is not None:
            assert answer.binding.margin < 0 and answer.binding.receiver in {r.name for r in ends.leaves}
            assert answer.binding.receiver in answer.sentence and answer.binding.binding in answer.sentence
            lacking = -answer.binding.margin
            for relief, enough in ((lacking + 1e-4, True), (lacking - 1e-4, False)):
                easier = [Window(window.min_power - relief, window.max_power + relief) for window in needed]
                assert any(matched(lights, easier) for _, lights in trees) == enough
        else:
            assert max(len(lights) for _, lights in trees) < len(needed)
